"""Decides which caches to free without being asked, from one snapshot to the next. Pure.

Off unless switched on. Only while a process computes nothing: its agent refuses otherwise, but
asking costs something too. A cache that fills again at once is left alone, because freeing it
would only slow the process down.
"""

from dataclasses import dataclass

from mpsbar.core.actions import AutoFreeRule, Free, FreeCause, Freed, SetAutoFree
from mpsbar.core.advice import WORTH_FREEING, is_short_of_memory
from mpsbar.core.machine import is_same_start
from mpsbar.core.settings import Settings
from mpsbar.core.sleep_gap import has_jumped
from mpsbar.core.snapshot import AutoFreeStatus, Snapshot, Worker

# Seconds without any sign of work: some readings for a cache that is too large, a minute for idle.
PAUSE_SECONDS = 5.0
IDLE_SECONDS = 60.0
# Between two frees of one process, whoever asked for the last.
BETWEEN_SECONDS = 60.0
# Above this share of the GPU a process computes; drawing a window takes less.
BUSY_PERCENT = 2.0
# A cache that must be freed again this soon after a free has refilled at once.
REFILL_SECONDS = 300.0
MAX_REFILLS = 3
LEFT_ALONE_SECONDS = 3600.0

Key = tuple[int, float | None]  # pid and start


@dataclass(slots=True)
class _ProcessState:
    """What is known of one process; the same pid with another start is another process."""

    started: float | None = None  # None: not known yet
    counters: object = None
    quiet_since: float = 0.0
    asked: float = float("-inf")
    freed: float = float("-inf")  # when it was last freed automatically
    refills: int = 0
    returned: int = 0  # bytes, by the frees after which it refilled
    left_alone_until: float = float("-inf")


