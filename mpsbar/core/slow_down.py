"""Notices a run that became slower, and what changed at the same time. Pure."""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mpsbar.core.machine import is_same_start
from mpsbar.core.progress import RunProgress
from mpsbar.core.sleep_gap import has_jumped
from mpsbar.core.snapshot import Snapshot, Worker

# Seconds between two readings that are kept.
SPACING = 5.0
# Readings. The first minute is warm-up, two minutes make a steady speed, and two more (beside the
# minute over which an agent averages) a lasting change.
WARM_UP, MIN_STEADY, RECENT = 12, 24, 24
MAX_READINGS = 360
# Seconds after a gap in which a slow-down cannot be noticed.
UNDETECTABLE = (WARM_UP + MIN_STEADY + RECENT) * SPACING
MAX_PHASES = 4
# Slower: at most half; as before: at least three quarters, for a minute.
SLOWER, RECOVERED, RECOVERED_READINGS = 0.5, 0.75, 12
# A speed that scatters more than this has no steady value. Below STOPPED of it the run does not
# step at all: it evaluates, or saves.
SCATTER, STOPPED = 0.6, 0.02
# The last stretch of a run.
NEARLY_DONE, SECONDS_LEFT = 0.98, 60.0
# What counts as a change of the machine.
SWAP_GROWTH, GPU_SHARE = 512 << 20, 25.0
FALLBACKS_A_STEP = 0.2  # fewer slow nothing down
# Seconds before the slow-down with which the machine is compared, and those left out beside it.
BEFORE, BESIDE = 300.0, 30.0


@dataclass(frozen=True, slots=True)
class SlowDown:
    """A run at half its steady speed or less."""

    before: float  # a second
    now: float
    unit: str
    since: float
    # nap, swap, pressure, fallback, other, battery, free; None: none coincided
    cause: str | None = None
    growth: int | None = None  # of swap, in bytes
    other: str | None = None  # the name of the process that uses the GPU


class _Context(NamedTuple):
    """What may slow a run down, at one time."""

    time: float
    swap_used: int | None
    pressure: str | None
    on_battery: bool | None
    gpu: dict[int, float]  # by pid, percent
    fallbacks: dict[int, int]  # by pid, so far
    naps: dict[int, bool]  # by pid, where it is known


@dataclass(slots=True)
class _RunSpeeds:
    """The speeds of one process; those of each phase (training, validation) apart."""

    started: float | None  # None: not known yet
    phases: dict[str, deque[tuple[float, float]]] = field(default_factory=dict)
    slow: SlowDown | None = None
    slow_phase: str = ""


class SpeedWatch:
    """Follows the speed of each run; only the ticking thread uses it."""

    def __init__(self) -> None:
        self._runs: dict[int, _RunSpeeds] = {}  # by pid
        self._contexts: deque[_Context] = deque(maxlen=MAX_READINGS)

    def add(self, snapshot: Snapshot) -> None:
        """Adds one reading, at most every SPACING seconds."""
        now = snapshot.time
        if self._contexts:
            last = self._contexts[-1].time
            if 0 <= now - last < SPACING:
                return
            if has_jumped(last, now):
                self._contexts.clear()
                self._runs.clear()
        present = {worker.pid for worker in snapshot.workers if worker.state != "gone"}
        self._runs = {pid: run for pid, run in self._runs.items() if pid in present}
        if not any(worker.progress for worker in snapshot.workers):
            return
        self._contexts.append(_read_context(snapshot))
        for worker in snapshot.workers:
            if worker.state == "live" and worker.progress is not None:
                self._follow(worker, worker.progress, snapshot)

    def find(self, pid: int) -> SlowDown | None:
        run = self._runs.get(pid)
        return None if run is None else run.slow

    def _follow(self, worker: Worker, progress: RunProgress, snapshot: Snapshot) -> None:
        run = self._runs.get(worker.pid)
        if run is None or not is_same_start(run.started, worker.started):
            run = self._runs[worker.pid] = _RunSpeeds(worker.started)
        run.started = run.started if worker.started is None else worker.started
        if progress.speed is None or _is_nearly_done(progress):
            return
        rate, unit = progress.speed
        phase = _find_phase(progress, unit)
        readings = run.phases.setdefault(phase, deque(maxlen=MAX_READINGS))
        readings.append((snapshot.time, rate))
        while len(run.phases) > MAX_PHASES:
            del run.phases[next(iter(run.phases))]
        if run.slow is None:
            run.slow, run.slow_phase = _judge(readings, unit), phase
            if run.slow is not None:
                run.slow = self._explain(run.slow, worker, snapshot)
        elif run.slow_phase == phase:
            run.slow = _update(run.slow, readings)

    def _explain(self, slow: SlowDown, worker: Worker, snapshot: Snapshot) -> SlowDown:
        """Adds what changed on the machine when the run became slower, if one thing did."""
        earlier = [c for c in self._contexts if BESIDE <= slow.since - c.time <= BEFORE]
        later = [c for c in self._contexts if slow.since - c.time < BESIDE]
        if not earlier or not later:
            return slow
        naps = [[c.naps.get(worker.pid) for c in contexts] for contexts in (earlier, later)]
        if _changed(naps[0], naps[1], False):
            return replace(slow, cause="nap")
        swaps = [c.swap_used for c in earlier if c.swap_used is not None]
        swap = max((c.swap_used for c in later if c.swap_used is not None), default=None)
        if swaps and swap is not None and swap - _median(swaps) >= SWAP_GROWTH:
            return replace(slow, cause="swap", growth=int(swap - _median(swaps)))
        if _changed([c.pressure for c in earlier], [c.pressure for c in later], "normal"):
            return replace(slow, cause="pressure")
        if _falls_back_more(worker.pid, earlier, later, slow.now):
            return replace(slow, cause="fallback")
        other = _find_other(worker.pid, earlier, later)
        if other is not None:
            name = snapshot.names.get(other, f"process {other}")
            return replace(slow, cause="other", other=name)
        if _changed([c.on_battery for c in earlier], [c.on_battery for c in later], False):
            return replace(slow, cause="battery")
        free = worker.last_free
        if free is not None and free.freed and abs(slow.since - free.time) <= 3 * BESIDE:
            return replace(slow, cause="free")
        return slow


