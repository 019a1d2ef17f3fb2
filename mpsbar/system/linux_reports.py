"""What Linux says of a kill for memory: the count of its cgroup, and the kernel's log."""

import ctypes
import os
import re
import time
from dataclasses import dataclass

from mpsbar.core.endings import SystemReports, Unreadable
from mpsbar.system.platform import EndedPid
from mpsbar.system.uptime import read_uptime

SIGKILL = 9
_REFRESH_SECONDS = 30.0
_MAX_GROUPS = 100
_MAX_LOG = 256 * 1024
_READ_ALL = 3  # SYSLOG_ACTION_READ_ALL
# version 1 and 2 have the same line in different files
_COUNT = re.compile(rb"(?m)^oom_kill (\d{1,18})$")
_KILLED = re.compile(
    rb"(?m)^<\d+>\[\s*(\d{1,12})\.\d+\] .{0,200}Killed process (\d{1,10}) \(", re.ASCII
)
_LOG_SECONDS = 120.0


@dataclass(slots=True)
class _Count:
    """The kills that a cgroup had counted when it was last read, and before that."""

    now: int | None
    before: int | None
    read_at: float


class LinuxReports:
    def __init__(self, root: str = "/") -> None:
        self._root = root.rstrip("/")
        self._groups: dict[int, str] = {}  # the file of each noted process
        self._counts: dict[str, _Count] = {}

    def note(self, pid: int) -> None:
        """Remember the cgroup of a process: it cannot be read afterwards."""
        path = self._find_group(pid)
        if path is None or (path not in self._counts and len(self._counts) >= _MAX_GROUPS):
            return
        self._groups[pid] = path
        if path not in self._counts:
            self._counts[path] = _Count(self._read_count(path), None, time.monotonic())

    def refresh(self) -> None:
        """Reads a few small files every half minute, so that an old kill does not count."""
        now = time.monotonic()
        for path, count in self._counts.items():
            if now - count.read_at >= _REFRESH_SECONDS:
                count.before, count.now = count.now, self._read_count(path)
                count.read_at = now

    def read(self, end: EndedPid) -> SystemReports:
        path = self._groups.pop(end.pid, None)
        if end.signal != SIGKILL:
            return SystemReports()
        log, unreadable = self._read_log()
        since = read_uptime() - _LOG_SECONDS
        is_logged = end.is_exact and end.pid in parse_kills(log, since)
        kill = self._was_killed(path) if path is not None else None
        if kill and log and end.is_exact and not is_logged:
            kill = False  # the log names those that were killed, and it is another
        return SystemReports(kernel_log=is_logged, cgroup_kill=kill, unreadable=unreadable)

    def _was_killed(self, path: str) -> bool | None:
        """Returns whether its cgroup counted one more in the last minute, each for one end."""
        count = self._counts[path]
        before, now = count.now if count.before is None else count.before, self._read_count(path)
        if now is None or before is None:
            return None
        if now <= before:
            return False
        count.before = before + 1
        return True

    def _find_group(self, pid: int) -> str | None:
        try:
            with open(f"{self._root}/proc/{pid}/cgroup", "rb") as file:  # noqa: PTH123
                text = file.read(16384)
        except OSError:
            return None
        for name, place, path in parse_groups(text):
            file_name = "memory.oom_control" if name == "memory" else "memory.events"
            counts = f"{self._root}/sys/fs/cgroup{place}{path}/{file_name}"
            if os.path.exists(counts):  # noqa: PTH110
                return counts
        return None

    def _read_count(self, path: str) -> int | None:
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                return parse_count(file.read(4096))
        except OSError:
            return None

    def _read_log(self) -> tuple[bytes, tuple[Unreadable, ...]]:
        """The end of the kernel's log, by one call; only root where dmesg is restricted."""
        buffer = ctypes.create_string_buffer(_MAX_LOG)
        length = _libc.klogctl(_READ_ALL, buffer, _MAX_LOG)
        if length < 0:
            return b"", ("kernel_log",)
        return buffer.raw[:length], ()


_libc = ctypes.CDLL(None, use_errno=True)


def parse_groups(text: bytes) -> list[tuple[str, str, str]]:
    """Returns (controller, mount below /sys/fs/cgroup, path) for memory, version 1 first."""
    groups: list[tuple[str, str, str]] = []
    for line in text.decode(errors="replace").splitlines()[:50]:
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if not path.startswith("/") or ".." in path.split("/"):
            continue
        path = "" if path == "/" else path
        if "memory" in names.split(","):
            groups.insert(0, ("memory", "/memory", path))
        elif not names:
            groups.append(("", "", path))
            groups.append(("", "/unified", path))
    return groups


def parse_count(text: bytes) -> int | None:
    match = _COUNT.search(text)
    return int(match[1]) if match else None


def parse_kills(log: bytes, since: float) -> set[int]:
    """The pids that the kernel says it killed for memory, since a time in seconds after boot."""
    return {int(pid) for seconds, pid in _KILLED.findall(log) if int(seconds) >= since}
