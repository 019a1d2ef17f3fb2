"""What is worth interrupting a person for, from one snapshot to the next. Pure.

The reasons have their own hysteresis (health.py); what is added here is memory of what was said:
each thing once, again only after a cool-down or when it is worse, and its end only if it was told.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from mpsbar.model.absence import is_known_absent
from mpsbar.model.endings import LOOKS, Ending, Endings, find, read_started
from mpsbar.model.health import LEVELS
from mpsbar.model.history import GAP
from mpsbar.model.reason import Level, Reason, Value
from mpsbar.model.snapshot import Snapshot

Kind = Literal["raised", "worse", "recovered", "ended"]
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


@dataclass(frozen=True, slots=True)
class Alert:
    """`key` is the same for all that is said about one thing: the newer replaces the older."""

    code: str  # of the reason, or "ended"
    level: Level
    pid: int | None
    started: float | None
    reason: Reason | None
    kind: Kind
    key: str
    name: str | None = None  # of the process, which may have ended


@dataclass(slots=True)
class _Told:
    """What was said about one thing, and since when it has been away."""

    reason: Reason
    level: Level
    times: dict[Level, float] = field(default_factory=dict)
    is_open: bool = True  # told, and neither over nor ended
    away: float | None = None
    milder: float | None = None
    missed: int = 0  # looks in a row that did not find the process


class Alerts:
    """`consider` on one thread, the rest on any; `causes` and `cool_down` may be changed."""

    def __init__(self, causes: Iterable[str] = ALL_CAUSES, cool_down: float = COOL_DOWN) -> None:
        self.causes = frozenset(causes)
        self.cool_down = cool_down
        self._told: dict[Identity, _Told] = {}
        self._endings = Endings()
        self._raised: deque[float] = deque(maxlen=MOST_PER_MINUTE)
        self._last: float | None = None
        self._resumed = 0.0  # since when there has been no gap
        self._quiet_until = float("-inf")

    def consider(self, snapshot: Snapshot) -> tuple[Alert, ...]:
        now = snapshot.time
        self._follow_clock(now)
        self._endings.look(snapshot)
        found = self._find(snapshot)
        alerts: list[Alert] = []
        if now >= self._quiet_until:
            alerts += [_say_ended(ending) for ending in self._endings.take()]
            for identity, reason in found.items():
                alerts += self._rise(identity, reason, now, snapshot.names)
        for identity in [one for one in self._told if one not in found]:
            alerts += self._fall(identity, snapshot)
        self._forget(now)
        return tuple(alerts)

    def watch_end(self, pid: int, started: float | None, name: str) -> None:
        self._endings.watch(pid, started, name)

    def unwatch(self, pid: int, started: float | None) -> None:
        self._endings.unwatch(pid, started)

    def is_watched(self, pid: int, started: float | None) -> bool:
        return self._endings.is_watched(pid, started)

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

    def _find(self, snapshot: Snapshot) -> dict[Identity, Reason]:
        """The worst reason for each thing; they come worst first."""
        starts, found = read_started(snapshot), dict[Identity, Reason]()
        for reason in snapshot.health.reasons:
            cause = CAUSES.get(reason.code)
            if cause in self.causes and cause is not None and reason.level != "ok":
                identity = self._identify(cause, reason.pid, starts)
                found.setdefault(identity, reason)
                if identity in self._told:
                    self._told[identity].away, self._told[identity].missed = None, 0
        return found

    def _identify(self, cause: str, pid: int | None, starts: dict[int, float]) -> Identity:
        """By pid and start; where the start is not known (now, or when it was told), by pid."""
        if pid is None:
            return (cause, None, None)
        started = starts.get(pid)
        if started is None:
            known = [one for one in self._told if one[:2] == (cause, pid)]
            return known[-1] if known else (cause, pid, None)
        if (cause, pid, None) in self._told:
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
        kind: Kind = "raised" if told is None or self._is_over(told, now) else "worse"
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

    def _fall(self, identity: Identity, snapshot: Snapshot) -> list[Alert]:
        told, now = self._told[identity], snapshot.time
        cause, pid, started = identity
        if not told.is_open:
            return []
        presence = "there" if pid is None else find(snapshot, pid, started)
        told.missed = told.missed + 1 if presence == "missing" else 0
        if presence == "replaced" or told.missed >= LOOKS or cause not in self.causes:
            told.is_open = False  # who ended did not recover
            return []
        if presence != "there" or not is_known_absent(told.reason, snapshot, self._resumed):
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


def _say(identity: Identity, reason: Reason, kind: Kind, names: dict[int, str]) -> Alert:
    cause, pid, started = identity
    level: Level = "ok" if kind == "recovered" else reason.level
    name = None if pid is None else names.get(pid)
    return Alert(reason.code, level, pid, started, reason, kind, _key(cause, pid, started), name)


def _say_ended(ending: Ending) -> Alert:
    values: dict[str, Value] = {"held": ending.held, "peak": ending.footprint_peak}
    key = _key("ended", ending.pid, ending.started)
    reason = Reason("ended", "ok", values, ending.pid)
    return Alert("ended", "ok", ending.pid, ending.started, reason, "ended", key, ending.name)


def _key(cause: str, pid: int | None, started: float | None) -> str:
    parts = (cause, pid, None if started is None else int(started))
    return "-".join(str(part) for part in parts if part is not None)
