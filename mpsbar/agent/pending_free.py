"""A pending Free, at most one per process: kept for some minutes until a safe moment comes.

Each attempt lasts a few seconds and is followed by a pause, because a busy host must not be asked
continuously.
"""

import os
import time
from typing import Optional

from .protocol import JobAnswer

MAX_SECONDS = 3600.0
# How long one attempt waits for a safe moment, and how long the next one rests.
TRY_SECONDS = 5.0
REST_SECONDS = 10.0


class PendingFree:
    """A Free that waits for a safe moment. Times are of time.monotonic(), but for `asked`."""

    def __init__(self, gpu_client: Optional[bool], seconds: float) -> None:
        self.pid = os.getpid()
        self.gpu_client = gpu_client
        self.asked = time.time()
        self.until = time.monotonic() + seconds
        self.next_try = 0.0
        self.tries = 0
        self.reason: Optional[JobAnswer] = None  # why the last attempt did nothing

    def begin_try(self, now: float) -> float:
        """Begins an attempt, and returns how many seconds it may take."""
        self.tries += 1
        self.next_try = now + TRY_SECONDS + REST_SECONDS
        return max(0.1, min(TRY_SECONDS, self.until - now))

    def note_busy(self, answer: JobAnswer, now: float) -> None:
        self.reason = answer.get("reason")
        self.next_try = min(now + REST_SECONDS, self.until)

    def is_over(self, now: float) -> bool:
        return now >= self.until

    def describe(self) -> JobAnswer:
        left = max(0.0, self.until - time.monotonic())
        return {"asked": self.asked, "left": left, "tries": self.tries, "reason": self.reason}


_current: Optional[PendingFree] = None


def find_pending() -> Optional[PendingFree]:
    """Returns the Free that waits in this process; a forked child does not inherit its parent's."""
    return _current if _current is not None and _current.pid == os.getpid() else None


def start_pending(gpu_client: Optional[bool], seconds: float) -> PendingFree:
    """Stores a Free that waits for a safe moment; if one waits already, changes its deadline."""
    global _current  # noqa: PLW0603 - there is one in a process
    pending = find_pending()
    if pending is None:
        pending = PendingFree(gpu_client, seconds)
    pending.until, pending.next_try = time.monotonic() + seconds, 0.0
    _current = pending
    return pending


def drop_pending() -> bool:
    """Drops the pending Free; returns whether there was one."""
    global _current  # noqa: PLW0603 - there is one in a process
    had = find_pending() is not None
    _current = None
    return had


def describe_pending() -> Optional[JobAnswer]:
    pending = find_pending()
    return None if pending is None else pending.describe()
