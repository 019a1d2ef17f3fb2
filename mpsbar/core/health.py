"""Judges the health: its level and reasons, from a snapshot, the last minutes and the last health.

Each level is entered and left at different thresholds, so that a value near a threshold does not
raise one alert after the other; `before` has the reasons of the last health. Unknown values give no
reason. Call `judge` after `trends.add` of the same snapshot.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from mpsbar.core.findings import Health, Level, Reason, Value
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.trends import (
    METAL,
    ProcessSeries,
    Series,
    Trends,
    gpu_memory,
    measure,
    metal_held,
    recent,
)

MB = 1 << 20
LEVELS: tuple[Level, ...] = ("ok", "warning", "critical")
# Among reasons of one level the most urgent comes first, and the process that causes a shortage
# before the shortage of the whole machine.
_ORDER = (
    "pressure", "memory_filling", "gpu_filling", "process_memory", "gpu_memory", "leak",
    "swap_growing", "swap_used", "slowed", "unknown", "pressure_unknown", "cache",
)  # fmt: skip
_ABOUT_ROOM = {
    "pressure", "memory_filling", "gpu_filling", "process_memory", "gpu_memory", "swap_used",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scale:
    """Thresholds; higher is worse. A level is entered at its first value, left below its second."""

    warning: tuple[float, float]
    critical: tuple[float, float] = (float("inf"), float("inf"))

    def grade(self, value: float, before: Level | None) -> Level | None:
        if value >= self.critical[before == "critical"]:
            return "critical"
        return "warning" if value >= self.warning[before in ("warning", "critical")] else None


# Metal calls its budget what can be used without slowing down; torch itself refuses only at 1.7
# times as much, and beyond the budget kernel panics were reported (sglang issue 21443).
BUDGET = Scale(warning=(0.90, 0.85), critical=(1.0, 0.97))
# Seconds until full, negative because less is worse. 10 minutes are enough to save or shrink a run
# by hand, 2 only to stop something.
FILLING = Scale(warning=(-600.0, -900.0), critical=(-120.0, -180.0))
# A minute is longer than nearly every model takes to load; two minutes show the present slope, not
# a past one. Any desktop moves less than 128 MB in that time.
FILLING_SPAN, MIN_FILLING, FILLING_STEP = 120.0, 60.0, 128 * MB
# Bytes within 5 minutes. Systems swap out sleeping programs a little at a time; half a GB counts
# as memory in use (a judgement, not measured). Never critical: that is for memory pressure.
SWAP = Scale(warning=(512 * MB, 128 * MB))
SWAP_SPAN = 300.0
# Swap in use as a part of all memory, while little memory is available: half as much again as the
# computer has is in use. With room left, what lies in swap is merely asleep.
SWAP_USED = Scale(warning=(0.5, 0.4))
ROOM_FOR_SWAP = Scale(warning=(0.75, 0.70))  # used part of all memory
# Growth that no counter of torch explains. 256 MB and 10% exceed the scatter of a steady run and
# of its caches outside torch; 5 minutes exceed most warm-ups.
LEAK_BYTES = Scale(warning=(256 * MB, 128 * MB))
LEAK_SHARE = Scale(warning=(0.10, 0.05))
LEAK_SPAN = 300.0
# Of the budget, else of all memory: a fifth is room for another model, and on the smallest Mac
# (5.3 GB) still more than one 1 GiB heap, which a single live tensor pins.
CACHE = Scale(warning=(0.20, 0.15))
# Used part of all memory: above it a large cache is worth a warning, below it does its job.
SHORT = Scale(warning=(0.90, 0.85))


def judge(snapshot: Snapshot, trends: Trends, before: Health) -> Health:
    levels = {(reason.code, reason.pid): reason.level for reason in before.reasons}
    workers = tuple(worker for worker in snapshot.workers if worker.state != "gone")
    data = _HealthInput(snapshot, trends, levels, workers, find_budget(snapshot, workers))
    reasons = [
        *_pressure(data),
        *_swap(data),
        *_swap_used(data),
        *_filling(data),
        *_budget(data),
        *_leaks(data),
        *_slow_downs(data),
    ]
    reasons += _caches(data, any(reason.code in _ABOUT_ROOM for reason in reasons))
    if all(reason.level == "ok" for reason in reasons) and snapshot.machine.pressure is None:
        code = "pressure_unknown" if _is_machine_known(snapshot) else "unknown"
        reasons.append(Reason(code, "ok"))
    reasons.sort(key=_rank)
    return Health(reasons[0].level if reasons else "ok", tuple(reasons))


@dataclass(frozen=True, slots=True)
class _HealthInput:
    snapshot: Snapshot
    trends: Trends
    before: dict[tuple[str, int | None], Level]
    workers: tuple[Worker, ...]
    budget: int | None

    def level(self, code: str, pid: int | None = None) -> Level | None:
        return self.before.get((code, pid))

    def recent(self, series: Series, seconds: float) -> Series:
        return recent(series, self.snapshot.time, seconds)


def find_budget(snapshot: Snapshot, workers: tuple[Worker, ...]) -> int | None:
    """Returns Metal's budget, which all processes share, from the machine, else from a worker."""
    if snapshot.machine.gpu.memory_budget is not None:
        return snapshot.machine.gpu.memory_budget
    backends = [backend for worker in workers for backend in worker.in_use]
    known = [b.budget for b in backends if b.name in METAL and b.budget is not None]
    return max(known, default=None)


