"""One look at everything, as immutable values. None means "could not be read" and is never 0."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mpsbar.model.action import Asked, Freed, Stopped, Tensors
from mpsbar.model.machine import Machine, Problem, Process
from mpsbar.model.naming import CHILD
from mpsbar.model.reason import Health

if TYPE_CHECKING:
    from mpsbar.model.dtypes import Probe, Progress

IN_USE = "in use"

WorkerState = Literal["live", "busy", "gone"]


@dataclass(frozen=True, slots=True)
class Backend:
    """One allocator of one worker, in its own words. Bytes."""

    name: str
    framework: str
    state: str
    allocated: int | None = None  # in live tensors
    reserved: int | None = None  # what the allocator has from the driver
    driver: int | None = None  # all that Metal gave the process
    peak: int | None = None
    budget: int | None = None

    @property
    def held(self) -> int | None:
        return _first(self.driver, self.reserved, self.allocated)

    @property
    def cached(self) -> int | None:
        """What Free returns at most; before torch 2.13 only a bound is known."""
        return _difference(_first(self.reserved, self.driver), self.allocated)

    @property
    def cached_is_bound(self) -> bool:
        return self.reserved is None and self.cached is not None

    @property
    def other(self) -> int | None:
        """Graphs and other Metal memory, of which Free may return a part."""
        return _difference(self.driver, self.reserved)


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
class Gone:
    """A process that has ended, and what was last known of it."""

    pid: int
    started: float | None
    name: str
    ended: float  # when it was first missed; if nobody looked then, when it was last seen
    was_seen: bool = True  # False: it ended while nobody looked
    peak: int | None = None  # bytes
    held: int | None = None  # at the last look
    how: str = "unknown"  # stopped: we asked it to; pressure: memory was short


@dataclass(frozen=True, slots=True)
class Family:
    """A process and those it started, which have torch or MLX too."""

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
    gone: tuple[Gone, ...] = ()  # who ended in the last day, newest first

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


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _difference(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else max(0, whole - part)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
