"""What is worth interrupting a person for, from one snapshot to the next. Pure.

The reasons have their own hysteresis (health.py); what is added here is memory of what was said:
each thing once, again only after a cool-down or when it is worse, and its end only if it was told.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpsbar.core.events import Alert, AlertKind
from mpsbar.core.findings import Level, Reason, Value
from mpsbar.core.health import FILLING_LEAST, LEAK_SPAN, LEVELS, SWAP_SPAN
from mpsbar.core.process_tracker import SCANS_TO_END, ProcessTracker, TrackedProcess
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import GAP, gpu_memory

if TYPE_CHECKING:
    from mpsbar.core.settings import Settings

# A trend that begins anew cannot be seen for this long, so its absence means nothing until then.
_BLIND = {
    "leak": LEAK_SPAN,
    "swap_growing": SWAP_SPAN,
    "memory_filling": FILLING_LEAST,
    "gpu_filling": FILLING_LEAST,
}
_NOT_JUDGED = ("unknown", "not_judged")


def is_known_absent(reason: Reason, snapshot: Snapshot, resumed: float) -> bool:
    """Of a reason that the snapshot lacks; `resumed`: since when there has been no gap."""
    if any(one.code in _NOT_JUDGED for one in snapshot.health.reasons):
        return False
    if snapshot.time - resumed < _BLIND.get(reason.code, 0.0):
        return False
    if reason.pid is not None:
        return _is_read(snapshot, reason.pid)
    machine = snapshot.machine
    if reason.code == "pressure":
        return machine.pressure is not None
    if reason.code == "swap_growing":
        return machine.swap_used is not None
    if reason.code == "memory_filling":
        return machine.memory_available is not None
    return gpu_memory(snapshot) is not None


def _is_read(snapshot: Snapshot, pid: int) -> bool:
    """A worker that does not answer keeps its last values, and its trends fade."""
    worker = next((one for one in snapshot.workers if one.pid == pid), None)
    if worker is not None:
        return worker.state == "live" and worker.process is not None
    return any(one.pid == pid and one.footprint is not None for one in snapshot.unconnected)


Identity = tuple[str, int | None, float | None]  # cause, pid, started

CAUSES: dict[str, str] = {
    "pressure": "pressure",
    "memory_filling": "memory",
    "gpu_filling": "memory",
    "process_memory": "memory",
    "gpu_memory": "memory",
    "swap_growing": "swap",
    "leak": "leak",
    "cache": "cache",
}
ALL_CAUSES = tuple(dict.fromkeys(CAUSES.values()))
COOL_DOWN = 600.0
# How long a reason must stay away before its end is told: several looks, even on battery.
SETTLED = 30.0
# After sleep, or with a clock set anew, the first looks find everything halfway.
QUIET = 10.0
# No more than this many new ones a minute; the others wait, the worst are told first.
MOST_PER_MINUTE = 6
_MOST_KEPT = 500
_MOST_WATCHED = 200


@dataclass(slots=True)
class _Told:
    """What was said about one thing, and since when it has been away."""

    reason: Reason
    level: Level
    times: dict[Level, float] = field(default_factory=dict)
    is_open: bool = True  # told, and neither over nor ended
    away: float | None = None
    milder: float | None = None


@dataclass(slots=True)
class _Watch:
    """A process whose end someone wants to be notified of."""

    name: str
    tracked: TrackedProcess | None = None  # None: not seen since it is watched
    missed: int = 0  # scans in a row that did not find it


class Alerts:
    """The one alert engine, in the monitor: `consider` on the ticking thread, the rest on any."""

    def __init__(self, causes: Iterable[str] = ALL_CAUSES, cool_down: float = COOL_DOWN) -> None:
        self.causes = frozenset(causes)
        self.cool_down = cool_down
        self._told: dict[Identity, _Told] = {}
        self._watched: dict[tuple[int, float | None], _Watch] = {}  # by pid and start
        self._raised: deque[float] = deque(maxlen=MOST_PER_MINUTE)
        self._last: float | None = None
        self._resumed = 0.0  # since when there has been no gap
        self._quiet_until = float("-inf")

    def consider(self, snapshot: Snapshot, tracker: ProcessTracker) -> tuple[Alert, ...]:
        """What is to be told now; the tracker has seen this snapshot before."""
        now = snapshot.time
        self._follow_clock(now)
        self._follow_watched(snapshot, tracker)
        found = self._find(snapshot, tracker)
        alerts: list[Alert] = []
        if now >= self._quiet_until:
            alerts += self._take_ended()
            for identity, reason in found.items():
                alerts += self._rise(identity, reason, now, snapshot.names)
        for identity in [one for one in self._told if one not in found]:
            alerts += self._fall(identity, snapshot, tracker)
        self._forget(now)
        return tuple(alerts)

    def apply(self, settings: "Settings") -> None:
        """What is switched off is from now on neither notified nor recorded."""
        self.causes = frozenset(settings.alert_causes if settings.alerts else ())
        self.cool_down = settings.cool_down

    def watch_end(self, pid: int, started: float | None, name: str) -> None:
        while len(self._watched) >= _MOST_WATCHED:
            self._watched.pop(next(iter(self._watched)), None)
        self._watched[pid, started] = _Watch(name)

    def unwatch(self, pid: int, started: float | None) -> None:
        self._watched.pop((pid, started), None)

    def _follow_watched(self, snapshot: Snapshot, tracker: ProcessTracker) -> None:
        for (pid, started), watch in list(self._watched.items()):
            present = tracker.present.get(pid)
            if watch.tracked is None:
                watch.tracked = tracker.find(pid, started)
            if watch.tracked is not None and watch.tracked is present:
                watch.missed = 0
            elif watch.tracked is not None or present is not None:  # it was there, or is another
                watch.missed = SCANS_TO_END
            elif snapshot.processes is not None:
                watch.missed += 1

    def _take_ended(self) -> list[Alert]:
        """Each is told once."""
        alerts = []
        for (pid, started), watch in list(self._watched.items()):
            if watch.missed >= SCANS_TO_END:
                self.unwatch(pid, started)
                alerts.append(_say_ended(pid, started, watch))
        return alerts

    def _follow_clock(self, now: float) -> None:
        if self._last is None:
            self._resumed = now
        elif not 0 <= now - self._last <= GAP:
            self._resumed, self._quiet_until = now, now + QUIET
            self._raised = deque((min(t, now) for t in self._raised), MOST_PER_MINUTE)
            for told in self._told.values():
                told.away = told.milder = None
                told.times = {level: min(time, now) for level, time in told.times.items()}
        self._last = now

    def _find(self, snapshot: Snapshot, tracker: ProcessTracker) -> dict[Identity, Reason]:
        """The worst reason for each thing; they come worst first."""
        found = dict[Identity, Reason]()
        for reason in snapshot.health.reasons:
            cause = CAUSES.get(reason.code)
            if cause in self.causes and cause is not None and reason.level != "ok":
                identity = self._identify(cause, reason.pid, tracker)
                found.setdefault(identity, reason)
                if identity in self._told:
                    self._told[identity].away = None
        return found

    def _identify(self, cause: str, pid: int | None, tracker: ProcessTracker) -> Identity:
        """By pid and start; as long as the start is not known, by pid."""
        tracked = None if pid is None else tracker.present.get(pid)
        started = None if tracked is None else tracked.started
        if started is not None and (cause, pid, None) in self._told:
            self._told.setdefault((cause, pid, started), self._told.pop((cause, pid, None)))
        return (cause, pid, started)

    def _rise(
        self, identity: Identity, reason: Reason, now: float, names: dict[int, str]
    ) -> list[Alert]:
        told = self._told.get(identity)
        if told is not None and not self._may_say_again(told, reason, now):
            return []
        if not self._has_room(now):
            return []
        kind: AlertKind = "raised" if told is None or self._is_over(told, now) else "worse"
        self._raised.append(now)
        times = {} if told is None else told.times
        self._told[identity] = _Told(reason, reason.level, times | {reason.level: now})
        return [_say(identity, reason, kind, names)]

    def _may_say_again(self, told: _Told, reason: Reason, now: float) -> bool:
        if told.is_open:
            told.reason = reason
            if not _is_worse(told, reason.level, now):
                return False
        least = LEVELS.index(reason.level)
        said = [time for level, time in told.times.items() if LEVELS.index(level) >= least]
        return all(now - time >= self.cool_down for time in said)

    def _is_over(self, told: _Told, now: float) -> bool:
        return not told.is_open and now - max(told.times.values()) >= self.cool_down

    def _has_room(self, now: float) -> bool:
        return len(self._raised) < MOST_PER_MINUTE or now - self._raised[0] >= 60.0

    def _fall(self, identity: Identity, snapshot: Snapshot, tracker: ProcessTracker) -> list[Alert]:
        told, now = self._told[identity], snapshot.time
        cause, pid, started = identity
        if not told.is_open:
            return []
        tracked = None if pid is None else tracker.find(pid, started)
        has_ended = pid is not None and tracked is None
        if has_ended or cause not in self.causes:
            told.is_open = False  # who ended did not recover
            return []
        was_missed = tracked is not None and tracked.last != now
        if was_missed or not is_known_absent(told.reason, snapshot, self._resumed):
            told.away = None
            return []
        if told.away is None:
            told.away = now
        if now - told.away < SETTLED or now < self._quiet_until:
            return []
        told.is_open = False
        return [_say(identity, told.reason, "recovered", snapshot.names)]

    def _forget(self, now: float) -> None:
        """What is over, once it may be said anew."""
        for identity, told in list(self._told.items()):
            said = max(told.times.values())
            if not told.is_open and now - said >= self.cool_down:
                del self._told[identity]
        while len(self._told) > _MOST_KEPT:
            del self._told[next(iter(self._told))]


def _is_worse(told: _Told, level: Level, now: float) -> bool:
    """Milder for a while is milder; for a moment it is nothing."""
    if LEVELS.index(level) > LEVELS.index(told.level):
        return True
    if level == told.level:
        told.milder = None
    elif told.milder is None:
        told.milder = now
    elif now - told.milder >= SETTLED:
        told.level, told.milder = level, None
    return False


def _say(identity: Identity, reason: Reason, kind: AlertKind, names: dict[int, str]) -> Alert:
    cause, pid, started = identity
    level: Level = "ok" if kind == "recovered" else reason.level
    name = None if pid is None else names.get(pid)
    return Alert(reason.code, level, pid, started, reason, kind, _key(cause, pid, started), name)


def _say_ended(pid: int, started: float | None, watch: _Watch) -> Alert:
    values: dict[str, Value] = {}
    if watch.tracked is not None:
        values = {"held": watch.tracked.known["held"], "peak": watch.tracked.footprint_peak}
    key, reason = _key("ended", pid, started), Reason("ended", "ok", values, pid)
    return Alert("ended", "ok", pid, started, reason, "ended", key, watch.name)


def _key(cause: str, pid: int | None, started: float | None) -> str:
    parts = (cause, pid, None if started is None else int(started))
    return "-".join(str(part) for part in parts if part is not None)
