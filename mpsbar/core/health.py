"""Is all well? The level and its reasons from one snapshot, the last minutes and the last verdict.

Every threshold to come in differs from the one to leave, so that a value that hovers at one does
not ring an alarm again and again; `before` tells which reasons are on. What is unknown accuses no
one. Call it after `history.add` of the same snapshot.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mpsbar.core.findings import Health, Level, Reason, Value
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.trends import (
    History,
    Point,
    Series,
    Track,
    gpu_memory,
    measure,
    metal_held,
    recent,
)

MB = 1 << 20
LEVELS: tuple[Level, ...] = ("ok", "warning", "critical")
# Among reasons of one level: what ends soonest first, and whose it is before that it is.
_ORDER = (
    "pressure", "memory_filling", "gpu_filling", "process_memory", "gpu_memory", "leak",
    "swap_growing", "cache", "unknown",
)  # fmt: skip
_ABOUT_ROOM = {"pressure", "memory_filling", "gpu_filling", "process_memory", "gpu_memory"}


@dataclass(frozen=True, slots=True)
class Scale:
    """Higher is worse. A level is entered at its first value and left below its second."""

    warning: tuple[float, float]
    critical: tuple[float, float] = (float("inf"), float("inf"))

    def grade(self, value: float, before: Level | None) -> Level | None:
        if value >= self.critical[before == "critical"]:
            return "critical"
        return "warning" if value >= self.warning[before in ("warning", "critical")] else None


# Metal names its budget as what can be used without slowing down; torch itself refuses only at 1.7
# times as much, and beyond the budget kernel panics were reported (sglang issue 21443).
BUDGET = Scale(warning=(0.90, 0.85), critical=(1.0, 0.97))
# Seconds until full, negative because less is worse. In 10 minutes a run can be saved or shrunk by
# hand, in 2 only something be stopped.
FILLING = Scale(warning=(-600.0, -900.0), critical=(-120.0, -180.0))
# A minute is longer than nearly every model takes to load; two show the present slope, not the
# past one. Less than 128 MB in that time is what any desktop does.
FILLING_SPAN, FILLING_LEAST, FILLING_STEP = 120.0, 60.0, 128 * MB
# Bytes within 5 minutes. Systems swap out what sleeps a little at a time; half a GB is taken for
# something in use (a judgement, not measured). Never critical: pressure tells when it hurts.
SWAP = Scale(warning=(512 * MB, 128 * MB))
SWAP_SPAN = 300.0
# Growth that no counter of torch explains. 256 MB and 10 % are beyond the scatter of a steady run
# and of its caches outside torch; 5 minutes are beyond most warm-ups.
LEAK_BYTES = Scale(warning=(256 * MB, 128 * MB))
LEAK_SHARE = Scale(warning=(0.10, 0.05))
LEAK_SPAN = 300.0
# Of the budget, else of all memory: a fifth is another model's room, and on the smallest Mac
# (5.3 GB) still more than one 1 GiB heap, which a single live tensor pins.
CACHE = Scale(warning=(0.20, 0.15))
# Of all memory, in use: short of it a cache is worth a warning, otherwise it does its job.
SHORT = Scale(warning=(0.90, 0.85))


def judge(snapshot: Snapshot, history: History, before: Health) -> Health:
    levels = {(reason.code, reason.pid): reason.level for reason in before.reasons}
    workers = tuple(worker for worker in snapshot.workers if worker.state != "gone")
    scene = _Scene(snapshot, history, levels, workers, _find_budget(snapshot, workers))
    found = [*_pressure(scene), *_swap(scene), *_filling(scene), *_budget(scene), *_leaks(scene)]
    found += _caches(scene, any(reason.code in _ABOUT_ROOM for reason in found))
    if not found and not _is_machine_known(snapshot):
        found = [Reason("unknown", "ok")]
    found.sort(key=_rank)
    return Health(found[0].level if found else "ok", tuple(found))


@dataclass(frozen=True, slots=True)
class _Scene:
    snapshot: Snapshot
    history: History
    before: dict[tuple[str, int | None], Level]
    workers: tuple[Worker, ...]
    budget: int | None

    def level(self, code: str, pid: int | None = None) -> Level | None:
        return self.before.get((code, pid))

    def recent(self, series: Series, seconds: float) -> list[Point]:
        return recent(series, self.snapshot.time, seconds)


def _find_budget(snapshot: Snapshot, workers: tuple[Worker, ...]) -> int | None:
    """Metal's; each worker's torch knows it as well."""
    if snapshot.machine.gpu.memory_budget is not None:
        return snapshot.machine.gpu.memory_budget
    backends = [backend for worker in workers for backend in worker.in_use]
    known = [b.budget for b in backends if b.name == "mps" and b.budget is not None]
    return max(known, default=None)


def _pressure(scene: _Scene) -> Iterator[Reason]:
    """The system's own word, which has its own hysteresis."""
    pressure = scene.snapshot.machine.pressure
    if pressure is not None and pressure != "normal":
        yield Reason("pressure", pressure, {"pressure": pressure})


def _swap(scene: _Scene) -> Iterator[Reason]:
    points = scene.recent(scene.history.machine.swap_used, SWAP_SPAN)
    used = scene.snapshot.machine.swap_used
    if not points or used is None:
        return
    # The latest of the lowest points: the time since then is the time in which it grew.
    low = min(reversed(points), key=lambda point: point.value)
    level = SWAP.grade(used - low.value, scene.level("swap_growing"))
    if level:
        seconds = scene.snapshot.time - low.time
        values: dict[str, Value] = {"growth": used - low.value, "seconds": seconds, "used": used}
        yield Reason("swap_growing", level, values)


