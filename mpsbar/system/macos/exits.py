"""The ends of other processes on macOS: one kqueue for all, with the exit status of each.

xnu gives NOTE_EXITSTATUS to whoever may signal the process, from macOS 11 on (filt_procattach in
kern_event.c), though kqueue(2) says "child processes only". No Mac has run this yet.
"""

import errno
import select
import time
from collections.abc import Callable
from typing import Any

from mpsbar.core.endings import Exit, ExitStatus
from mpsbar.system.platform import MAX_WATCHED, parse_wait_status

# From sys/event.h; Python's select has the first three of them.
FILTER_PROC = -5
ADD, ONESHOT, ERROR = 0x0001, 0x0010, 0x4000
NOTE_EXIT = 0x80000000
NOTE_EXITSTATUS = 0x04000000
NOTE_EXIT_DETAIL = 0x02000000
# bits of `data` above the status, from event_private.h
_DETAIL_JETSAM = 0x00020000
_DETAIL_CODE_SIGNING = 0x00040000
_JETSAM_REASONS = {
    0x80000000: "vm-pageshortage",
    0x40000000: "vm-compressor-thrashing",
    0x20000000: "highwater",
    0x10000000: "per-process-limit",
    0x08000000: "idle-exit",
    0x04000000: "vnode-limit",
    0x02000000: "fc-thrashing",
}


class KqueueWatch:
    def __init__(
        self,
        read_start: Callable[[int], float],
        most: int = MAX_WATCHED,
        queue: Any = None,
        make_event: Callable[..., Any] | None = None,
    ) -> None:
        """Raises OSError where there is no kqueue."""
        if queue is None:
            module: Any = select  # its kqueue is there on a Mac alone
            if not hasattr(module, "kqueue"):
                raise OSError(errno.ENOSYS, "there is no kqueue")
            queue, make_event = module.kqueue(), module.kevent
        self._read_start, self._most = read_start, most
        self._queue, self._make_event = queue, make_event
        self._started: dict[int, float] = {}  # by pid

    def add(self, pid: int, started: float) -> bool:
        if self._started.get(pid) == started:
            return True
        if len(self._started) >= self._most:
            return False
        try:
            self._register(pid)
            # The note stays with its process; is that the one we mean?
            if self._read_start(pid) != started:
                return False
        except OSError:
            return False
        self._started[pid] = started
        return True

    def _register(self, pid: int) -> None:
        wanted = NOTE_EXIT | NOTE_EXITSTATUS | NOTE_EXIT_DETAIL
        try:
            self._control(pid, wanted)
        except PermissionError:  # not ours to signal: the moment without the status
            self._control(pid, NOTE_EXIT)

    def _control(self, pid: int, notes: int) -> None:
        assert self._make_event is not None
        event = self._make_event(pid, FILTER_PROC, ADD | ONESHOT, notes)
        self._queue.control([event], 0, 0)

    def poll(self) -> list[Exit]:
        if not self._started:
            return []
        exits = []
        for event in self._queue.control(None, len(self._started), 0):
            started = self._started.pop(event.ident, None)
            if started is None or event.flags & ERROR:
                continue
            has_status = event.fflags & NOTE_EXITSTATUS
            status = parse_exit_data(event.data) if has_status else None
            exits.append(Exit(event.ident, started, time.time(), status))
        return exits

    def is_running(self, pid: int, started: float) -> bool:
        return self._started.get(pid) == started

    def close(self) -> None:
        self._started.clear()
        self._queue.close()


def parse_exit_data(data: int) -> ExitStatus | None:
    """The word that kqueue gives with an exit: a status of wait(2), and details above it."""
    data &= 0xFFFFFFFF
    status = parse_wait_status(data)
    if status is None:
        return None
    jetsam = None
    if data & _DETAIL_JETSAM:
        reasons = (reason for bit, reason in _JETSAM_REASONS.items() if data & bit)
        jetsam = next(reasons, "jettisoned")
    return ExitStatus(status.code, status.signal, jetsam, bool(data & _DETAIL_CODE_SIGNING))
