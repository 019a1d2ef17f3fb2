"""The last minutes as bounded series of numbers, and their trends. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from mpsbar.agent.frameworks import ALLOCATORS
from mpsbar.core.counters import sum_known
from mpsbar.core.machine import PRESSURE_LEVELS, Process, is_same_start
from mpsbar.core.sleep_gap import has_jumped
from mpsbar.core.slow_down import SpeedWatch
from mpsbar.core.snapshot import Snapshot, Worker

# Seconds. Long enough to tell a leak from a warm-up, short enough to follow what people do.
WINDOW = 600.0
MAX_POINTS = 300
# A front end that ticks faster must not shorten the window: 300 points × 1.5 s are 7.5 minutes.
SPACING = 1.5
# Backends whose memory comes out of Metal's one budget.
METAL = [allocator.name for allocator in ALLOCATORS if allocator.is_metal]


class Point(NamedTuple):
    time: float
    value: int


# A tuple, because a front end draws one while the ticking thread makes the next.
Series = tuple[Point, ...]
_WorkerTotals = tuple[int | None, int | None, int | None, int | None]


@dataclass(slots=True)
class MachineSeries:
    memory_available: Series = ()
    swap_used: Series = ()
    gpu_memory: Series = ()
    utilization: Series = ()  # of the GPU, percent
    pressure: Series = ()  # 0 normal, 1 warning, 2 critical


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values, and their range without the lowest and the highest tenth."""

    low: int
    median: int
    high: int


@dataclass(frozen=True, slots=True)
class Trend:
    """Three thirds of a time span, and the median of its last sixth; outliers do not count."""

    first: Spread
    middle: Spread
    last: Spread
    end: int
    growth_seconds: float  # from the middle of the first third to the middle of the last

    @property
    def growth(self) -> int:
        return self.last.median - self.first.median

    @property
    def is_steady(self) -> bool:
        """Returns whether it moved in one direction all the time: no jump, no finished warm-up.

        The median of a saw-tooth moves, but not both of its edges. A straight line makes half of
        its growth in each step and an eighth after the last median; half and a third of those
        are required.
        """
        sign = 1 if self.growth > 0 else -1
        growth = self.growth * sign
        pairs = ((self.first, self.middle), (self.middle, self.last))
        steps = [sign * step for a, b in pairs for step in _steps(a, b)]
        still = (self.end - self.last.median) * sign
        return growth > 0 and min(steps) * 4 >= growth and still * 24 >= growth


@dataclass(slots=True)
class ProcessSeries:
    """The series of one process; the same pid with another start is another process."""

    started: float | None  # None: not known yet
    seen: float
    footprint: Series = ()
    held: Series = ()
    allocated: Series = ()
    cached: Series = ()
    speed: Series = ()  # of its run, in millionths a second

    def copy(self) -> "ProcessSeries":
        """Copies itself, five times as fast as `replace`: each process is copied at every tick."""
        return ProcessSeries(
            self.started, self.seen, self.footprint, self.held, self.allocated, self.cached,
            self.speed,
        )  # fmt: skip

    def trends(self, now: float, seconds: float) -> tuple[Trend | None, ...]:
        """Returns trends of footprint, held and allocated while the first two are known."""
        if not (self.footprint and self.held):
            return (None, None, None)
        since = max(self.footprint[0].time, self.held[0].time)
        series = (self.footprint, self.held, self.allocated)
        return tuple(measure(recent(points, now, now - since), seconds) for points in series)


