"""Everything that was read in one tick, as immutable values. None: could not be read, never 0."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from mpsbar.core.actions import (
    Asked,
    AutoFreeRule,
    Freed,
    Limited,
    Stopped,
    Tensors,
    may_come_later,
)
from mpsbar.core.counters import Backend, sum_known
from mpsbar.core.counters import Counter as AllocatorCounter
from mpsbar.core.events import EndedProcess, Event
from mpsbar.core.findings import Health
from mpsbar.core.machine import Machine, Problem, Process
from mpsbar.core.naming import CHILD, add_notebook
from mpsbar.core.progress import RunProgress

if TYPE_CHECKING:
    from mpsbar.core.dtype_results import Probe, Progress
    from mpsbar.core.trends import MachineSeries, ProcessSeries

IN_USE = "in use"

WorkerState = Literal["live", "busy", "gone"]


@dataclass(frozen=True, slots=True)
class LastFree:
    """The last Free of one worker, whichever program asked for it, as its agent reports it."""

    number: int  # of its Frees, the first is 1
    time: float  # seconds since the epoch, by the worker's clock
    state: Literal["done", "busy", "failed"]
    freed: int | None = None  # bytes
    seconds: float | None = None
    when_possible: bool = False  # it had waited for a safe moment
    reason: str | None = None  # a code: why it was busy; None for an older agent

    @property
    def may_come_later(self) -> bool:
        return may_come_later(self.state, self.reason)


@dataclass(frozen=True, slots=True)
class WaitingFree:
    """A Free that waits in its worker for a safe moment."""

    left: float  # seconds after which it is given up
    reason: str | None = None  # why the last attempt did nothing
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """A process with an agent. If it does not answer, its values are `age` seconds old."""

    pid: int
    name: str
    state: WorkerState
    age: float | None  # None: it has never answered
    command: tuple[str, ...] = ()
    python: str | None = None
    executable: str | None = None
    parent: int | None = None
    notebook: str | None = None  # the file name of a kernel's notebook
    agent: str | None = None
    methods: frozenset[str] = frozenset()
    frameworks: dict[str, str] = field(default_factory=dict)
    backends: tuple[Backend, ...] = ()
    last_free: LastFree | None = None  # None: none yet, or an older agent
    pending_free: WaitingFree | None = None
    progress: RunProgress | None = None  # None: not known
    fallbacks: int | None = None  # operations that ran on the CPU; None: not counted
    writes_exit_record: bool | None = None  # a record when it ends by itself; None: an older agent
    process: Process | None = None  # the same, as seen from the outside

    @property
    def started(self) -> float | None:
        return None if self.process is None else self.process.started

    @property
    def in_use(self) -> tuple[Backend, ...]:
        return tuple(backend for backend in self.backends if backend.state == IN_USE)

    @property
    def main_backend(self) -> Backend | None:
        """Returns the backend to show where there is room for one: the first that has a size."""
        counted = [backend for backend in self.in_use if backend.held is not None]
        return next(iter(counted or self.in_use or self.backends), None)

    @property
    def cached_is_bound(self) -> bool:
        return any(backend.cached_is_bound for backend in self.in_use)

    def total(self, value: Callable[[Backend], int | None]) -> int | None:
        """Returns the sum of the known values of all allocators in use; None if none is known."""
        known = None
        for backend in self.backends:
            if backend.state == IN_USE and (number := value(backend)) is not None:
                known = number + (known or 0)
        return known

    def count(self, counter: AllocatorCounter) -> int | None:
        """Returns one counter of all its allocators."""
        if counter.is_sum:
            return self.total(counter.read)
        return max((n for b in self.in_use if (n := counter.read(b)) is not None), default=None)

    @property
    def limit(self) -> int | None:
        return max((b.limit for b in self.in_use if b.limit is not None), default=None)

    def join(self, process: Process | None) -> "Worker":
        """Returns the worker with its process, and with the name that it has when not connected.

        The process knows its rank and a title that it wrote over its arguments (Ray's ray::A.work).
        """
        if process is None:
            return replace(self, process=None)
        name = add_notebook(process.name, self.notebook)
        if not self.command:
            command, parent = process.command, process.parent
            return replace(self, process=process, name=name, command=command, parent=parent)
        return replace(self, process=process, name=name if process.command else self.name)

    @property
    def held(self) -> int | None:
        return self.total(lambda backend: backend.held)

    @property
    def cached(self) -> int | None:
        return self.total(lambda backend: backend.cached)


@dataclass(frozen=True, slots=True)
class Family:
    """A process and those it started that have a framework loaded too."""

    root: Worker | Process
    workers: tuple[Worker, ...] = ()
    others: tuple[Process, ...] = ()  # not connected

    @property
    def own_rows(self) -> tuple[Process, ...]:
        """Returns unconnected members with own rows: ranks, other programs, a lone copy."""
        names = {member.pid: _names(member) for member in (self.root, *self.workers, *self.others)}
        siblings = Counter((process.parent, process.name) for process in self.others)
        distinct = tuple(
            process
            for process in self.others
            if process.name != CHILD
            and process.name not in names.get(process.parent or 0, ())
            and siblings[process.parent, process.name] == 1
        )
        return self.others if len(self.others) - len(distinct) == 1 else distinct

    @property
    def copies(self) -> tuple[Process, ...]:
        """Returns copies of their parent or of each other, such as a DataLoader's workers."""
        distinct = {process.pid for process in self.own_rows}
        return tuple(process for process in self.others if process.pid not in distinct)


@dataclass(frozen=True, slots=True)
class AutoFreeStatus:
    """What was chosen for one process, and whether its cache is left alone for a while."""

    rule: AutoFreeRule = field(default_factory=AutoFreeRule)
    is_left_alone: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    time: float
    workers: tuple[Worker, ...] = ()
    machine: Machine = field(default_factory=Machine)
    processes: tuple[Process, ...] | None = ()  # all that were found; None: they were not listed
    health: Health = field(default_factory=Health)
    problems: tuple[Problem, ...] = ()  # what could not be read, and why
    gpu_utilization: tuple[int, ...] = ()  # of the last ticks, percent
    pending: frozenset[Asked] = frozenset()  # actions that have not ended yet
    probing: "Progress | None" = None  # of the dtype probe, while it runs
    dtypes: "Probe | None" = None  # the last probe that still holds for what runs here
    freed: dict[int, Freed] = field(default_factory=dict)  # recent outcomes by pid
    limited: dict[int, Limited] = field(default_factory=dict)  # recent outcomes by pid
    auto_free: dict[int, AutoFreeStatus] = field(default_factory=dict)  # by pid, where not usual
    tensors: dict[int, Tensors] = field(default_factory=dict)  # recent outcomes by pid
    stopped: dict[int, Stopped] = field(default_factory=dict)  # recent outcomes by pid
    gpu_resets: dict[int, float] = field(default_factory=dict)  # by pid: when, while it used it
    ended: tuple[EndedProcess, ...] = ()  # processes that ended in the last day, newest first
    events: tuple[Event, ...] = ()  # the latest, oldest first
    # The last minutes of each process, by pid, for a plot. A change of them redraws nothing else.
    process_series: "dict[int, ProcessSeries]" = field(
        default_factory=dict, compare=False, repr=False
    )
    machine_series: "MachineSeries | None" = field(default=None, compare=False, repr=False)

    @property
    def unconnected(self) -> tuple[Process, ...]:
        known = {worker.pid for worker in self.workers}
        return tuple(process for process in self.processes or () if process.pid not in known)

    @property
    def names(self) -> dict[int, str]:
        """Returns the names of all processes, by pid."""
        named = {process.pid: process.name for process in self.processes or ()}
        return named | {worker.pid: worker.name for worker in self.workers}

    @property
    def families(self) -> tuple[Family, ...]:
        """Returns all processes, each in one family; families with a worker come first."""
        members: tuple[Worker | Process, ...] = (*self.workers, *self.unconnected)
        parents = {member.pid: member.parent for member in members}
        roots = _find_roots(parents)
        families: dict[int, list[Worker | Process]] = {}
        for member in members:
            families.setdefault(roots[member.pid], []).append(member)
        return tuple(_build_family(root, family) for root, family in families.items())

    def events_after(self, number: int) -> tuple[Event, ...]:
        """Returns the events that are new to a front end which has shown those up to `number`."""
        return tuple(event for event in self.events if event.number > number)

    @property
    def longest_job(self) -> Worker | None:
        """Returns the worker that has run longest, of those whose progress is known."""
        jobs = [
            (worker.started, worker)
            for worker in self.workers
            if worker.state != "gone" and worker.progress and worker.progress.fraction is not None
        ]
        return min(jobs, key=lambda job: (job[0] is None, job[0] or 0.0), default=(None, None))[1]

    @property
    def held(self) -> int | None:
        return sum_known(worker.held for worker in self.workers)

    @property
    def cached(self) -> int | None:
        return sum_known(worker.cached for worker in self.workers)


def _names(member: Worker | Process) -> set[str]:
    """Returns both of its names: only the agent knows a notebook's, and its children are matched by
    the name that is seen from outside."""
    process = member.process if isinstance(member, Worker) else None
    return {member.name} | ({process.name} if process is not None else set())


def _build_family(pid: int, members: list[Worker | Process]) -> Family:
    return Family(
        next(member for member in members if member.pid == pid),
        tuple(m for m in members if isinstance(m, Worker) and m.pid != pid),
        tuple(m for m in members if isinstance(m, Process) and m.pid != pid),
    )


def _find_roots(parents: dict[int, int | None]) -> dict[int, int]:
    """Returns the topmost known parent of each process, or the process itself below a circle.

    Only false answers make a circle. Each process is visited once: another computer may claim
    thousands, each the child of the last.
    """
    roots: dict[int, int | None] = {}  # None: it is its own
    for pid in parents:
        path: dict[int, None] = {}  # in order
        at: int | None = pid
        while at is not None and at in parents and at not in roots and at not in path:
            path[at] = None
            at = parents[at]
        if at is not None and at in roots:
            root = roots[at]
        else:
            root = None if at in path else next(reversed(path))
        roots.update(dict.fromkeys(path, root))
    return {pid: pid if root is None else root for pid, root in roots.items()}