def _pressure(data: _HealthInput) -> Iterator[Reason]:
    """Reports memory pressure as the system judges it, with a hysteresis of its own."""
    pressure = data.snapshot.machine.pressure
    if pressure is not None and pressure != "normal":
        yield Reason("pressure", pressure, {"pressure": pressure})


def _swap(data: _HealthInput) -> Iterator[Reason]:
    points = data.recent(data.trends.machine.swap_used, SWAP_SPAN)
    used = data.snapshot.machine.swap_used
    if not points or used is None:
        return
    # The latest of the lowest points: the time since then is the time in which it grew.
    low = min(reversed(points), key=lambda point: point.value)
    level = SWAP.grade(used - low.value, data.level("swap_growing"))
    if level:
        seconds = data.snapshot.time - low.time
        values: dict[str, Value] = {"growth": used - low.value, "seconds": seconds, "used": used}
        yield Reason("swap_growing", level, values)


def _swap_used(data: _HealthInput) -> Iterator[Reason]:
    """Reports high swap use itself: in a shortage of hours, swap no longer grows."""
    machine, before = data.snapshot.machine, data.level("swap_used")
    total, available, used = machine.memory_total, machine.memory_available, machine.swap_used
    if not total or available is None or used is None:
        return
    is_short = ROOM_FOR_SWAP.grade(1 - available / total, before) is not None
    level = SWAP_USED.grade(used / total, before)
    if level and is_short:
        yield Reason("swap_used", level, {"used": used, "available": available, "whole": total})


def _filling(data: _HealthInput) -> Iterator[Reason]:
    machine, series = data.snapshot.machine, data.trends.machine
    room = machine.memory_available
    values: dict[str, Value] = {"available": room}
    yield from _time_left(data, "memory_filling", series.memory_available, -1, room, values)
    used, budget = gpu_memory(data.snapshot), data.budget
    if used is not None and budget is not None and used < budget:
        values = {"used": used, "budget": budget}
        yield from _time_left(data, "gpu_filling", series.gpu_memory, 1, budget - used, values)


def _time_left(
    data: _HealthInput,
    code: str,
    series: Series,
    sign: int,
    room: int | None,
    values: dict[str, Value],
) -> Iterator[Reason]:
    """Reports how long it takes until memory is full.

    `sign` is the direction in which the series moves while it fills up.
    """
    before, points = data.level(code), data.recent(series, FILLING_SPAN)
    if not points or not (before or sign * (points[-1].value - points[0].value) >= FILLING_STEP):
        return  # cheaper than medians, and end to end is further than between the thirds
    trend = measure(points, MIN_FILLING)
    if trend is None or room is None or trend.growth * sign <= 0:
        return
    if not before and not (trend.is_steady and trend.growth * sign >= FILLING_STEP):
        return
    seconds = room * trend.growth_seconds / (trend.growth * sign)
    level = FILLING.grade(-seconds, before)
    if level:
        yield Reason(code, level, {"seconds": seconds, **values})