class Trends:
    """The series of the machine and of each process; only the ticking thread uses it."""

    def __init__(self) -> None:
        self.machine = MachineSeries()
        self._processes: dict[int, ProcessSeries] = {}  # by pid
        self._totals: dict[int, tuple[Worker, _WorkerTotals]] = {}  # of the last reading, by pid
        self.speeds = SpeedWatch()

    def add(self, snapshot: Snapshot) -> None:
        """Adds a reading. Times are the snapshot's: macOS's monotonic clock stops during sleep."""
        now, machine, read = snapshot.time, self.machine, snapshot.machine
        busy = None if read.gpu.utilization is None else round(read.gpu.utilization)
        machine.memory_available = append(machine.memory_available, now, read.memory_available)
        machine.swap_used = append(machine.swap_used, now, read.swap_used)
        machine.gpu_memory = append(machine.gpu_memory, now, gpu_memory(snapshot))
        machine.utilization = append(machine.utilization, now, busy)
        level = PRESSURE_LEVELS.get(read.pressure or "")
        machine.pressure = append(machine.pressure, now, level)
        for process in _find_processes(snapshot):
            series = self._find_series(process.pid, process.started, now)
            series.footprint = append(series.footprint, now, process.footprint)
        totals: dict[int, tuple[Worker, _WorkerTotals]] = {}
        for worker in snapshot.workers:
            # A busy worker repeats its counters, which would look flat while its footprint grows.
            if worker.state == "live":
                series = self._find_series(worker.pid, worker.started, now)
                known = self._totals.get(worker.pid)
                # Most workers are the same object from one tick to the next.
                known = known if known and known[0] is worker else (worker, _add_up(worker))
                totals[worker.pid] = known
                held, allocated, cached, speed = known[1]
                series.held = append(series.held, now, held)
                series.allocated = append(series.allocated, now, allocated)
                series.cached = append(series.cached, now, cached)
                series.speed = append(series.speed, now, speed)
        self._totals = totals
        self._forget_ended(snapshot)
        self.speeds.add(snapshot)

    def of(self, pid: int) -> ProcessSeries | None:
        return self._processes.get(pid)

    def copy_machine(self) -> MachineSeries:
        return replace(self.machine)

    def copy_processes(self) -> dict[int, ProcessSeries]:
        """Copies the series by pid: those of a Snapshot do not change while they are drawn."""
        return {pid: series.copy() for pid, series in self._processes.items()}

    def _find_series(self, pid: int, started: float | None, now: float) -> ProcessSeries:
        series = self._processes.get(pid)
        if series is None or not is_same_start(series.started, started):
            series = self._processes[pid] = ProcessSeries(started, now)
        series.started = series.started if started is None else started
        series.seen = now
        return series

    def _forget_ended(self, snapshot: Snapshot) -> None:
        present = {process.pid for process in _find_processes(snapshot)}
        present.update(worker.pid for worker in snapshot.workers if worker.state != "gone")
        for pid in [pid for pid in self._processes if pid not in present]:
            # A failed scan is no evidence that a process ended.
            if snapshot.processes is not None or has_jumped(
                self._processes[pid].seen, snapshot.time
            ):
                del self._processes[pid]


def append(series: Series, now: float, value: int | None) -> Series:
    """Appends a value unless it is None; a gap or a clock set back starts a new series."""
    if value is None:
        return series
    if series and has_jumped(series[-1].time, now):
        series = ()  # a line through both sides would be wrong
    if series and now - series[-1].time < SPACING:
        return series
    first = max(0, len(series) + 1 - MAX_POINTS)
    while first < len(series) and series[first].time < now - WINDOW:
        first += 1
    return series[first:] + (Point(now, value),)  # noqa: RUF005 - half the time of unpacking


def recent(series: Series, now: float, seconds: float) -> Series:
    """Returns the points of the last `seconds`; none at all if the newest is older than GAP."""
    points = series[bisect_left(series, (now - seconds,)) : bisect_right(series, (now, inf))]
    return points if points and not has_jumped(points[-1].time, now) else ()


def measure(points: Series, seconds: float) -> Trend | None:
    """Returns the trend; None if the points span less than `seconds` or are too few for medians."""
    if not points or points[-1].time - points[0].time < seconds:
        return None
    start, span = points[0].time, points[-1].time - points[0].time
    cuts = [bisect_left(points, (start + span * part,)) for part in (1 / 3, 2 / 3, 5 / 6)]
    thirds = points[: cuts[0]], points[cuts[0] : cuts[1]], points[cuts[1] :]
    sixth = points[cuts[2] :]
    if min(map(len, thirds)) < 3 or len(sixth) < 2:
        return None
    first, middle, last = map(_spread, thirds)
    apart = _centre(thirds[2]) - _centre(thirds[0])
    return Trend(first, middle, last, _spread(sixth).median, apart)


def gpu_memory(snapshot: Snapshot) -> int | None:
    """Returns GPU memory of all processes; if that is not known, what the connected ones hold."""
    if snapshot.machine.gpu.memory_in_use is not None:
        return snapshot.machine.gpu.memory_in_use
    workers = [worker for worker in snapshot.workers if worker.state != "gone"]
    return sum_known(metal_held(worker) for worker in workers)


def metal_held(worker: Worker) -> int | None:
    return worker.total(lambda backend: backend.held if backend.name in METAL else None)


def _add_up(worker: Worker) -> _WorkerTotals:
    allocated = worker.total(lambda backend: backend.allocated)
    speed = None if worker.progress is None else worker.progress.millionths
    return worker.held, allocated, worker.cached, speed


def _steps(a: Spread, b: Spread) -> tuple[int, int, int]:
    return (b.low - a.low, b.median - a.median, b.high - a.high)


def _spread(points: Series) -> Spread:
    ordered, last = sorted([value for _, value in points]), len(points) - 1
    median = (ordered[last // 2] + ordered[(last + 1) // 2]) // 2
    return Spread(ordered[last // 10], median, ordered[last - last // 10])


def _centre(points: Series) -> float:
    return (points[0].time + points[-1].time) / 2


def _find_processes(snapshot: Snapshot) -> Iterable[Process]:
    """Returns all processes; those of workers also when the processes could not be listed."""
    yield from snapshot.processes or ()
    for worker in snapshot.workers:
        if worker.process is not None and worker.state != "gone":
            yield worker.process
