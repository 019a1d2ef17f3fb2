"""The GPU through IOKit, and through the command ioreg for as long as IOKit fails."""

import os
from collections.abc import Callable
from dataclasses import replace

from mpsbar.machine.macos import graphics
from mpsbar.machine.macos.graphics import Properties
from mpsbar.machine.macos.ioreg import Ioreg
from mpsbar.machine.macos.native import Libraries
from mpsbar.machine.macos.registry import Registry
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
        self._ioreg = Ioreg(libraries.ioreg, clock)
        self.problems: tuple[Problem, ...] = ()  # of the last reading

    def read(self) -> Gpu:
        self.problems = ()
        try:
            properties = self._open().read_accelerator()
        except OSError as error:
            self.problems = (Problem("gpu", f"IOKit: {error}; read through ioreg, more seldom"),)
            properties = self._read_slowly()
        return Gpu() if properties is None else graphics.parse_gpu(properties)

    def read_clients(self) -> dict[int, GpuClient] | None:
        try:
            return _parse_clients(self._open().read_clients())
        except OSError:
            return self._read_clients_slowly()

    def read_on_battery(self) -> bool | None:
        return None if self._registry is None else self._registry.read_on_battery()

    def _open(self) -> Registry:
        if self._registry is None:
            raise OSError(self._failure)
        return self._registry

    def _read_slowly(self) -> Properties | None:
        return graphics.choose(self._ioreg.read() or ())

    def _read_clients_slowly(self) -> dict[int, GpuClient] | None:
        """Who has a client, but no times: taken up to half a minute ago, they would mislead."""
        clients = _parse_clients(self._read_slowly())
        if clients is None:
            return None
        return {number: replace(client, nanoseconds=None) for number, client in clients.items()}


def _parse_clients(accelerator: Properties | None) -> dict[int, GpuClient] | None:
    return None if accelerator is None else graphics.parse_clients(accelerator, os.getpid())
