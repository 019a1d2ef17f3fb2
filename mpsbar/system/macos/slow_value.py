"""A value that is slow to get and seldom changes: read on a thread of its own, not waited for.

Metal's first device and the command ioreg can take a second; a look must not.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

# Usually enough; far below what a look is given before it counts as stuck.
PATIENCE = 0.1


class SlowValue(Generic[T]):
    """`get` from one thread at a time."""

    def __init__(
        self, read: Callable[[], T | None], interval: float, clock: Callable[[], float]
    ) -> None:
        """A `read` that raises gives None, and `failure` says why."""
        self._read = read
        self._interval = interval
        self._clock = clock
        self._due: float | None = None
        self._reading: threading.Thread | None = None
        self._value: T | None = None
        self.failure: str | None = None  # of the last reading

    def get(self) -> T | None:
        """The newest value; None while there is none yet."""
        now = self._clock()
        if self._reading is None and (self._due is None or now >= self._due):
            self._due = now + self._interval
            self._reading = threading.Thread(
                target=self._refresh, name="mpsbar-seldom", daemon=True
            )
            self._reading.start()
        if self._reading is not None:
            self._reading.join(PATIENCE)
            if not self._reading.is_alive():
                self._reading = None
        return self._value

    def _refresh(self) -> None:
        try:
            value, failure = self._read(), None
        except Exception as error:  # noqa: BLE001 - no number is an answer; its absence is shown
            value, failure = None, f"{type(error).__name__}: {error}"
        self._value, self.failure = value, failure
