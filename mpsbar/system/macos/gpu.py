"""The GPU: through IOKit, through the command ioreg while IOKit fails; its budget from Metal."""

import os
import plistlib
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Problem
from mpsbar.system.macos.iokit import Registry
from mpsbar.system.macos.iokit_values import (
    Properties,
    choose_accelerator,
    parse_clients,
    parse_gpu,
)
from mpsbar.system.macos.native import Libraries
from mpsbar.system.platform import GpuClient
from mpsbar.system.read_timeouts import BackgroundValue

# The budget changes when an administrator sets iogpu.wired_limit_mb.
BUDGET_INTERVAL = 180.0
# The node and its children, with all properties, as a property list.
IOREG_ARGUMENTS = ("-a", "-l", "-r", "-d", "2", "-w", "0", "-c", "IOAccelerator")
IOREG_INTERVAL = 30.0
IOREG_SECONDS = 5.0
_MAX_BYTES = 16 << 20


class GpuReader:
    def __init__(self, libraries: Libraries, clock: Callable[[], float]) -> None:
        self._registry: Registry | None = None
        self._failure = ""
        try:
            self._registry = Registry(libraries.iokit, libraries.core_foundation, clock)
        except OSError as error:
            self._failure = str(error)
        self._ioreg = BackgroundValue(
            lambda: read_accelerators(libraries.ioreg, IOREG_SECONDS), IOREG_INTERVAL, clock
        )
        self._in_use = threading.Lock()
        self.problems: tuple[Problem, ...] = ()  # of the last reading

    def read(self) -> Gpu:
        self.problems = ()
        try:
            with self._open() as registry:
                properties = registry.read_accelerator()
        except OSError as error:
            properties = choose_accelerator(self._ioreg.get() or ())
            instead = self._ioreg.failure or "read through ioreg, more seldom"
            self.problems = (Problem("gpu", f"IOKit: {error}; {instead}"),)
        return Gpu() if properties is None else parse_gpu(properties)

    def read_clients(self) -> dict[int, GpuClient] | None:
        """Asks IOKit only: ioreg's answer is half a minute old and lacks the newest clients."""
        try:
            with self._open() as registry:
                properties = registry.read_clients()
        except OSError:
            return None
        return None if properties is None else parse_clients(properties, os.getpid())

    @contextmanager
    def _open(self) -> Iterator[Registry]:
        """Lets one thread at a time in: an earlier, abandoned one may hang in IOKit."""
        if self._registry is None:
            raise OSError(self._failure)
        if not self._in_use.acquire(blocking=False):
            raise OSError("an earlier reading has not ended")
        try:
            yield self._registry
        finally:
            self._in_use.release()


def read_accelerators(ioreg: str, seconds: float) -> list[Properties]:
    """Reads the accelerators by the command ioreg. Raises OSError."""
    child = subprocess.Popen(
        [ioreg, *IOREG_ARGUMENTS],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LC_ALL": "C"},
    )
    assert child.stdout is not None
    deadline = time.monotonic() + seconds
    try:
        output = _read_all(child.stdout, deadline)
        with suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, deadline - time.monotonic()))
    finally:
        child.kill()
        child.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
    if not output and (child.returncode or 0) > 0:
        raise OSError(f"ioreg: exit code {child.returncode}")
    return parse_accelerators(output)


def parse_accelerators(output: bytes) -> list[Properties]:
    """Parses ioreg's property list; it prints nothing where there is no accelerator."""
    if not output.strip():
        return []
    try:
        tree: Any = plistlib.loads(output)
    except Exception as error:  # noqa: BLE001 - plistlib fails in many ways on what is no list
        raise OSError(f"ioreg: {type(error).__name__}: {error}") from None
    if not isinstance(tree, list):
        raise OSError(f"ioreg: a {type(tree).__name__} instead of a list")
    return [entry for entry in tree if isinstance(entry, dict)]


def _read_all(pipe: IO[bytes], deadline: float) -> bytes:
    parts: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while sum(map(len, parts)) <= _MAX_BYTES:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError("ioreg does not answer")
            part = os.read(pipe.fileno(), 1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
    raise OSError("ioreg does not end")


def read_budget() -> int:
    """Reads how many bytes Metal recommends that the GPU holds at most.

    Raises whatever PyObjC does, and OSError for what is no number. From here on this process has a
    GPU client of its own.
    """
    # Written as imports, not by importlib: py2app puts into the app what it can see imported.
    import Metal
    import objc

    with objc.autorelease_pool():
        device = Metal.MTLCreateSystemDefaultDevice()
        if device is None:
            raise OSError("Metal has no device here")  # as in some virtual Macs
        budget = device.recommendedMaxWorkingSetSize()
    if not isinstance(budget, int) or budget <= 0:
        raise OSError(f"Metal says {str(budget)[:40]}")
    return budget
