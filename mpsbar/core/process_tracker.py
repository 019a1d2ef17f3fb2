"""Follows every process from snapshot to snapshot: appeared, changed, ended, and its peak. Pure.

The monitor has one tracker, filled by the ticking thread; alerts, history and the rows of ended
processes all use it. The same pid with another start time is another process.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mpsbar.core.actions import Freed
from mpsbar.core.counters import COUNTERS, RECORDED
from mpsbar.core.endings import Exit
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import Process, is_same_start
from mpsbar.core.sleep_gap import GAP, has_jumped
from mpsbar.core.snapshot import Snapshot, Worker

# A single scan may miss a process that is busy starting another program.
SCANS_TO_END = 2
# What ended overnight is still shown in the morning.
ENDED_SHOWN_SECONDS = 86400.0
_MAX_SHOWN = 20
# An unconnected process that lived shorter (a test, a doctor's child) gets no row when it ends.
_RUN_SECONDS = 30.0

# Values of one process at one time, by the names in RECORDED: bytes, and speed. None: not known.
Sizes = dict[str, int | None]


def _unknown_sizes() -> Sizes:
    return dict.fromkeys(RECORDED)


@dataclass(slots=True)
class TrackedProcess:
    pid: int
    started: float | None  # None: not known yet
    name: str
    first: float  # seen
    last: float  # seen
    devices: tuple[str, ...] = ()
    is_connected: bool = False  # or was, at some time
    is_root: bool = True  # no other tracked process started it
    values: Sizes = field(default_factory=_unknown_sizes)
    known: Sizes = field(default_factory=_unknown_sizes)  # the last known value of each
    peak: int | None = None  # of what it held
    footprint_peak: int | None = None
    last_free: int | None = None  # the number of its last Free that was shown; None: not known yet
    missed: int = 0  # scans in a row that did not find it
    missed_at: float = 0.0  # the time of the first of them
    parent: int | None = None
    command: tuple[str, ...] = ()
    torch: str | None = None  # its version
    writes_exit_record: bool | None = None  # when it ends by itself; None: not known
    gpu_reset: float | None = None  # when the GPU was reset while it used it
    seen: tuple[Worker | None, Process | None] = (None, None)  # what `update` has read last


EndedPairs = list[tuple[TrackedProcess, EndedProcess]]
Exits = Mapping[int, Exit]  # by pid


class ProcessTracker:
    def __init__(self) -> None:
        self.present: dict[int, TrackedProcess] = {}  # by pid
        self.ended: tuple[EndedProcess, ...] = ()  # worth a row; newest first
        self._exited: dict[tuple[int, float | None], float] = {}  # by pid and start: until when

    def update(self, snapshot: Snapshot, exits: Exits | None = None) -> EndedPairs:
        """Follows one more snapshot; returns the processes that have ended, each once.

        `exits` are those that the kernel says have ended: they need not be missed by two scans.
        """
        ended = self._follow_present(snapshot)
        ended += self._take_exits(snapshot, exits or {})
        for tracked in list(self.present.values()):
            if tracked.last == snapshot.time or snapshot.processes is None:
                continue  # a failed scan is no evidence that a process ended
            tracked.missed_at = tracked.missed_at if tracked.missed else snapshot.time
            tracked.missed += 1
            if tracked.missed >= SCANS_TO_END:
                ended.append(self._end(tracked))
        self.remember((end for tracked, end in ended if _is_worth_a_row(tracked)), snapshot.time)
        return ended

    def find(self, pid: int, started: float | None) -> TrackedProcess | None:
        """Returns the process if it is present; a reused pid is another process."""
        tracked = self.present.get(pid)
        return tracked if tracked and is_same_start(tracked.started, started) else None

    def remember(self, ended: Iterable[EndedProcess], now: float) -> None:
        """Adds ended processes to those that are shown, also some that ended before we started."""
        known = {(end.pid, end.started): end for end in (*self.ended, *ended)}
        recent = [end for end in known.values() if now - end.ended <= ENDED_SHOWN_SECONDS]
        recent.sort(key=lambda end: -end.ended)
        if tuple(recent) != self.ended:
            self.ended = tuple(recent[:_MAX_SHOWN])

    def correct(self, end: EndedProcess) -> None:
        """Replaces what is shown of an ended process: more is known of it now."""
        self.ended = tuple(
            end if (shown.pid, shown.started) == (end.pid, end.started) else shown
            for shown in self.ended
        )

    def note_reset(self, pids: Iterable[int], time: float) -> list[str]:
        """Marks processes that used the GPU when it was reset; returns their names."""
        marked = [self.present[pid] for pid in sorted(pids) if pid in self.present]
        for tracked in marked:
            tracked.gpu_reset = time
        return [tracked.name for tracked in marked]

    @property
    def gpu_resets(self) -> dict[int, float]:
        """Returns, by pid, when the GPU was last reset while a process that still runs used it."""
        return {
            pid: tracked.gpu_reset
            for pid, tracked in self.present.items()
            if tracked.gpu_reset is not None
        }

    def note_free(self, pid: int, number: int | None) -> None:
        """Remembers that this Free of the process was shown."""
        tracked = self.present.get(pid)
        if tracked is not None and number is not None:
            tracked.last_free = max(number, tracked.last_free or 0)

    def find_new_frees(self, workers: Iterable[Worker]) -> list[Worker]:
        """Returns workers with a Free that was not shown yet: another program may have asked."""
        reporting = []
        for worker in workers:
            tracked = self.present.get(worker.pid)
            if tracked is None or worker.age is None:
                continue
            if worker.last_free is None:
                tracked.last_free = tracked.last_free or 0  # none so far: the next one is new
            elif worker.last_free.number > (tracked.last_free or 0):
                reporting.append(worker)
        return reporting

    def take_free(self, worker: Worker, since: float) -> Freed | None:
        """Returns the outcome of a Free of another program; None if it was before `since`."""
        free, tracked = worker.last_free, self.present[worker.pid]
        if free is None:
            return None
        is_old = tracked.last_free is None and free.time < since
        tracked.last_free = free.number
        return None if is_old else Freed(
            worker.pid, worker.name, free.state, free.freed, free.seconds,
            number=free.number, asked_here=False, when_possible=free.when_possible,
        )  # fmt: skip

    def _follow_present(self, snapshot: Snapshot) -> EndedPairs:
        """Updates all that are present; returns those whose pid belongs to another process now."""
        replaced = []
        workers = {worker.pid: worker for worker in snapshot.workers if worker.state != "gone"}
        processes = {process.pid: process for process in snapshot.processes or ()}
        for pid in dict.fromkeys((*workers, *processes)):
            worker = workers.get(pid)
            process = processes.get(pid) or (worker.process if worker else None)
            if (pid, process.started if process else None) in self._exited:
                continue  # the scan was quicker than the kernel's list
            tracked = self.present.get(pid)
            if tracked and process and not is_same_start(tracked.started, process.started):
                tracked.missed_at = snapshot.time
                replaced.append(self._end(tracked))
                tracked = None
            if tracked is None:
                name = worker.name if worker else process.name if process else str(pid)
                started, now = process.started if process else None, snapshot.time
                tracked = self.present[pid] = TrackedProcess(pid, started, name, now, now)
            _update_process(tracked, worker, process, snapshot.time)
            parent = (worker.parent if worker else None) or (process.parent if process else None)
            tracked.is_root = parent not in workers and parent not in processes
            tracked.parent = parent
        return replaced

    def _take_exits(self, snapshot: Snapshot, exits: Exits) -> EndedPairs:
        now = snapshot.time
        self._exited = {key: until for key, until in self._exited.items() if until > now}
        ended = []
        for pid, known in exits.items():
            tracked = self.present.get(pid)
            if tracked is None or tracked.started != known.started:
                continue
            self._exited[pid, known.started] = now + GAP
            tracked.missed_at = known.time
            ended.append(self._end(tracked))
        return ended

    def _end(self, tracked: TrackedProcess) -> tuple[TrackedProcess, EndedProcess]:
        self.present.pop(tracked.pid, None)
        was_seen = not has_jumped(tracked.last, tracked.missed_at)
        ended = EndedProcess(
            tracked.pid, tracked.started, tracked.name,
            tracked.missed_at if was_seen else tracked.last, was_seen,
            tracked.peak if tracked.peak is not None else tracked.footprint_peak,
            tracked.known["held"],
            ran=None if tracked.started is None else max(0.0, tracked.last - tracked.started),
        )  # fmt: skip
        return tracked, ended


def _is_worth_a_row(tracked: TrackedProcess) -> bool:
    """Returns whether its end is shown; children are shown with the process that started them."""
    is_run = tracked.is_connected or tracked.last - tracked.first >= _RUN_SECONDS
    return tracked.is_root and is_run


def _update_process(
    tracked: TrackedProcess, worker: Worker | None, process: Process | None, now: float
) -> None:
    tracked.last, tracked.missed = now, 0
    if tracked.seen[0] is worker and tracked.seen[1] is process:
        return  # as most are from one tick to the next
    tracked.seen = (worker, process)
    if process is not None:
        tracked.started = process.started
        peaks = (tracked.footprint_peak, process.footprint_peak, process.footprint)
        tracked.footprint_peak = _largest(peaks)
    tracked.values = _read_values(worker, process)
    tracked.known = tracked.known | {k: v for k, v in tracked.values.items() if v is not None}
    command = process.command if process is not None else ()
    tracked.command = command or tracked.command
    if worker is not None:
        tracked.is_connected, tracked.name = True, worker.name
        tracked.torch = worker.frameworks.get("torch", tracked.torch)
        if worker.writes_exit_record is not None:
            tracked.writes_exit_record = worker.writes_exit_record
        tracked.devices = tuple(backend.name for backend in worker.in_use)
        peak = worker.total(lambda backend: backend.peak)
        tracked.peak = _largest((tracked.peak, tracked.values["held"], peak))


def _read_values(worker: Worker | None, process: Process | None) -> Sizes:
    """Returns the present values; those of a worker without an answer are not known."""
    sizes = _unknown_sizes()
    if process is not None:
        sizes["footprint"] = process.footprint
    if worker is not None and worker.state == "live":
        recorded = [counter for counter in COUNTERS if counter.recorded]
        sizes |= {counter.name: worker.total(counter.read) for counter in recorded}
        speed = None if worker.progress is None else worker.progress.millionths
        # To two figures: what hardly changes needs no new row in the history.
        sizes["speed"] = None if speed is None else int(float(f"{speed:.2g}"))
    return sizes


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
