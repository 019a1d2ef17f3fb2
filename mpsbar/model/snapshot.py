"""One look at everything, as immutable values. None means "could not be read" and is never 0."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

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
        known = [number for backend in self.in_use if (number := value(backend)) is not None]
        return sum(known) if known else None

    @property
    def held(self) -> int | None:
        return self.total(lambda backend: backend.held)

    @property
    def cached(self) -> int | None:
        return self.total(lambda backend: backend.cached)


@dataclass(frozen=True, slots=True)
class Snapshot:
    time: float
    workers: tuple[Worker, ...] = ()

    @property
    def families(self) -> tuple[tuple[Worker, bool], ...]:
        """All workers, each once; whose parent is a worker comes right after it, marked True."""
        heads = {worker.pid: _head(worker, self.workers) for worker in self.workers}
        order = {pid: place for place, pid in enumerate(heads)}
        ranked = sorted(self.workers, key=lambda w: (order[heads[w.pid]], heads[w.pid] != w.pid))
        return tuple((worker, heads[worker.pid] != worker.pid) for worker in ranked)

    @property
    def held(self) -> int | None:
        return _sum(worker.held for worker in self.workers)

    @property
    def cached(self) -> int | None:
        return _sum(worker.cached for worker in self.workers)


def _head(worker: Worker, workers: tuple[Worker, ...]) -> int:
    """The pid at the top of a worker's family; in a circle, which only a lie can make, its own."""
    parents = {known.pid: known.parent for known in workers}
    seen = [worker.pid]
    while (parent := parents.get(seen[-1])) is not None and parent in parents:
        if parent in seen:
            return worker.pid
        seen.append(parent)
    return seen[-1]


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _difference(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else max(0, whole - part)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
