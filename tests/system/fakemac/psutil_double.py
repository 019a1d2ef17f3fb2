"""psutil as it is on a Mac, over the processes of a fake one: what it gives, and what it raises instead.

Read in psutil 7.2.2: _psosx.py, __init__.py, arch/osx/proc.c, proc_utils.c, sensors.c, cpu.c. The
exceptions are psutil's own. `../macos/test_processes_psutil.py` holds it against the real one.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import psutil

NoSuchProcess, AccessDenied, ZombieProcess = (
    psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess,
)  # fmt: skip
_ZOMBIE = 5


class Battery(NamedTuple):
    percent: float
    secsleft: int
    power_plugged: bool


@dataclass
class Program:
    """What a test has put in; an exception is raised where it stands."""

    command: Any = ()  # bytes, as they lie on its stack
    variables: Any = ()
    executable: Any = b""


class FakePsutil:
    NoSuchProcess, AccessDenied, ZombieProcess = NoSuchProcess, AccessDenied, ZombieProcess

    def __init__(self, c: ctypes.CDLL) -> None:
        self._c = c
        self.programs: dict[int, Program] = {}
        self.battery: Any = None  # no battery; a Battery; what reading it raises

    def Process(self, pid: int) -> "FakeProcess":  # noqa: N802 - psutil's name
        return FakeProcess(self, pid)

    def cpu_count(self) -> int | None:
        buffer, size = ctypes.create_string_buffer(4), ctypes.c_size_t(4)
        failed = self._c.sysctlbyname(b"hw.logicalcpu", buffer, ctypes.byref(size), None, 0)
        count = 0 if failed else struct.unpack("=i", buffer.raw)[0]
        return count if count >= 1 else None

    def sensors_battery(self) -> Battery | None:
        return _answer(self.battery)

    def ask(self, pid: int) -> tuple[int, int, tuple[int, int], int]:
        """kinfo_proc: error number, parent, start and status. Of anyone's processes, zombies too."""
        parent, status = ctypes.c_int(), ctypes.c_int()
        start = (ctypes.c_uint64 * 2)()
        error = self._c.fake_kinfo(pid, ctypes.byref(parent), start, ctypes.byref(status))
        return error, parent.value, (start[0], start[1]), status.value


class FakeProcess:
    def __init__(self, of: FakePsutil, pid: int) -> None:
        self._psutil, self.pid = of, pid
        self._start = self._kinfo()[2]

    def ppid(self) -> int:
        """It looks first whether the pid has another process now."""
        if self._kinfo()[2] != self._start:
            raise NoSuchProcess(
                self.pid, msg="process no longer exists and its PID has been reused"
            )
        return self._kinfo()[1]

    def cmdline(self) -> list[str]:
        return _decoded(_answer(self._started_as().command))

    def environ(self) -> dict[str, str]:
        entries = (text.partition("=") for text in _decoded(_answer(self._started_as().variables)))
        return {name: value for name, equals, value in entries if name and equals}

    def exe(self) -> str:
        """Where the system does not tell: the first argument, if it is the path of a program."""
        self._kinfo()
        program = self._psutil.programs.get(self.pid, Program())
        try:
            executable = _decoded([_answer(program.executable)])[0]
        except AccessDenied:
            if guess := self._guess():
                return guess
            raise
        return executable or self._guess()

    def _guess(self) -> str:
        first = next(iter(self.cmdline()), "")
        return first if first.startswith("/") and os.access(first, os.X_OK) else ""

    def _started_as(self) -> Program:
        """KERN_PROCARGS2: not of zombies, nor of another user's."""
        error, *_, status = self._kinfo()
        if status == _ZOMBIE:
            raise ZombieProcess(self.pid)
        if error == errno.EPERM:
            raise AccessDenied(self.pid)
        return self._psutil.programs.get(self.pid, Program())

    def _kinfo(self) -> tuple[int, int, tuple[int, int], int]:
        kinfo = self._psutil.ask(self.pid)
        if kinfo[0] == errno.ESRCH:
            raise NoSuchProcess(self.pid)
        return kinfo


def _decoded(texts: Iterable[bytes]) -> list[str]:
    """As PyUnicode_DecodeFSDefault does."""
    return [text.decode("utf-8", "surrogateescape") for text in texts]


def _answer(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value
