"""Limits how long jobs may make the host wait: a short burst at once, then a share of the time."""

import time
from typing import Any, Optional

# Jobs make the host wait: all of them together, in the long run, at most 1 of 21 seconds.
REST_FACTOR = 20.0
# What a few clicks may cost before that begins to matter.
PAUSES_AT_ONCE_SECONDS = 0.25
# Even a job that did next to nothing has woken the host's threads a few times.
MIN_PAUSE_SECONDS = 0.005
# The answer to a request that comes too soon and differs from the last one.
TOO_OFTEN: "dict[str, Any]" = {"state": "busy", "reason": {"code": "too_often", "where": None}}


class Allowance:
    """An amount that grows with time up to `most`; what is spent beyond it must be waited for."""

    def __init__(self, per_second: float, most: float) -> None:
        self._per_second, self._most = per_second, most
        self._left = most
        self._last = time.monotonic()

    def spend(self, amount: float, now: float) -> float:
        """Spends it; returns the time, by time.monotonic(), from which on more may be spent."""
        earned = max(0.0, now - self._last) * self._per_second
        self._left = min(self._most, self._left + earned) - amount
        self._last = now
        return now + max(0.0, -self._left / self._per_second)


class JobPace:
    """Decides when the next job may run, and keeps the answer of the last."""

    def __init__(self) -> None:
        self._allowance = Allowance(1.0 / REST_FACTOR, PAUSES_AT_ONCE_SECONDS)
        self._rests_until = 0.0
        self._ended = 0.0
        self._answer: Optional[dict[str, Any]] = None
        self._identity: object = None  # of what was asked

    def note(
        self, answer: "dict[str, Any]", paused: float, now: float, identity: object = None
    ) -> None:
        """Notes that a job has ended that made its host wait for `paused` seconds."""
        self._answer, self._ended, self._identity = answer, now, identity
        self._rests_until = self._allowance.spend(max(paused, MIN_PAUSE_SECONDS), now)

    def is_resting(self, now: float) -> bool:
        return self._answer is not None and now < self._rests_until

    def find_answer(self, now: float, identity: object = None) -> "Optional[dict[str, Any]]":
        """Returns the last answer with its age, for a request that comes too soon; None if the job
        may run.
        """
        if self._answer is None or not self.is_resting(now):
            return None
        if identity != self._identity:
            return TOO_OFTEN
        return {**self._answer, "age": now - self._ended}
