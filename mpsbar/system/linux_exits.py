"""The ends of other processes on Linux: a pidfd for each, one epoll for all.

The exit status of a process that is not our child comes from the ioctl PIDFD_GET_INFO, from
Linux 6.15 on, once its parent has reaped it; before that it is in /proc/PID/stat of the zombie.
"""

import fcntl
import os
import select
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from mpsbar.core.endings import Exit, ExitStatus
from mpsbar.system.platform import MAX_WATCHED, parse_wait_status

# include/uapi/linux/pidfd.h: struct pidfd_info in its first size of 64 bytes; _IOWR(0xFF, 11, …).
GET_INFO = 0xC040FF0B
INFO = struct.Struct("=QQ11Ii")  # mask, cgroupid, eleven ids, exit_code
MASK_ALL = 0xF
MASK_EXIT = 1 << 3
# How long a parent has to reap before the status counts as unknown.
REAP_SECONDS = 1.0
_STATE, _EXIT_CODE = 0, 49  # fields of /proc/PID/stat, counted behind the name


@dataclass(slots=True)
class _WatchedExit:
    pid: int
    started: float
    handle: int
    ended: float | None = None  # when it was noticed, by the clock of the day
    given_up: float = 0.0  # when its status counts as unknown, by the monotonic clock


class PidfdWatch:
    def __init__(
        self,
        read_start: Callable[[int], float],
        most: int = MAX_WATCHED,
        ioctl: Callable[[int, int, bytearray], int] = fcntl.ioctl,
    ) -> None:
        """Raises OSError where the kernel has no pidfd (before 5.3), or a sandbox forbids it."""
        os.close(os.pidfd_open(os.getpid()))
        self._read_start, self._most, self._ioctl = read_start, most, ioctl
        self._epoll = select.epoll()
        self._watched: dict[int, _WatchedExit] = {}  # by descriptor
        self._known: dict[tuple[int, float], int] = {}  # descriptors by identity
        self._ended: list[_WatchedExit] = []  # that wait for their status

    def add(self, pid: int, started: float) -> bool:
        if (pid, started) in self._known:
            return True
        if len(self._known) >= self._most:
            return False
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            # The descriptor stays with its process; is that the one we mean?
            if self._read_start(pid) != started:
                raise ProcessLookupError(pid)
            self._epoll.register(handle, select.EPOLLIN)
        except OSError:
            os.close(handle)
            return False
        self._watched[handle] = _WatchedExit(pid, started, handle)
        self._known[pid, started] = handle
        return True

    def poll(self) -> list[Exit]:
        now = time.monotonic()
        if self._watched:
            for handle, _ in self._epoll.poll(0):
                watched = self._watched.pop(handle)
                self._epoll.unregister(handle)
                watched.ended, watched.given_up = time.time(), now + REAP_SECONDS
                self._ended.append(watched)
        if not self._ended:
            return []
        exits, waiting = [], []
        for watched in self._ended:
            status = self._read_status(watched)
            if status is None and now < watched.given_up:
                waiting.append(watched)
                continue
            exits.append(self._finish(watched, status))
        self._ended = waiting
        return exits

    def is_running(self, pid: int, started: float) -> bool:
        return self._known.get((pid, started)) in self._watched

    def close(self) -> None:
        for handle in self._known.values():
            os.close(handle)
        self._known.clear()
        self._watched.clear()
        self._ended.clear()
        self._epoll.close()

    def _finish(self, watched: _WatchedExit, status: ExitStatus | None) -> Exit:
        del self._known[watched.pid, watched.started]
        os.close(watched.handle)
        return Exit(watched.pid, watched.started, watched.ended or time.time(), status)

    def _read_status(self, watched: _WatchedExit) -> ExitStatus | None:
        buffer = bytearray(INFO.pack(MASK_ALL, *[0] * 13))
        try:
            self._ioctl(watched.handle, GET_INFO, buffer)
        except OSError:  # ENOTTY before 6.13; ESRCH: reaped, before 6.15
            return self._read_zombie(watched)
        mask, *_, code = INFO.unpack(buffer)
        if not mask & MASK_EXIT:
            return self._read_zombie(watched)
        return parse_wait_status(code)

    def _read_zombie(self, watched: _WatchedExit) -> ExitStatus | None:
        """Returns the exit status of a zombie, which a parent leaves that does not reap."""
        try:
            number = os.open(f"/proc/{watched.pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if self._read_start(watched.pid) != watched.started:
                return None
            return parse_zombie(os.read(number, 4096))
        except OSError:
            return None
        finally:
            os.close(number)


def parse_zombie(stat: bytes) -> ExitStatus | None:
    """The exit status in /proc/PID/stat of a zombie; None for any other process."""
    fields = stat.rpartition(b")")[2].split()
    try:
        if fields[_STATE] != b"Z":
            return None
        return parse_wait_status(int(fields[_EXIT_CODE]))
    except (IndexError, ValueError):
        return None
