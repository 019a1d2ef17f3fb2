"""Decides what is worth interrupting a person for, from one snapshot to the next. Pure.

Reasons have their own hysteresis (health.py). This module adds the memory of what was alerted:
each problem is alerted once, again only after a cool-down or when it gets worse, and "resolved"
is sent only for what was alerted before.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpsbar.core import slow_down
from mpsbar.core.actions import WatchEnd
from mpsbar.core.events import ALERT_CAUSES, COOL_DOWN, Alert, AlertKind, EndedProcess
from mpsbar.core.findings import Level, Reason, Value
from mpsbar.core.health import LEAK_SPAN, LEVELS, MIN_FILLING, SWAP_SPAN
from mpsbar.core.process_tracker import SCANS_TO_END, EndedPairs, ProcessTracker, TrackedProcess
from mpsbar.core.sleep_gap import has_jumped
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import gpu_memory

if TYPE_CHECKING:
    from mpsbar.core.settings import Settings
# The setting that switches a reason's alerts on or off, by the reason's code.
CAUSES: dict[str, str] = {
    "pressure": "pressure",
    "memory_filling": "memory",
    "gpu_filling": "memory",
    "process_memory": "memory",
    "gpu_memory": "memory",
    "swap_growing": "swap",
    "leak": "leak",
    "slowed": "speed",
    "cache": "cache",
}
# No alert for swap_used: it may last for days, and growth is alerted.
# Alerts about single events, which are no health reasons, with the setting that switches each.
SINGLE_EVENTS = {"ended": "ended", "gpu_reset": "reset"}
# Seconds. A run that fails sooner is still watched by the person who started it.
MIN_FAILED_SECONDS = 60.0
# Seconds a reason must be absent before it counts as resolved: several ticks, even on battery.
SETTLED = 30.0
# Seconds without alerts after sleep or a changed clock: the first readings are incomplete.
QUIET = 10.0
# The remaining alerts wait for the next minute; the worst come first.
MAX_PER_MINUTE = 6
_MAX_STATES = 500
_MAX_WATCHED = 200
# A trend that starts over cannot be detected for this long, so its absence means nothing.
_UNDETECTABLE_SECONDS = {
    "leak": LEAK_SPAN,
    "slowed": slow_down.UNDETECTABLE,
    "swap_growing": SWAP_SPAN,
    "memory_filling": MIN_FILLING,
    "gpu_filling": MIN_FILLING,
}
_NOT_JUDGED = ("unknown", "not_judged")

Identity = tuple[str, int | None, float | None]  # cause, pid, started


@dataclass(slots=True)
class _AlertState:
    """What was alerted about one problem, and since when it has been absent or milder."""

    reason: Reason
    level: Level
    times: dict[Level, float] = field(default_factory=dict)  # of the last alert at each level
    is_open: bool = True  # alerted, and neither resolved nor ended
    absent_since: float | None = None
    milder_since: float | None = None


@dataclass(slots=True)
class _WatchedProcess:
    """A process whose end someone wants to be notified of."""

    name: str
    tracked: TrackedProcess | None = None  # None: not seen since it is watched
    missed: int = 0  # scans in a row that did not find it
    end: EndedProcess | None = None  # with its verdict; its alert waits until that is settled


class Alerts:
    """The alert engine of the monitor: `consider` runs on the ticking thread, the rest on any."""

    def __init__(self) -> None:
        self.causes = frozenset(ALERT_CAUSES)
        self.cool_down = COOL_DOWN
        self._states: dict[Identity, _AlertState] = {}
        self._watched: dict[tuple[int, float | None], _WatchedProcess] = {}  # by pid and start
        self._failed: list[Alert] = []  # of runs; they wait for the end of a quiet time
        self._raised: deque[float] = deque(maxlen=MAX_PER_MINUTE)  # times of the last alerts
        self._last: float | None = None
        self._resumed = 0.0  # since when there has been no gap
        self._quiet_until = float("-inf")

    def consider(
        self, snapshot: Snapshot, tracker: ProcessTracker, ended: "EndedPairs | tuple[()]" = ()
    ) -> tuple[Alert, ...]:
        """Returns the alerts due now; the tracker must have seen this snapshot already.

        `ended` are the processes that have just ended, or of which more is known now.
        """
        now = snapshot.time
        self._check_clock(now)
        self._follow_watched(snapshot, tracker)
        self._failed += self._find_failed(ended)
        reasons = self._find_reasons(snapshot, tracker)
        alerts: list[Alert] = []
        if now >= self._quiet_until:
            alerts += self._take_ended()
            alerts += self._failed
            self._failed = []
            for identity, reason in reasons.items():
                alerts += self._raise(identity, reason, now, snapshot.names)
        for identity in [identity for identity in self._states if identity not in reasons]:
            alerts += self._resolve(identity, snapshot, tracker)
        self._forget_old(now)
        return tuple(alerts)

    def apply(self, settings: "Settings") -> None:
        """Applies settings; causes that are off are neither notified nor recorded from now on."""
        self.causes = frozenset(settings.alert_causes if settings.alerts else ())
        self.cool_down = settings.cool_down

    def watch_end(self, request: WatchEnd) -> None:
        """Begins or ends the watch for the end of a process."""
        if not request.on:
            self._watched.pop((request.pid, request.started), None)
            return
        while len(self._watched) >= _MAX_WATCHED:
            self._watched.pop(next(iter(self._watched)), None)
        self._watched[request.pid, request.started] = _WatchedProcess(request.name)

    def _follow_watched(self, snapshot: Snapshot, tracker: ProcessTracker) -> None:
        for (pid, started), watched in list(self._watched.items()):
            present = tracker.present.get(pid)
            if watched.tracked is None:
                watched.tracked = tracker.find(pid, started)
            if watched.tracked is not None and watched.tracked is present:
                watched.missed = 0
            elif watched.tracked is not None or present is not None:  # ended, or the pid reused
                watched.missed = SCANS_TO_END
            elif snapshot.processes is not None:
                watched.missed += 1

    def build_reset(self, names: list[str], now: float) -> Alert | None:
        """Builds the alert that the GPU was reset; None where such alerts are switched off."""
        if "reset" not in self.causes:
            return None
        values: dict[str, Value] = {"time": now, "names": ", ".join(names[:5]), "count": len(names)}
        reason = Reason("gpu_reset", "warning", values)
        return Alert("gpu_reset", "warning", None, None, reason, "raised", f"reset-{int(now)}")

    def _find_failed(self, ended: "EndedPairs | tuple[()]") -> list[Alert]:
        """Returns alerts for longer runs that failed; watched ones have alerts of their own."""
        alerts = []
        for tracked, end in ended:
            for key in ((tracked.pid, tracked.started), (tracked.pid, None)):
                if key in self._watched:
                    self._watched[key].end = end
                    break
            else:
                if "ended" in self.causes and _has_failed(tracked, end):
                    alerts.append(_build_failed(end))
        return alerts

    def _take_ended(self) -> list[Alert]:
        """Returns the alerts of watched processes that ended, and stops watching those."""
        alerts = []
        for (pid, started), watched in list(self._watched.items()):
            if watched.missed < SCANS_TO_END:
                continue
            if watched.end is None or watched.end.is_settled:
                self._watched.pop((pid, started), None)
                alerts.append(_build_ended(pid, started, watched))
        return alerts

    def _check_clock(self, now: float) -> None:
        """Starts absences over after a gap or a jump of the clock; leaves no time in the future."""
        if self._last is None:
            self._resumed = now
        elif has_jumped(self._last, now):
            self._resumed, self._quiet_until = now, now + QUIET
            self._raised = deque((min(t, now) for t in self._raised), MAX_PER_MINUTE)
            for state in self._states.values():
                state.absent_since = state.milder_since = None
                state.times = {level: min(time, now) for level, time in state.times.items()}
        self._last = now

    def _find_reasons(self, snapshot: Snapshot, tracker: ProcessTracker) -> dict[Identity, Reason]:
        """Returns the worst reason for each identity; the snapshot lists the worst first."""
        reasons = dict[Identity, Reason]()
        for reason in snapshot.health.reasons:
            cause = CAUSES.get(reason.code)
            if cause in self.causes and cause is not None and reason.level != "ok":
                identity = self._identify(cause, reason.pid, tracker)
                reasons.setdefault(identity, reason)
                if identity in self._states:
                    self._states[identity].absent_since = None
        return reasons

    def _identify(self, cause: str, pid: int | None, tracker: ProcessTracker) -> Identity:
        """Identifies a problem by pid and start, or by pid alone while the start is not known."""
        tracked = None if pid is None else tracker.present.get(pid)
        started = None if tracked is None else tracked.started
        if started is not None and (cause, pid, None) in self._states:
            self._states.setdefault((cause, pid, started), self._states.pop((cause, pid, None)))
        return (cause, pid, started)

    def _raise(
        self, identity: Identity, reason: Reason, now: float, names: dict[int, str]
    ) -> list[Alert]:
        state = self._states.get(identity)
        if state is not None and not self._may_repeat(state, reason, now):
            return []
        if len(self._raised) == MAX_PER_MINUTE and now - self._raised[0] < 60.0:
            return []
        is_new = state is None or (not state.is_open and self._has_cooled_down(state, now))
        self._raised.append(now)
        times = {} if state is None else state.times
        self._states[identity] = _AlertState(reason, reason.level, times | {reason.level: now})
        return [_build_alert(identity, reason, "raised" if is_new else "worse", names)]

    def _may_repeat(self, state: _AlertState, reason: Reason, now: float) -> bool:
        if state.is_open:
            state.reason = reason
            if not _is_worse(state, reason.level, now):
                return False
        rank = LEVELS.index(reason.level)
        times = [time for level, time in state.times.items() if LEVELS.index(level) >= rank]
        return all(now - time >= self.cool_down for time in times)

    def _has_cooled_down(self, state: _AlertState, now: float) -> bool:
        return now - max(state.times.values()) >= self.cool_down

    def _resolve(
        self, identity: Identity, snapshot: Snapshot, tracker: ProcessTracker
    ) -> list[Alert]:
        """Returns the "resolved" alert, once the reason is known to be absent for long enough."""
        state, now = self._states[identity], snapshot.time
        cause, pid, started = identity
        if not state.is_open:
            return []
        tracked = None if pid is None else tracker.find(pid, started)
        has_ended = pid is not None and tracked is None
        if has_ended or cause not in self.causes:
            state.is_open = False  # a process that ended did not recover
            return []
        was_missed = tracked is not None and tracked.last != now
        if was_missed or not is_known_absent(state.reason, snapshot, self._resumed):
            state.absent_since = None
            return []
        if state.absent_since is None:
            state.absent_since = now
        if now - state.absent_since < SETTLED or now < self._quiet_until:
            return []
        state.is_open = False
        return [_build_alert(identity, state.reason, "recovered", snapshot.names)]

    def _forget_old(self, now: float) -> None:
        """Drops what is resolved and may be alerted anew, and the oldest beyond the limit."""
        for identity, state in list(self._states.items()):
            if not state.is_open and self._has_cooled_down(state, now):
                del self._states[identity]
        while len(self._states) > _MAX_STATES:
            del self._states[next(iter(self._states))]


def is_known_absent(reason: Reason, snapshot: Snapshot, resumed: float) -> bool:
    """Returns whether a reason that is not in the snapshot is really gone, not merely unreadable.

    `resumed` is the time since which there has been no gap between snapshots.
    """
    if any(other.code in _NOT_JUDGED for other in snapshot.health.reasons):
        return False
    if snapshot.time - resumed < _UNDETECTABLE_SECONDS.get(reason.code, 0.0):
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
    """Returns whether this process was read; a worker without an answer repeats its last values."""
    worker = next((worker for worker in snapshot.workers if worker.pid == pid), None)
    if worker is not None:
        return worker.state == "live" and worker.process is not None
    return any(p.pid == pid and p.footprint is not None for p in snapshot.unconnected)


def _is_worse(state: _AlertState, level: Level, now: float) -> bool:
    """Returns whether a level is worse than the last; a milder one counts once it has lasted."""
    if LEVELS.index(level) > LEVELS.index(state.level):
        return True
    if level == state.level:
        state.milder_since = None
    elif state.milder_since is None:
        state.milder_since = now
    elif now - state.milder_since >= SETTLED:
        state.level, state.milder_since = level, None
    return False


def _build_alert(
    identity: Identity, reason: Reason, kind: AlertKind, names: dict[int, str]
) -> Alert:
    cause, pid, started = identity
    level: Level = "ok" if kind == "recovered" else reason.level
    name = None if pid is None else names.get(pid)
    return Alert(reason.code, level, pid, started, reason, kind, _key(cause, pid, started), name)


def _build_ended(pid: int, started: float | None, watched: _WatchedProcess) -> Alert:
    values: dict[str, Value] = {}
    if watched.tracked is not None:
        values = {"held": watched.tracked.known["held"], "peak": watched.tracked.footprint_peak}
    if watched.end is not None:
        values["ran"] = watched.end.ran
    verdict = None if watched.end is None else watched.end.verdict
    level: Level = "ok" if verdict is None or verdict.is_normal else "warning"
    key, reason = _key("ended", pid, started), Reason("ended", level, values, pid)
    return Alert("ended", level, pid, started, reason, "ended", key, watched.name, verdict)


def _has_failed(tracked: TrackedProcess, end: EndedProcess) -> bool:
    is_run = tracked.is_connected and tracked.is_root and (end.ran or 0.0) >= MIN_FAILED_SECONDS
    is_known = end.is_settled and end.verdict is not None
    return is_run and is_known and end.verdict is not None and not end.verdict.is_normal


def _build_failed(end: EndedProcess) -> Alert:
    values: dict[str, Value] = {"held": end.held, "peak": end.peak, "ran": end.ran}
    key, reason = _key("ended", end.pid, end.started), Reason("ended", "warning", values, end.pid)
    return Alert(
        "ended", "warning", end.pid, end.started, reason, "ended", key, end.name, end.verdict
    )


def _key(cause: str, pid: int | None, started: float | None) -> str:
    parts = (cause, pid, None if started is None else int(started))
    return "-".join(str(part) for part in parts if part is not None)