def _read_context(snapshot: Snapshot) -> _Context:
    machine = snapshot.machine
    shares = {p.pid: p.gpu_percent for p in snapshot.processes or () if p.gpu_percent is not None}
    fallbacks = {w.pid: w.fallbacks for w in snapshot.workers if w.fallbacks is not None}
    naps = {p.pid: p.is_napping for p in snapshot.processes or () if p.is_napping is not None}
    return _Context(
        snapshot.time, machine.swap_used, machine.pressure, machine.on_battery, shares, fallbacks,
        naps,
    )  # fmt: skip


def _is_nearly_done(progress: RunProgress) -> bool:
    left, fraction = progress.seconds_left, progress.fraction
    return (fraction is not None and fraction >= NEARLY_DONE) or (
        left is not None and left < SECONDS_LEFT
    )


def _find_phase(progress: RunProgress, unit: str) -> str:
    """Returns a name that "Epoch 3" and "Epoch 4" share, and "Validation" does not."""
    bar = progress.inner or progress.bar
    return f"{unit} {re.sub(r'[0-9]+', '', bar.name if bar else '')}"


def _judge(readings: deque[tuple[float, float]], unit: str) -> SlowDown | None:
    rates = [rate for _, rate in readings]
    earlier, recent = rates[WARM_UP:-RECENT], rates[-RECENT:]
    if len(earlier) < MIN_STEADY:
        return None
    usual = _median(earlier)
    lowest = sorted(earlier)[len(earlier) // 10]
    if lowest < SCATTER * usual or max(recent) > SLOWER * usual:
        return None
    now = _median(recent[-RECOVERED_READINGS:])
    if now < STOPPED * usual:
        return None
    return SlowDown(usual, now, unit, readings[-RECENT][0])


def _update(slow: SlowDown, readings: deque[tuple[float, float]]) -> SlowDown | None:
    """Returns the slow-down with its present speed; None once the run is as fast as before."""
    recent = [rate for _, rate in readings][-RECOVERED_READINGS:]
    if min(recent) >= RECOVERED * slow.before:
        readings.clear()
        return None
    return replace(slow, now=_median(recent))


def _changed(earlier: Sequence[object], later: Sequence[object], usual: object) -> bool:
    """Returns whether a value was the usual one before, and another for half of the time."""
    others = [value for value in later if value is not None and value != usual]
    return all(value == usual for value in earlier) and 2 * len(others) >= len(later)


def _find_other(pid: int, earlier: list[_Context], later: list[_Context]) -> int | None:
    """Returns the process whose share of the GPU grew most, if it grew enough."""
    others = {other for context in later for other in context.gpu} - {pid}
    growth = {other: _share(other, later) - _share(other, earlier) for other in others}
    most = max(growth, key=growth.__getitem__, default=None)
    return most if most is not None and growth[most] >= GPU_SHARE else None


def _falls_back_more(
    pid: int, earlier: list[_Context], later: list[_Context], steps: float
) -> bool:
    """Returns whether the CPU runs twice as many operations a second, for fewer steps."""
    before, now = _fallback_rate(pid, earlier), _fallback_rate(pid, later)
    if before is None or now is None:
        return False
    return now >= 2 * before and now >= FALLBACKS_A_STEP * steps


def _fallback_rate(pid: int, contexts: list[_Context]) -> float | None:
    counts = [(c.time, c.fallbacks[pid]) for c in contexts if pid in c.fallbacks]
    if len(counts) < 2 or counts[-1][0] <= counts[0][0]:
        return None
    return (counts[-1][1] - counts[0][1]) / (counts[-1][0] - counts[0][0])


def _share(pid: int, contexts: list[_Context]) -> float:
    return sum(context.gpu.get(pid, 0.0) for context in contexts) / len(contexts)


def _median(values: Sequence[float]) -> float:
    from statistics import median  # imported late: it brings decimal and fractions

    return median(values)
