"""Events while mpsbar ran: alerts, frees, limits and ends, each with a number. Pure."""

from dataclasses import dataclass, replace
from typing import Literal

from mpsbar.core.actions import Freed, Limited
from mpsbar.core.findings import Level, Reason
from mpsbar.core.verdicts import EndVerdict

AlertKind = Literal["raised", "worse", "recovered", "ended"]
# What alerts can be switched on and off for, in the order of the menu.
ALERT_CAUSES = ("pressure", "memory", "swap", "leak", "speed", "cache", "ended", "reset")
COOL_DOWN = 600.0  # seconds between two alerts about one process and cause, unless set otherwise
# A front end that skipped some snapshots still finds the events of those. Alerts are counted
# apart: many frees, which can come by themselves, push none out of the menu's Recent Alerts.
MAX_ALERTS = 50
MAX_OTHERS = 200  # Free All asks many processes in one go


@dataclass(frozen=True, slots=True)
class Alert:
    """One notification. All alerts about one problem share `key`: the newer replaces the older."""

    code: str  # of the reason, or "ended"
    level: Level
    pid: int | None
    started: float | None
    reason: Reason | None
    kind: AlertKind
    key: str
    name: str | None = None  # of the process, which may have ended
    verdict: EndVerdict | None = None  # how it ended


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A process that has ended, and what was last known of it."""

    pid: int
    started: float | None
    name: str
    ended: float  # when a scan first missed it; if mpsbar did not run then, when it was last seen
    was_seen: bool = True  # False: it ended while mpsbar was not running
    peak: int | None = None  # bytes
    held: int | None = None  # bytes when it was last read
    how: str = "unknown"  # the verdict's code; in older files also "pressure"
    verdict: EndVerdict | None = None  # None: recorded by an older mpsbar
    is_settled: bool = True  # False: a report of the system may still change the verdict
    ran: float | None = None  # seconds that it ran, if its start is known

    def with_verdict(self, verdict: EndVerdict) -> "EndedProcess":
        return replace(self, verdict=verdict, how=verdict.code)


@dataclass(frozen=True, slots=True)
class Event:
    """One event. A front end remembers the number of the last event it has shown."""

    number: int
    time: float
    what: Alert | Freed | Limited | EndedProcess


class EventLog:
    """Numbers the events and keeps the newest; only the ticking thread adds to it."""

    def __init__(self) -> None:
        self.recent: tuple[Event, ...] = ()  # oldest first
        self._count = 0

    def add(self, time: float, what: Alert | Freed | Limited | EndedProcess) -> None:
        self._count += 1
        is_alert = isinstance(what, Alert)
        most = MAX_ALERTS if is_alert else MAX_OTHERS
        alike = [event for event in self.recent if isinstance(event.what, Alert) == is_alert]
        oldest = alike[0] if len(alike) >= most else None
        kept = (event for event in self.recent if event is not oldest)
        self.recent = (*kept, Event(self._count, time, what))
