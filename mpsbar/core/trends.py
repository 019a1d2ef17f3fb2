"""The last minutes as bounded series of numbers, and where they are heading."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker

# Seconds. Long enough to tell a leak from a warm-up, short enough to follow what people do.
WINDOW = 600.0
MOST = 300
# A front end that looks faster than this must not shorten the window: 300 × 1.5 s are 7.5 minutes.
SPACING = 1.5
# After a silence this long (sleep and wake, a clock set anew) a line through both sides would lie.
GAP = 60.0
# Backends whose memory comes out of Metal's one budget.
METAL = [name for framework in FRAMEWORKS for name in framework.metal]


class Point(NamedTuple):
    time: float
    value: int


# Never changed in place: a front end draws one while the next is made.
Series = tuple[Point, ...]


@dataclass(slots=True)
class MachineTrack:
    memory_available: Series = ()
    swap_used: Series = ()
    gpu_memory: Series = ()
    utilization: Series = ()  # of the GPU, percent


@dataclass(frozen=True, slots=True)
class Spread:
    """Of the values of a stretch: the middle, and the tenths at both edges left out."""

    low: int
    median: int
    high: int


@dataclass(frozen=True, slots=True)
class Trend:
    """A stretch in three thirds, and the median of its last sixth. Single outliers do not count."""

    seconds: float
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
        """One way all along and still so at the end: neither a jump nor a warm-up that is over.

        Of a saw-tooth the median wanders, but not both edges. A straight line makes half of its
        growth in each step and an eighth after the last median; half and a third of that are asked.
        """
        sign = 1 if self.growth > 0 else -1
        growth = self.growth * sign
        pairs = ((self.first, self.middle), (self.middle, self.last))
        steps = [sign * step for a, b in pairs for step in _steps(a, b)]
        still = (self.end - self.last.median) * sign
        return growth > 0 and min(steps) * 4 >= growth and still * 24 >= growth


@dataclass(slots=True)
class Track:
    """One process; the same pid with another start is another process."""

    started: float | None  # None: not known yet
    seen: float
    footprint: Series = ()
    held: Series = ()
    allocated: Series = ()

    def trends(self, now: float, seconds: float) -> tuple[Trend | None, ...]:
        """Of footprint, held, allocated over the time both first are known, so they compare."""
        if not (self.footprint and self.held):
            return (None, None, None)
        since = max(self.footprint[0].time, self.held[0].time)
        series = (self.footprint, self.held, self.allocated)
        return tuple(measure(recent(one, now, now - since), seconds) for one in series)


class History:
    """Filled and read by the ticking thread alone."""

    def __init__(self) -> None:
        self.machine = MachineTrack()
        self._tracks: dict[int, Track] = {}  # by pid

    def add(self, snapshot: Snapshot) -> None:
        """Times are the snapshot's: the monotonic clock of macOS stands still during sleep."""
        now, machine, read = snapshot.time, self.machine, snapshot.machine
        busy = None if read.gpu.utilization is None else round(read.gpu.utilization)
        machine.memory_available = append(machine.memory_available, now, read.memory_available)
        machine.swap_used = append(machine.swap_used, now, read.swap_used)
        machine.gpu_memory = append(machine.gpu_memory, now, gpu_memory(snapshot))
        machine.utilization = append(machine.utilization, now, busy)
        for process in _processes(snapshot):
            track = self._track(process.pid, process.started, now)
            track.footprint = append(track.footprint, now, process.footprint)
        for worker in snapshot.workers:
            self._add_worker(worker, now)
        self._forget(snapshot)

    def of(self, pid: int) -> Track | None:
        return self._tracks.get(pid)

    def copy_tracks(self) -> dict[int, Track]:
        """By pid, for the Snapshot: whoever draws them has them as they were."""
        return {
            pid: Track(track.started, track.seen, track.footprint, track.held, track.allocated)
            for pid, track in self._tracks.items()
        }

    def _add_worker(self, worker: Worker, now: float) -> None:
        """A busy one repeats its last counters: they would look flat while its footprint grows."""
        if worker.state != "live":
            return
        started = worker.process.started if worker.process else None
        track = self._track(worker.pid, started, now)
        allocated = worker.total(lambda backend: backend.allocated)
        track.held = append(track.held, now, worker.held)
        track.allocated = append(track.allocated, now, allocated)

    def _track(self, pid: int, started: float | None, now: float) -> Track:
        track = self._tracks.get(pid)
        known = track is not None and None not in (started, track.started)
        if track is None or (known and started != track.started):
            track = self._tracks[pid] = Track(started, now)
        track.started = track.started if started is None else started
        track.seen = now
        return track

    def _forget(self, snapshot: Snapshot) -> None:
        there = {process.pid for process in _processes(snapshot)}
        there.update(worker.pid for worker in snapshot.workers if worker.state != "gone")
        for pid in [pid for pid in self._tracks if pid not in there]:
            silence = snapshot.time - self._tracks[pid].seen
            # One failed look at the processes is no reason to forget them all.
            if snapshot.processes is not None or not 0 <= silence <= GAP:
                del self._tracks[pid]


def append(series: Series, now: float, value: int | None) -> Series:
    """None is skipped; a gap or a clock that was set back starts the series anew."""
    if value is None:
        return series
    if series and not 0 <= now - series[-1].time <= GAP:
        series = ()
    if series and now - series[-1].time < SPACING:
        return series
    first = max(0, len(series) + 1 - MOST)
    while first < len(series) and series[first].time < now - WINDOW:
        first += 1
    return series[first:] + (Point(now, value),)  # noqa: RUF005 - half the time of unpacking


def recent(series: Iterable[Point], now: float, seconds: float) -> list[Point]:
    """The points of the last `seconds`; none at all when the newest is too old to speak for now."""
    since = now - seconds
    points = [point for point in series if since <= point[0] <= now]
    return points if points and now - points[-1].time <= GAP else []


def measure(points: list[Point], seconds: float) -> Trend | None:
    """None: shorter than `seconds`, or too few points for a median to mean something."""
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
    return Trend(span, first, middle, last, _spread(sixth).median, apart)


def gpu_memory(snapshot: Snapshot) -> int | None:
    """What all processes have of the GPU's memory, else what the connected ones have."""
    if snapshot.machine.gpu.memory_in_use is not None:
        return snapshot.machine.gpu.memory_in_use
    workers = [worker for worker in snapshot.workers if worker.state != "gone"]
    known = [held for worker in workers if (held := metal_held(worker)) is not None]
    return sum(known) if known else None


def metal_held(worker: Worker) -> int | None:
    return worker.total(lambda backend: backend.held if backend.name in METAL else None)


def _steps(a: Spread, b: Spread) -> tuple[int, int, int]:
    return (b.low - a.low, b.median - a.median, b.high - a.high)


def _spread(points: list[Point]) -> Spread:
    ordered, last = sorted([value for _, value in points]), len(points) - 1
    median = (ordered[last // 2] + ordered[(last + 1) // 2]) // 2
    return Spread(ordered[last // 10], median, ordered[last - last // 10])


def _centre(points: list[Point]) -> float:
    return (points[0].time + points[-1].time) / 2


def _processes(snapshot: Snapshot) -> Iterable[Process]:
    """Workers know theirs even when the processes could not be listed."""
    yield from snapshot.processes or ()
    for worker in snapshot.workers:
        if worker.process is not None and worker.state != "gone":
            yield worker.process
