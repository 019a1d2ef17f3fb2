"""One look at everything, as immutable values. None means "could not be read" and is never 0."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mpsbar.core.actions import Asked, Freed, Stopped, Tensors
from mpsbar.core.counters import Backend
from mpsbar.core.events import EndedProcess, Event
from mpsbar.core.findings import Health
from mpsbar.core.machine import Machine, Problem, Process
from mpsbar.core.naming import CHILD

if TYPE_CHECKING:
    from mpsbar.core.dtype_results import Probe, Progress
    from mpsbar.core.trends import Track

IN_USE = "in use"

WorkerState = Literal["live", "busy", "gone"]


@dataclass(frozen=True, slots=True)
class LastFree:
    """The last Free of one worker, whoever asked for it, as its agent tells."""

    number: int  # of its Frees, the first is 1
    time: float  # seconds since the epoch, by the worker's clock
    state: Literal["done", "busy", "failed"]
    freed: int | None = None  # bytes
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """A process with an agent. Without an answer it keeps its last values, `age` seconds old."""

    pid: int
    name: str
    state: WorkerState
    age: float | None  # None: it has never answered
    command: tuple[str, ...] = ()
    python: str | None = None
    executable: str | None = None
    parent: int | None = None
    agent: str | None = None
    methods: frozenset[str] = frozenset()
    frameworks: dict[str, str] = field(default_factory=dict)
    backends: tuple[Backend, ...] = ()
    last_free: LastFree | None = None  # None: none yet, or an older agent
    process: Process | None = None  # the same, as seen from the outside

    @property
    def in_use(self) -> tuple[Backend, ...]:
        return tuple(backend for backend in self.backends if backend.state == IN_USE)

    @property
    def main_backend(self) -> Backend | None:
        """The one to show where there is room for one: the first that counts something."""
        counted = [backend for backend in self.in_use if backend.held is not None]
        return next(iter(counted or self.in_use or self.backends), None)

    @property
    def cached_is_bound(self) -> bool:
        return any(backend.cached_is_bound for backend in self.in_use)

    def total(self, value: Callable[[Backend], int | None]) -> int | None:
        """The sum of what is known over the allocators in use; None if nothing is."""
        known = None
        for backend in self.backends:
            if backend.state == IN_USE and (number := value(backend)) is not None:
                known = number + (known or 0)
        return known

    @property
    def held(self) -> int | None:
        return self.total(lambda backend: backend.held)

    @property
    def cached(self) -> int | None:
        return self.total(lambda backend: backend.cached)


@dataclass(frozen=True, slots=True)
class Family:
    """A process and those it started, which have a framework loaded too."""

    head: Worker | Process
    workers: tuple[Worker, ...] = ()
    others: tuple[Process, ...] = ()  # not connected

    @property
    def distinct(self) -> tuple[Process, ...]:
        """Of the others those a person tells apart: ranks, other programs; a single copy, too."""
        names = {one.pid: _names(one) for one in (self.head, *self.workers, *self.others)}
        siblings = Counter((one.parent, one.name) for one in self.others)
        distinct = tuple(
            one
            for one in self.others
            if one.name != CHILD
            and one.name not in names.get(one.parent or 0, ())
            and siblings[one.parent, one.name] == 1
        )
        return self.others if len(self.others) - len(distinct) == 1 else distinct

    @property
    def alike(self) -> tuple[Process, ...]:
        """The rest: copies of their parent or of each other, as a pool's or a DataLoader's are."""
        distinct = {one.pid for one in self.distinct}
        return tuple(one for one in self.others if one.pid not in distinct)


@dataclass(frozen=True, slots=True)
class Snapshot:
    time: float
    workers: tuple[Worker, ...] = ()
    machine: Machine = field(default_factory=Machine)
    processes: tuple[Process, ...] | None = ()  # all that were found; None: could not be looked for
    health: Health = field(default_factory=Health)
    problems: tuple[Problem, ...] = ()  # what could not be read, and why
    gpu_course: tuple[int, ...] = ()  # the GPU's utilisation in the last looks, percent
    pending: frozenset[Asked] = frozenset()  # what was asked and has not ended yet
    probing: "Progress | None" = None  # how far the dtype probe is, while it runs
    dtypes: "Probe | None" = None  # the last one that still holds for what runs here
    freed: dict[int, Freed] = field(default_factory=dict)  # how a pid's last Free ended
    tensors: dict[int, Tensors] = field(default_factory=dict)  # and its last count
    stopped: dict[int, Stopped] = field(default_factory=dict)  # and who was asked to end
    ended: tuple[EndedProcess, ...] = ()  # who ended in the last day, newest first
    events: tuple[Event, ...] = ()  # the last that happened, oldest first
    # The last minutes of each process, by pid: for a plot. No reason to draw anything else anew.
    tracks: "dict[int, Track]" = field(default_factory=dict, compare=False, repr=False)

    @property
    def unconnected(self) -> tuple[Process, ...]:
        known = {worker.pid for worker in self.workers}
        return tuple(process for process in self.processes or () if process.pid not in known)

    @property
    def names(self) -> dict[int, str]:
        """Of everyone, by pid."""
        named = {process.pid: process.name for process in self.processes or ()}
        return named | {worker.pid: worker.name for worker in self.workers}

    @property
    def families(self) -> tuple[Family, ...]:
        """Everyone once: those who connected something first, then the others."""
        everyone: tuple[Worker | Process, ...] = (*self.workers, *self.unconnected)
        parents = {one.pid: one.parent for one in everyone}
        heads = {pid: _head(pid, parents) for pid in parents}
        members: dict[int, list[Worker | Process]] = {}
        for one in everyone:
            members.setdefault(heads[one.pid], []).append(one)
        return tuple(_family(head, family) for head, family in members.items())

    def events_after(self, number: int) -> tuple[Event, ...]:
        """Those that whoever has shown the events up to `number` has not shown yet."""
        return tuple(event for event in self.events if event.number > number)

    @property
    def held(self) -> int | None:
        return _sum(worker.held for worker in self.workers)

    @property
    def cached(self) -> int | None:
        return _sum(worker.cached for worker in self.workers)


def _names(one: Worker | Process) -> set[str]:
    """A notebook's name is known to its agent only; its children are named from the outside."""
    process = one.process if isinstance(one, Worker) else None
    return {one.name} | ({process.name} if process is not None else set())


def _family(pid: int, members: list[Worker | Process]) -> Family:
    return Family(
        next(one for one in members if one.pid == pid),
        tuple(one for one in members if isinstance(one, Worker) and one.pid != pid),
        tuple(one for one in members if isinstance(one, Process) and one.pid != pid),
    )


def _head(pid: int, parents: dict[int, int | None]) -> int:
    """The topmost known parent; in a circle, which only a lie can make, the process itself."""
    seen = [pid]
    while (parent := parents.get(seen[-1])) is not None and parent in parents:
        if parent in seen:
            return pid
        seen.append(parent)
    return seen[-1]


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
