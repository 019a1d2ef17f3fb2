"""The GPU through IOKit, and through the command ioreg for as long as IOKit fails."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpsbar.machine.macos import graphics, ioreg
from mpsbar.machine.macos.graphics import Properties
from mpsbar.machine.macos.native import Libraries
from mpsbar.machine.macos.registry import Registry
from mpsbar.machine.macos.seldom import Seldom
from mpsbar.machine.platform import GpuClient
from mpsbar.model.machine import Gpu, Problem


class GpuReader:
    def __init__(self, libraries: Libraries, clock: Callable[[], float]) -> None:
        self._registry: Registry | None = None
        self._failure = ""
        try:
            self._registry = Registry(libraries.iokit, libraries.core_foundation, clock)
        except OSError as error:
            self._failure = str(error)
        self._ioreg = Seldom(
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
            properties = graphics.choose(self._ioreg.get() or ())
            instead = self._ioreg.failure or "read through ioreg, more seldom"
            self.problems = (Problem("gpu", f"IOKit: {error}; {instead}"),)
        return Gpu() if properties is None else graphics.parse_gpu(properties)

    def read_clients(self) -> dict[int, GpuClient] | None:
        """Not through ioreg: half a minute old, it would deny who has opened the GPU since."""
        try:
            with self._open() as registry:
                return _parse_clients(registry.read_clients())
        except OSError:
            return None

    def read_on_battery(self) -> bool | None:
        return None if self._registry is None else self._registry.read_on_battery()

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
    return None if accelerator is None else graphics.parse_clients(accelerator, os.getpid())
