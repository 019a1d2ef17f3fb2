"""Watching the ends of processes that are not our children: what every platform offers."""

import os
from typing import Protocol

from mpsbar.core.endings import Exit, ExitStatus

# One descriptor each on Linux: more processes than this are tracked by scanning alone.
MOST_WATCHED = 500


class ExitWatch(Protocol):
    """Used by one thread. Watching costs nothing until a process ends."""

    def add(self, pid: int, started: float) -> bool:
        """Watch this process; False: it has ended, or cannot be watched."""

    def poll(self) -> list[Exit]:
        """The processes that have ended since the last call, each once. Never waits."""

    def is_running(self, pid: int, started: float) -> bool:
        """Whether it is watched and has not ended, whatever program it runs by now."""

    def close(self) -> None: ...


class NoExitWatch:
    """The watch of a platform that cannot tell: a process ends when scans miss it."""

    def add(self, pid: int, started: float) -> bool:  # noqa: ARG002
        return False

    def poll(self) -> list[Exit]:
        return []

    def is_running(self, pid: int, started: float) -> bool:  # noqa: ARG002
        return False

    def close(self) -> None:
        return


def parse_wait_status(status: int) -> ExitStatus | None:
    """The status of wait(2), of which only 16 bits count; None for what is no end."""
    try:
        code = os.waitstatus_to_exitcode(status & 0xFFFF)
    except ValueError:  # stopped, continued
        return None
    return ExitStatus(signal=-code) if code < 0 else ExitStatus(code=code)
