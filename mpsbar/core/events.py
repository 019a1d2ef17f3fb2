"""What happened while mpsbar watched: alerts, frees and ends, each with a number. Pure."""

from dataclasses import dataclass
from typing import Literal

from mpsbar.core.actions import Freed
from mpsbar.core.findings import Level, Reason

AlertKind = Literal["raised", "worse", "recovered", "ended"]
# A front end that skipped some snapshots still finds what happened in them.
MOST_EVENTS = 50


@dataclass(frozen=True, slots=True)
class Alert:
    """`key` is the same for all that is said about one thing: the newer replaces the older."""

    code: str  # of the reason, or "ended"
    level: Level
    pid: int | None
    started: float | None
    reason: Reason | None
    kind: AlertKind
    key: str
    name: str | None = None  # of the process, which may have ended


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A process that has ended, and what was last known of it."""

    pid: int
    started: float | None
    name: str
    ended: float  # when it was first missed; if nobody looked then, when it was last seen
    was_seen: bool = True  # False: it ended while nobody looked
    peak: int | None = None  # bytes
    held: int | None = None  # at the last look
    how: str = "unknown"  # stopped: we asked it to; pressure: memory was short


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; whoever shows events remembers the last number it has shown."""

    number: int
    time: float
    what: Alert | Freed | EndedProcess


class EventLog:
    """Numbers the events and keeps the last ones; filled by the ticking thread alone."""

    def __init__(self) -> None:
        self.recent: tuple[Event, ...] = ()  # oldest first
        self._count = 0

    def add(self, time: float, what: Alert | Freed | EndedProcess) -> None:
        self._count += 1
        self.recent = (*self.recent, Event(self._count, time, what))[-MOST_EVENTS:]