def _budget(data: _HealthInput) -> Iterator[Reason]:
    budget = data.budget
    if not budget:
        return
    used = gpu_memory(data.snapshot)
    yield from _against(data, "gpu_memory", None, used, budget)
    for worker in data.workers:
        held = metal_held(worker)
        used = held if held is not None else _charged(worker.process)
        yield from _against(data, "process_memory", worker.pid, used, budget)
    for process in data.snapshot.unconnected:
        yield from _against(data, "process_memory", process.pid, _charged(process), budget)


def _against(
    data: _HealthInput, code: str, pid: int | None, used: int | None, budget: int
) -> Iterator[Reason]:
    if used is None:
        return
    level = BUDGET.grade(used / budget, data.level(code, pid))
    if level:
        yield Reason(code, level, {"used": used, "budget": budget}, pid)


def _charged(process: Process | None) -> int | None:
    """Returns the footprint, which includes GPU memory, of a process that uses the GPU."""
    if process is None or not process.gpu_client or process.footprint_kind != "footprint":
        return None
    return process.footprint


def _leaks(data: _HealthInput) -> Iterator[Reason]:
    for worker in data.workers:
        series = data.trends.of(worker.pid)
        if series is not None:
            yield from _leak(data, worker.pid, series)


def _leak(data: _HealthInput, pid: int, series: ProcessSeries) -> Iterator[Reason]:
    before = data.level("leak", pid)
    known = series.footprint and series.held
    # Medians of hundreds of points cost more than all the rest, so both ends are compared first.
    if not known or (
        not before
        and series.footprint[-1].value - series.footprint[0].value < LEAK_BYTES.warning[1]
    ):
        return
    footprint, held, allocated = series.trends(data.snapshot.time, LEAK_SPAN)
    if footprint is None or held is None or footprint.last.median <= footprint.middle.median:
        return
    explained = max(0, held.growth, allocated.growth if allocated else 0)
    growth = footprint.growth - explained
    share = growth / max(1, footprint.first.median)
    level = LEAK_BYTES.grade(growth, before) and LEAK_SHARE.grade(share, before)
    if level and (before or footprint.is_steady):
        values: dict[str, Value] = {"growth": growth, "seconds": footprint.growth_seconds}
        yield Reason("leak", level, values, pid)


def _slow_downs(data: _HealthInput) -> Iterator[Reason]:
    for worker in data.workers:
        slow = data.trends.speeds.find(worker.pid)
        if slow is not None:
            yield Reason("slowed", "warning", asdict(slow), worker.pid)


def _caches(data: _HealthInput, is_short: bool) -> Iterator[Reason]:
    for worker in data.workers:
        cached = worker.cached
        if cached is None or not (whole := _room_of(worker, data)):
            continue
        before = data.level("cache", worker.pid)
        # A reason with level "ok" counts as a reason before, too.
        large = CACHE.grade(cached / whole, before and "warning")
        if large:
            short = not _has_own_memory(worker) and (is_short or _is_short(data, before))
            values: dict[str, Value] = {"cached": cached, "whole": whole}
            yield Reason("cache", "warning" if short else "ok", values, worker.pid)


def _room_of(worker: Worker, data: _HealthInput) -> int | None:
    if _has_own_memory(worker):
        return worker.total(lambda backend: backend.budget)
    return data.budget or data.snapshot.machine.memory_total


def _has_own_memory(worker: Worker) -> bool:
    """Returns whether it uses a CUDA card, whose memory is not the machine's."""
    return any(backend.name == "cuda" for backend in worker.in_use)


def _is_short(data: _HealthInput, before: Level | None) -> bool:
    total, available = (
        data.snapshot.machine.memory_total,
        data.snapshot.machine.memory_available,
    )
    if not total or available is None:
        return False
    return SHORT.grade(1 - available / total, before) is not None


def _is_machine_known(snapshot: Snapshot) -> bool:
    machine = snapshot.machine
    known = (machine.memory_available, machine.swap_used, machine.pressure)
    return any(value is not None for value in (*known, machine.gpu.memory_in_use))


def _rank(reason: Reason) -> tuple[int, int, int]:
    return (-LEVELS.index(reason.level), _ORDER.index(reason.code), reason.pid or 0)
