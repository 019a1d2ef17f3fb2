"""Follows every process from snapshot to snapshot: came, changed, ended, and its peak. Pure.

The one tracker of the monitor, filled by the ticking thread alone; alerts, history and the rows of
ended processes all use it. The same pid with another start is another process.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from mpsbar.core.counters import COUNTERS, RECORDED
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.trends import GAP

# A single scan may miss a process that is busy starting another program.
SCANS_TO_END = 2
# An overnight kill is still told in the morning.
TOLD_SECONDS = 86400.0
_MOST_TOLD = 20
# Of those not connected: a look at a Python by doctor, or a test, is no run that someone misses.
_RUN_SECONDS = 30.0

Way = Literal["unknown", "stopped", "pressure"]


# What RECORDED names of one process at one time; bytes, None: not known.
Sizes = dict[str, int | None]


def _nothing() -> Sizes:
    return dict.fromkeys(RECORDED)


@dataclass(slots=True)
class TrackedProcess:
    pid: int
    started: float | None  # None: not known yet
    name: str
    first: float  # seen
    last: float
    devices: tuple[str, ...] = ()
    is_connected: bool = False  # or was, at some time
    is_head: bool = True  # no other tracked process started it
    values: Sizes = field(default_factory=_nothing)
    known: Sizes = field(default_factory=_nothing)  # the last of each that was known
    peak: int | None = None  # of what it held
    footprint_peak: int | None = None
    last_free: int | None = None  # the number of the last that was told; None: not known yet
    missed: int = 0  # scans in a row that did not find it
    missed_at: float = 0.0  # the first of them


class ProcessTracker:
    def __init__(self) -> None:
        self.present: dict[int, TrackedProcess] = {}  # by pid
        self.ended: tuple[EndedProcess, ...] = ()  # worth a row; newest first

    def look(self, snapshot: Snapshot) -> list[tuple[TrackedProcess, EndedProcess]]:
        """Those that have ended by now; each is told once."""
        ended = self._follow_present(snapshot)
        for tracked in list(self.present.values()):
            if tracked.last == snapshot.time or snapshot.processes is None:
                continue  # a failed scan is no evidence that a process ended
            tracked.missed_at = tracked.missed_at if tracked.missed else snapshot.time
            tracked.missed += 1
            if tracked.missed >= SCANS_TO_END:
                ended.append(self._end(tracked, snapshot))
        self.remember((end for tracked, end in ended if _is_told(tracked)), snapshot.time)
        return ended

    def find(self, pid: int, started: float | None) -> TrackedProcess | None:
        """This very process, if it is there: its pid may be another's by now."""
        tracked = self.present.get(pid)
        if tracked is None or None in (started, tracked.started) or tracked.started == started:
            return tracked
        return None

    def remember(self, ended: Iterable[EndedProcess], now: float) -> None:
        """Also those that ended before we began to look."""
        known = {(one.pid, one.started): one for one in (*self.ended, *ended)}
        recent = [one for one in known.values() if now - one.ended <= TOLD_SECONDS]
        recent.sort(key=lambda one: -one.ended)
        if tuple(recent) != self.ended:
            self.ended = tuple(recent[:_MOST_TOLD])

    def _follow_present(self, snapshot: Snapshot) -> list[tuple[TrackedProcess, EndedProcess]]:
        """Gives those whose pid is another process now."""
        replaced = []
        workers = {worker.pid: worker for worker in snapshot.workers if worker.state != "gone"}
        processes = {process.pid: process for process in snapshot.processes or ()}
        for pid in dict.fromkeys((*workers, *processes)):
            worker = workers.get(pid)
            process = processes.get(pid) or (worker.process if worker else None)
            tracked = self.present.get(pid)
            if tracked is not None and _is_another(tracked, process):
                tracked.missed_at = snapshot.time
                replaced.append(self._end(tracked, snapshot))
                tracked = None
            if tracked is None:
                tracked = self.present[pid] = _begin(pid, worker, process, snapshot.time)
            _follow(tracked, worker, process, snapshot.time)
            parent = worker.parent if worker and worker.parent else _parent(process)
            tracked.is_head = parent not in workers and parent not in processes
        return replaced

    def _end(
        self, tracked: TrackedProcess, snapshot: Snapshot
    ) -> tuple[TrackedProcess, EndedProcess]:
        self.present.pop(tracked.pid, None)
        was_seen = 0 <= tracked.missed_at - tracked.last <= GAP
        ended = EndedProcess(
            tracked.pid, tracked.started, tracked.name,
            tracked.missed_at if was_seen else tracked.last, was_seen,
            tracked.peak if tracked.peak is not None else tracked.footprint_peak,
            tracked.known["held"], _find_way(tracked, snapshot),
        )  # fmt: skip
        return tracked, ended


def _is_told(tracked: TrackedProcess) -> bool:
    """Children are part of their parent's story."""
    is_run = tracked.is_connected or tracked.last - tracked.first >= _RUN_SECONDS
    return tracked.is_head and is_run


def _is_another(tracked: TrackedProcess, process: Process | None) -> bool:
    return process is not None and tracked.started not in (None, process.started)


def _begin(pid: int, worker: Worker | None, process: Process | None, now: float) -> TrackedProcess:
    name = worker.name if worker else process.name if process else str(pid)
    return TrackedProcess(pid, process.started if process else None, name, now, now)


def _follow(
    tracked: TrackedProcess, worker: Worker | None, process: Process | None, now: float
) -> None:
    tracked.last, tracked.missed = now, 0
    if process is not None:
        tracked.started = process.started
        peaks = (tracked.footprint_peak, process.footprint_peak, process.footprint)
        tracked.footprint_peak = _most(peaks)
    tracked.values = _read_values(worker, process)
    tracked.known = tracked.known | {k: v for k, v in tracked.values.items() if v is not None}
    if worker is not None:
        tracked.is_connected, tracked.name = True, worker.name
        tracked.devices = tuple(backend.name for backend in worker.in_use)
        highest = (tracked.peak, tracked.values["held"], worker.total(lambda one: one.peak))
        tracked.peak = _most(highest)


def _read_values(worker: Worker | None, process: Process | None) -> Sizes:
    """One that does not answer repeats old counters: they are not known now."""
    sizes = _nothing()
    if process is not None:
        sizes["footprint"] = process.footprint
    if worker is not None and worker.state == "live":
        sizes |= {one.name: worker.total(one.read) for one in COUNTERS if one.recorded}
    return sizes


def _find_way(tracked: TrackedProcess, snapshot: Snapshot) -> Way:
    """The exit code of a process that is not our child cannot be had."""
    stopped = snapshot.stopped.get(tracked.pid)
    if stopped is not None and stopped.state == "asked":
        return "stopped"
    return "pressure" if snapshot.machine.pressure == "critical" else "unknown"


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _parent(process: Process | None) -> int | None:
    return process.parent if process is not None else None