class AutoFree:
    """`consider` and `note` run on the ticking thread; `apply` and `set_rule` on any."""

    def __init__(self) -> None:
        self._settings = self._considered = Settings()
        self._rules: dict[Key, AutoFreeRule] = {}
        self._states: dict[int, _ProcessState] = {}  # by pid
        self._last: float | None = None

    def apply(self, settings: Settings) -> None:
        self._settings = settings

    def set_rule(self, action: SetAutoFree) -> None:
        """Sets the rule of one process; what was given up before is tried again."""
        key = (action.pid, action.started)
        self._states.pop(action.pid, None)
        self._rules.pop((action.pid, None), None)  # chosen before its start was known
        if action.rule == AutoFreeRule():
            self._rules.pop(key, None)
        else:
            self._rules[key] = action.rule

    def set_rules(self, rules: dict[Key, AutoFreeRule]) -> None:
        """Replaces the rules of all processes; some were chosen in another program."""
        before = self._rules
        # Those for a process whose start is not known are nobody else's.
        own = {key: rule for key, rule in list(before.items()) if key[1] is None}
        self._rules = own | rules
        for key in before.keys() | rules.keys():
            if before.get(key) != self._rules.get(key):
                self._states.pop(key[0], None)

    def consider(self, snapshot: Snapshot) -> tuple[list[Free], list[Freed]]:
        """Returns what to free now, and which processes are left alone from now on."""
        self._check_clock(snapshot.time)
        self._forget_ended(snapshot)
        if self._settings != self._considered:  # what was given up is tried again
            self._considered = self._settings
            for state in list(self._states.values()):
                state.left_alone_until, state.refills = float("-inf"), 0
        frees, left_alone = list[Free](), list[Freed]()
        if snapshot.machine.recording is not None:
            return frees, left_alone
        for worker in snapshot.workers:
            state = self._follow(worker, snapshot.time)
            cause = self._find_cause(worker, snapshot, state)
            if cause is None or not self._may_free(worker, snapshot, state):
                continue
            if self._has_refilled(state, snapshot.time):
                left_alone.append(
                    Freed(worker.pid, worker.name, "refilled", state.returned, cause=cause)
                )
                continue
            state.asked = snapshot.time
            frees.append(Free(worker.pid, started=worker.started, cause=cause))
        return frees, left_alone

    def note(self, outcome: Freed, now: float) -> None:
        """Notes how a free ended; one that found the process busy has changed nothing."""
        if outcome.cause is None or outcome.state != "done":
            return
        state = self._states.get(outcome.pid)
        if state is not None:
            state.freed = now
            state.returned += outcome.freed or 0

    def find_statuses(self, snapshot: Snapshot) -> dict[int, AutoFreeStatus]:
        """Returns statuses by pid, without processes with the default rule that may be freed."""
        statuses: dict[int, AutoFreeStatus] = {}
        if not self._rules and not self._states:
            return statuses
        for worker in snapshot.workers:
            state = self._find(worker)
            is_left_alone = snapshot.time < state.left_alone_until
            status = AutoFreeStatus(self._find_rule(worker.pid, state), is_left_alone)
            if status != AutoFreeStatus():
                statuses[worker.pid] = status
        return statuses

    def _find(self, worker: Worker) -> _ProcessState:
        """Returns what is known of this process so far; a new state if that is nothing."""
        state = self._states.get(worker.pid)
        if state is None or not is_same_start(state.started, worker.started):
            return _ProcessState(worker.started)
        state.started = state.started if worker.started is None else worker.started
        return state

    def _find_rule(self, pid: int, state: _ProcessState) -> AutoFreeRule:
        """Returns the rule of a process; its start may not have been known when that was chosen."""
        chosen = self._rules.get((pid, state.started)) or self._rules.get((pid, None))
        return chosen or AutoFreeRule()

    def _follow(self, worker: Worker, now: float) -> _ProcessState:
        """Notes whether the process has computed since the last snapshot."""
        state = self._states[worker.pid] = self._find(worker)
        percent = worker.process.gpu_percent if worker.process is not None else None
        counters = (
            [(b.name, b.allocated, b.reserved, b.peak, b.activity) for b in worker.in_use],
            _count_progress(worker),
        )
        is_busy = worker.state != "live" or (percent is not None and percent >= BUSY_PERCENT)
        if is_busy or counters != state.counters:
            state.counters, state.quiet_since = counters, now
        return state

    def _find_cause(
        self, worker: Worker, snapshot: Snapshot, state: _ProcessState
    ) -> FreeCause | None:
        rule, cached = self._find_rule(worker.pid, state), worker.cached
        quiet = snapshot.time - state.quiet_since
        if not cached or quiet < PAUSE_SECONDS:
            return None
        settings = self._settings
        is_worth_it = cached >= WORTH_FREEING
        is_critical = snapshot.machine.pressure == "critical"
        if settings.free_at_critical_pressure and is_critical and is_worth_it:
            return "pressure"
        most = rule.keep_cache_below
        most = settings.keep_cache_bytes if most is None else most
        if most and cached > most:
            return "keep_below"
        idle = rule.free_when_idle
        if not (settings.free_when_idle if idle is None else idle) or quiet < IDLE_SECONDS:
            return None
        reasons = snapshot.health.reasons
        is_large = any(r.code == "cache" and r.pid == worker.pid for r in reasons)
        is_needed = is_short_of_memory(snapshot.health) and is_worth_it
        return "idle" if is_large or is_needed else None

    def _may_free(self, worker: Worker, snapshot: Snapshot, state: _ProcessState) -> bool:
        """Returns whether it may be freed now: once a minute, whoever asked for the last Free."""
        now, last = snapshot.time, worker.last_free
        others = float("-inf") if last is None else min(last.time, now)
        return (
            now >= state.left_alone_until
            and now - max(state.asked, others) >= BETWEEN_SECONDS
            and Free(worker.pid) not in snapshot.pending
            and (not worker.methods or "free" in worker.methods)
        )

    def _has_refilled(self, state: _ProcessState, now: float) -> bool:
        """Returns whether it refilled several times in a row: then it is left alone for an hour."""
        if now - state.freed >= REFILL_SECONDS:
            state.refills = state.returned = 0
            return False
        state.refills += 1
        if state.refills < MAX_REFILLS:
            return False
        state.refills, state.freed = 0, float("-inf")
        state.left_alone_until = now + LEFT_ALONE_SECONDS
        return True

    def _check_clock(self, now: float) -> None:
        """Starts idle times over after sleep or a change of the clock."""
        if self._last is not None and has_jumped(self._last, now):
            for state in self._states.values():
                state.quiet_since = now
                state.asked, state.freed = min(state.asked, now), min(state.freed, now)
                state.left_alone_until = min(state.left_alone_until, now + LEFT_ALONE_SECONDS)
        self._last = now

    def _forget_ended(self, snapshot: Snapshot) -> None:
        if snapshot.processes is None:
            return  # a failed scan is no evidence that a process ended
        starts: dict[int, float | None] = dict.fromkeys(p.pid for p in snapshot.processes)
        starts |= {worker.pid: worker.started for worker in snapshot.workers}
        for key in list(self._rules):
            if key[0] not in starts or not is_same_start(key[1], starts[key[0]]):
                self._rules.pop(key, None)
        for pid in list(self._states):
            if pid not in starts:
                self._states.pop(pid, None)


def _count_progress(worker: Worker) -> object:
    """Returns how far a run is, without its rates and times: those change without work too."""
    progress = worker.progress
    if progress is None:
        return None
    return progress.steps, *(bar and bar.done for bar in (progress.bar, progress.inner))
