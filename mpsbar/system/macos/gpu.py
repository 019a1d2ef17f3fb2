"""The GPU through IOKit, and through the command ioreg for as long as IOKit fails."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpsbar.core.machine import Gpu, Problem
from mpsbar.system.macos import accelerator as accelerator_properties
from mpsbar.system.macos import ioreg
from mpsbar.system.macos.accelerator import Properties
from mpsbar.system.macos.iokit import Registry
from mpsbar.system.macos.native import Libraries
from mpsbar.system.macos.slow_value import SlowValue
from mpsbar.system.platform import GpuClient


class GpuReader:
    def __init__(self, libraries: Libraries, clock: Callable[[], float]) -> None:
        self._registry: Registry | None = None
        self._failure = ""
        try:
            self._registry = Registry(libraries.iokit, libraries.core_foundation, clock)
        except OSError as error:
            self._failure = str(error)
        self._ioreg = SlowValue(
            lambda: ioreg.read_accelerators(libraries.ioreg, ioreg.SECONDS), ioreg.INTERVAL, clock
        )
        self._in_use = threading.Lock()
        self.problems: tuple[Problem, ...] = ()  # of the last reading

    def read(self) -> Gpu:
        self.problems = ()
        try:
            with self._open() as registry:
                properties = registry.read_accelerator()
        except OSError as error:
            properties = accelerator_properties.choose(self._ioreg.get() or ())
            instead = self._ioreg.failure or "read through ioreg, more seldom"
            self.problems = (Problem("gpu", f"IOKit: {error}; {instead}"),)
        return Gpu() if properties is None else accelerator_properties.parse_gpu(properties)

    def read_clients(self) -> dict[int, GpuClient] | None:
        """Not through ioreg: half a minute old, it would deny who has opened the GPU since."""
        try:
            with self._open() as registry:
                return _parse_clients(registry.read_clients())
        except OSError:
            return None

    @contextmanager
    def _open(self) -> Iterator[Registry]:
        """For one thread at a time: one that hangs in it may have been left behind."""
        if self._registry is None:
            raise OSError(self._failure)
        if not self._in_use.acquire(blocking=False):
            raise OSError("an earlier reading has not ended")
        try:
            yield self._registry
        finally:
            self._in_use.release()


def _parse_clients(accelerator: Properties | None) -> dict[int, GpuClient] | None:
    return (
        None
        if accelerator is None
        else accelerator_properties.parse_clients(accelerator, os.getpid())
    )
