"""A Free that stays with the agent until a safe moment comes: one for a process, for some minutes.

It is tried for some seconds, then rests: a host that computes must not be asked without end.
"""

import os
import time
from typing import Optional

from .protocol import JobAnswer

SECONDS = 600.0
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
        """Returns how long this attempt may wait."""
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
    """Lets a Free wait for a safe moment; if one already waits, only its deadline changes."""
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
