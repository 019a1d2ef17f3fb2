"""Counts what happened since the exporter started: frees, alerts and ends. Pure."""

from collections import Counter
from typing import get_args

from mpsbar.core.actions import Freed, FreeState
from mpsbar.core.alerts import CAUSES
from mpsbar.core.events import ALERT_CAUSES, Alert, EndedProcess
from mpsbar.core.naming import printable
from mpsbar.core.process_tracker import EndCause
from mpsbar.core.snapshot import Snapshot

# The words come from our own code; the cap only keeps a mistake there from filling Prometheus.
_MOST_WORDS = 50


class Totals:
    """Fed with every snapshot by one thread, read by others: each number only ever grows.

    The words that are known beforehand start at 0, because `rate()` cannot see the first event of
    a series that begins with it.
    """

    def __init__(self) -> None:
        states = [each for each in get_args(FreeState) if each not in ("waiting", "cancelled")]
        self.frees = Counter(dict.fromkeys(states, 0))
        self.alerts = Counter(dict.fromkeys((*ALERT_CAUSES, "ended"), 0))
        self.ends = Counter(dict.fromkeys(get_args(EndCause), 0))
        self.freed_bytes = 0
        self._last = 0  # the number of the last event that was counted

    def add(self, snapshot: Snapshot) -> None:
        for event in snapshot.events_after(self._last):
            self._last = event.number
            if isinstance(event.what, Freed):
                _count(self.frees, event.what.state)
                self.freed_bytes += max(0, event.what.freed or 0)
            elif isinstance(event.what, EndedProcess):
                _count(self.ends, event.what.how)
            elif isinstance(event.what, Alert) and event.what.kind != "recovered":
                _count(self.alerts, CAUSES.get(event.what.code, event.what.code))


def _count(counts: "Counter[str]", word: str) -> None:
    word = printable(word, 40)
    counts[word if word in counts or len(counts) < _MOST_WORDS else "other"] += 1