def _filling(scene: _Scene) -> Iterator[Reason]:
    machine, track = scene.snapshot.machine, scene.history.machine
    room = machine.memory_available
    values: dict[str, Value] = {"available": room}
    yield from _time_left(scene, "memory_filling", track.memory_available, -1, room, values)
    used, budget = gpu_memory(scene.snapshot), scene.budget
    if used is not None and budget is not None and used < budget:
        values = {"used": used, "budget": budget}
        yield from _time_left(scene, "gpu_filling", track.gpu_memory, 1, budget - used, values)


def _time_left(
    scene: _Scene, code: str, series: Series, sign: int, room: int | None, values: dict[str, Value]
) -> Iterator[Reason]:
    """`sign` is the way the series goes while it fills up."""
    before, points = scene.level(code), scene.recent(series, FILLING_SPAN)
    if not points or not (before or sign * (points[-1].value - points[0].value) >= FILLING_STEP):
        return  # a glance is cheaper than medians; from end to end is further than between thirds
    trend = measure(points, FILLING_LEAST)
    if trend is None or room is None or trend.growth * sign <= 0:
        return
    if not before and not (trend.is_steady and trend.growth * sign >= FILLING_STEP):
        return
    seconds = room * trend.growth_seconds / (trend.growth * sign)
    level = FILLING.grade(-seconds, before)
    if level:
        yield Reason(code, level, {"seconds": seconds, **values})


def _budget(scene: _Scene) -> Iterator[Reason]:
    budget = scene.budget
    if not budget:
        return
    used = gpu_memory(scene.snapshot)
    yield from _against(scene, "gpu_memory", None, used, budget)
    for worker in scene.workers:
        held = metal_held(worker)
        used = held if held is not None else _charged(worker.process)
        yield from _against(scene, "process_memory", worker.pid, used, budget)
    for process in scene.snapshot.unconnected:
        yield from _against(scene, "process_memory", process.pid, _charged(process), budget)


def _against(
    scene: _Scene, code: str, pid: int | None, used: int | None, budget: int
) -> Iterator[Reason]:
    if used is None:
        return
    level = BUDGET.grade(used / budget, scene.level(code, pid))
    if level:
        yield Reason(code, level, {"used": used, "budget": budget}, pid)


def _charged(process: Process | None) -> int | None:
    """A footprint has the GPU's memory in it, but only of a process that holds the GPU."""
    if process is None or not process.gpu_client or process.footprint_kind != "footprint":
        return None
    return process.footprint


def _leaks(scene: _Scene) -> Iterator[Reason]:
    for worker in scene.workers:
        track = scene.history.of(worker.pid)
        if track is not None:
            yield from _leak(scene, worker.pid, track)


def _leak(scene: _Scene, pid: int, track: Track) -> Iterator[Reason]:
    before = scene.level("leak", pid)
    known = track.footprint and track.held
    # Medians of hundreds of points cost more than all the rest: first a glance at the ends.
    if not known or (
        not before and track.footprint[-1].value - track.footprint[0].value < LEAK_BYTES.warning[1]
    ):
        return
    footprint, held, allocated = track.trends(scene.snapshot.time, LEAK_SPAN)
    if footprint is None or held is None or footprint.last.median <= footprint.middle.median:
        return
    explained = max(0, held.growth, allocated.growth if allocated else 0)
    growth = footprint.growth - explained
    share = growth / max(1, footprint.first.median)
    level = LEAK_BYTES.grade(growth, before) and LEAK_SHARE.grade(share, before)
    if level and (before or footprint.is_steady):
        values: dict[str, Value] = {"growth": growth, "seconds": footprint.growth_seconds}
        yield Reason("leak", level, values, pid)


def _caches(scene: _Scene, is_short: bool) -> Iterator[Reason]:
    for worker in scene.workers:
        cached = worker.cached
        if cached is None or not (whole := _room_of(worker, scene)):
            continue
        before = scene.level("cache", worker.pid)
        # "ok" is a reason that is on, too.
        large = CACHE.grade(cached / whole, before and "warning")
        if large:
            short = not _has_own_memory(worker) and (is_short or _is_short(scene, before))
            values: dict[str, Value] = {"cached": cached, "whole": whole}
            yield Reason("cache", "warning" if short else "ok", values, worker.pid)


def _room_of(worker: Worker, scene: _Scene) -> int | None:
    if _has_own_memory(worker):
        return worker.total(lambda backend: backend.budget)
    return scene.budget or scene.snapshot.machine.memory_total


def _has_own_memory(worker: Worker) -> bool:
    """A card's cache is no help to a machine that is short of memory."""
    return any(backend.name == "cuda" for backend in worker.in_use)


def _is_short(scene: _Scene, before: Level | None) -> bool:
    total, available = scene.snapshot.machine.memory_total, scene.snapshot.machine.memory_available
    if not total or available is None:
        return False
    return SHORT.grade(1 - available / total, before) is not None


def _is_machine_known(snapshot: Snapshot) -> bool:
    machine = snapshot.machine
    known = (machine.memory_available, machine.swap_used, machine.pressure)
    return any(value is not None for value in (*known, machine.gpu.memory_in_use))


def _rank(reason: Reason) -> tuple[int, int, int]:
    return (-LEVELS.index(reason.level), _ORDER.index(reason.code), reason.pid or 0)
