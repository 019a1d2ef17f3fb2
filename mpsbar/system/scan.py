"""Scans this computer: its state, and the processes that have a framework loaded.

The libraries of a process are read once, and seldom again if no framework was among them (torch can
be imported late). A read that hangs never delays the others.
"""

import heapq
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mpsbar.core.machine import Machine, Problem, Process
from mpsbar.system.platform import Computer, Footprint, GpuClient
from mpsbar.system.process_reader import Examination, examine_process
from mpsbar.system.read_timeouts import SCAN_SECONDS, ReadStuckError, TimeoutPool

# After this many seconds a process without torch is read again; then after twice as many.
FIRST_WAIT = 2.0
LONGEST_WAIT = 60.0
# One with torch may have loaded another framework too, or become another program by exec. The
# latter also shows in its footprint, and in its agent, which is gone: it is examined sooner then.
FOUND_WAIT = 30.0
# The part of its footprint that is left; at least so many seconds after the last examination.
SHRUNK, SHRUNK_WAIT = 0.5, 5.0
# A failure may pass. One that is stuck costs nothing: read_timeouts does not read it meanwhile.
RETRY_WAIT = 0.5
# Two readings of the GPU times closer than this say nothing: the driver updates them in steps.
_SHORTEST_SHARE_SECONDS = 0.05
# Ended, or another user's.
_GONE = (ProcessLookupError, FileNotFoundError, PermissionError)
_UNKNOWN_FOOTPRINT = Footprint(None, None)
# Processes that were here before us are spread over time, so that they do not come due together.
_GOLDEN_RATIO = 0.618034

_LATE = TimeoutError("not read in time")

_Jobs = list[tuple[int, Callable[[], Any]]]


@dataclass(frozen=True, slots=True)
class Scan:
    machine: Machine
    processes: tuple[Process, ...] | None  # None: they could not be listed
    # Whether a pid has given the GPU work; without those of which it is not known.
    gpu_clients: dict[int, bool] = field(default_factory=dict)
    has_gpu_times: bool = False  # so that a second scan shows each process's share
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Tracked:
    """One process of the list; `process` once a framework was found in it."""

    wait: float
    due: float = 0.0
    examined: float = 0.0  # when
    examination: Examination | None = None
    process: Process | None = None
    has_gpu: bool = False
    is_worker: bool | None = None  # whether its agent says that a framework is loaded; None: none


class GpuShares:
    """Each process's share of the GPU's time, from two readings of its clients' counters.

    Counters only grow while a client is open, so clients are compared and processes are sums.
    """

    def __init__(self) -> None:
        self._before: dict[int, GpuClient] = {}
        self._time: float | None = None
        self._shares: dict[int, float] = {}

    def update(self, clients: dict[int, GpuClient] | None, now: float) -> dict[int, float]:
        """Percent by pid; a process is missing while its share is not known."""
        if clients is None:
            self._before, self._time, self._shares = {}, None, {}
        elif self._time is None or now - self._time >= _SHORTEST_SHARE_SECONDS:
            self._shares = self._compare(clients, now)
            self._before, self._time = clients, now
        return self._shares

    def _compare(self, clients: dict[int, GpuClient], now: float) -> dict[int, float]:
        if self._time is None:
            return {}
        spent: dict[int, int] = {}
        for number, client in clients.items():
            delta = _subtract(self._before.get(number), client)
            if delta is not None:
                spent[client.pid] = spent.get(client.pid, 0) + delta
        # Clients run side by side, so their sum can exceed the time that passed.
        return {pid: min(100.0, ns / (now - self._time) / 1e7) for pid, ns in spent.items()}


def _subtract(before: GpuClient | None, now: GpuClient) -> int | None:
    """Returns None for a client that is new, has no counter, or whose counter was reset."""
    if before is None or before.pid != now.pid:
        return None
    if before.nanoseconds is None or now.nanoseconds is None:
        return None
    return now.nanoseconds - before.nanoseconds if now.nanoseconds >= before.nanoseconds else None


def find_gpu_users(clients: dict[int, GpuClient]) -> dict[int, bool | None]:
    """Which pids have opened the GPU, and whether one of their clients has given it work.

    torch before 2.13 cannot tell whether its allocator exists, and reading the counters would
    create it: an opening without work, as by is_available(), is no proof that it does.
    """
    gpu_users: dict[int, bool | None] = {}
    for client in clients.values():
        before = gpu_users.get(client.pid, False)
        either = (before, client.has_worked)
        gpu_users[client.pid] = True if True in either else None if None in either else False
    return gpu_users


class Scanner:
    """Call `scan` and `close` from one thread only."""

    def __init__(self, computer: Computer, clock: Callable[[], float] = time.monotonic) -> None:
        self._computer = computer
        self._clock = clock
        self._readers = TimeoutPool()
        self._shares = GpuShares()
        self._tokens: dict[int, Hashable] = {}
        self._tracked: dict[int, _Tracked] = {}
        self._found: dict[int, _Tracked] = {}
        self._queue: list[tuple[float, int]] = []  # a heap: who comes due when
        self._was_listed = False
        self._workers: set[int] = set()  # that had an agent at the last scan

    def scan(self, seconds: float = SCAN_SECONDS) -> Scan:
        """Reads all known processes at once; only new ones take a second round."""
        deadline = self._clock() + seconds
        computer = self._computer
        standing = [
            ("machine", computer.read_machine),
            ("processes", computer.list_processes),
            ("gpu", self._read_gpu),
        ]
        jobs = self._pick_due()
        results = self._readers.run([*standing, *jobs], seconds, vital=len(standing))
        problems = [_describe_problem(key, results.get(key, _LATE)) for key, _ in standing]
        values = (results.get(key) for key, _ in standing)
        machine, pids, gpu = (None if isinstance(v, Exception) else v for v in values)
        read_at, clients = gpu or (self._clock(), None)
        problems += [*computer.problems, *self._learn_all(jobs, results)]
        gpu_users = None if clients is None else find_gpu_users(clients)
        if pids is not None:
            self._update_list(pids)
        self._note_gpu_users(set(gpu_users or ()))
        left = deadline - self._clock()
        if left > 0 and (new := self._pick_due(with_footprints=False)):
            problems += self._learn_all(new, self._readers.run(new, left))
        shares = self._shares.update(clients, read_at)
        return Scan(
            machine=machine or Machine(),
            processes=self._collect(gpu_users, shares) if self._is_listed(results) else None,
            gpu_clients={} if gpu_users is None else self._known_gpu_clients(gpu_users),
            has_gpu_times=any(c.nanoseconds is not None for c in (clients or {}).values()),
            problems=tuple(problem for problem in problems if problem is not None),
        )

    def close(self) -> None:
        self._readers.close()

    def _read_gpu(self) -> tuple[float, dict[int, GpuClient] | None]:
        """The GPU's clients and when they were read: later reads of the same scan may take long."""
        return self._clock(), self._computer.read_gpu_clients()

    def _is_listed(self, results: dict[Any, Any]) -> bool:
        """Returns whether the list is current: None means unchanged, an exception failed."""
        pids = results.get("processes", _LATE)
        self._was_listed = self._was_listed or isinstance(pids, dict)
        return self._was_listed and not isinstance(pids, Exception)

    def _update_list(self, pids: dict[int, Hashable]) -> None:
        """Adds new processes; drops those that ended and those whose pid is another process now."""
        now = self._clock()
        before, self._tokens = self._tokens, pids
        for pid in before.keys() - pids.keys():
            self._forget(pid)
        for pid, _ in pids.items() - before.items():
            self._forget(pid)
            wait = FIRST_WAIT
            if not self._was_listed:
                wait = max(FIRST_WAIT, LONGEST_WAIT * (pid * _GOLDEN_RATIO % 1))
            self._tracked[pid] = _Tracked(wait)
            self._schedule(pid, now)

    def _forget(self, pid: int) -> None:
        self._tracked.pop(pid, None)
        self._found.pop(pid, None)

    def _schedule(self, pid: int, due: float) -> None:
        self._tracked[pid].due = due
        heapq.heappush(self._queue, (due, pid))

    def _note_gpu_users(self, gpu_users: set[int]) -> None:
        """Whoever has opened the GPU since the last scan has probably loaded a framework."""
        for pid in gpu_users & self._tracked.keys():
            tracked = self._tracked[pid]
            if not tracked.has_gpu:
                tracked.has_gpu, tracked.examination = True, None
                self._schedule(pid, self._clock())

    def note_workers(self, workers: dict[int, bool]) -> bool:
        """Has workers examined by the next scan, and again when their agent says that a framework
        is loaded, since no list tells when a process imports torch; also those whose agent is gone,
        as it is after an exec. False: nothing is new."""
        now, is_new = self._clock(), False
        for pid in self._workers - workers.keys():
            if pid in self._found:
                self._tracked[pid].examination, is_new = None, True
                self._schedule(pid, now)
        self._workers = set(workers)
        for pid, is_loaded in workers.items():
            tracked = self._tracked.get(pid)
            if tracked is None or tracked.process is not None or tracked.is_worker is is_loaded:
                continue
            tracked.is_worker, tracked.examination, is_new = is_loaded, None, True
            self._schedule(pid, now)
        return is_new

    def _pick_due(self, with_footprints: bool = True) -> _Jobs:
        """The processes to examine now, and those found before, whose footprint is read."""
        now = self._clock()
        due: dict[int, None] = {}
        while self._queue and self._queue[0][0] <= now:
            when, pid = heapq.heappop(self._queue)
            tracked = self._tracked.get(pid)
            if tracked is not None and tracked.due == when:
                due[pid] = None
        jobs: _Jobs = []
        if with_footprints:
            read = self._computer.read_footprint
            jobs = [
                (pid, partial(read, pid, with_peak=False)) for pid in self._found if pid not in due
            ]
        return jobs + [
            (pid, partial(examine_process, self._computer, pid, self._tracked[pid].examination))
            for pid in due
        ]

    def _learn_all(self, jobs: _Jobs, results: dict[Any, Any]) -> list[Problem | None]:
        now = self._clock()
        problems = [self._learn(pid, results[pid], now) for pid, _ in jobs if pid in results]
        late = [pid for pid, _ in jobs if pid not in results]
        for pid in late:
            tracked = self._tracked[pid]
            tracked.process = _with_footprint(tracked.process, _UNKNOWN_FOOTPRINT)
            self._schedule(pid, now)
        if late:
            problems.append(Problem("processes", f"{len(late)} could not be read in time"))
        return problems

    def _learn(self, pid: int, result: Any, now: float) -> Problem | None:
        tracked = self._tracked[pid]
        if isinstance(result, Footprint):
            if _has_shrunk(tracked.process, result):
                self._examine_soon(pid, now)
            tracked.process = _with_footprint(tracked.process, result)
            return None
        tracked.examined = now
        tracked.examination = result if isinstance(result, Examination) else None
        if tracked.examination is not None and tracked.examination.process is not None:
            tracked.process, tracked.wait = tracked.examination.process, FIRST_WAIT
            self._found[pid] = tracked
            self._schedule(pid, now + FOUND_WAIT)
            return None
        if isinstance(result, (Examination, *_GONE)):
            self._wait_longer(pid, is_foreign=isinstance(result, PermissionError))
            return None
        # Stuck, or a failure that may pass: the process is still there, its footprint is unknown.
        tracked.process = _with_footprint(tracked.process, _UNKNOWN_FOOTPRINT)
        self._schedule(pid, now + RETRY_WAIT)
        return _describe_problem(f"process {pid}", result)

    def _examine_soon(self, pid: int, now: float) -> None:
        """Has a process whose footprint shrank examined soon: it may be another program by now."""
        tracked = self._tracked[pid]
        due = max(now, tracked.examined + SHRUNK_WAIT)
        if due < tracked.due:
            tracked.examination = None
            self._schedule(pid, due)

    def _wait_longer(self, pid: int, is_foreign: bool) -> None:
        """No framework is loaded: the process is read again after twice the time."""
        tracked = self._tracked[pid]
        tracked.process = None
        self._found.pop(pid, None)
        self._schedule(pid, self._clock() + (LONGEST_WAIT if is_foreign else tracked.wait))
        tracked.wait = min(LONGEST_WAIT, tracked.wait * 2)

    def _known_gpu_clients(self, gpu_users: dict[int, bool | None]) -> dict[int, bool]:
        clients = {pid: gpu_users.get(pid, False) for pid in self._tracked}
        return {pid: has_worked for pid, has_worked in clients.items() if has_worked is not None}

    def _collect(
        self, gpu_users: dict[int, bool | None] | None, shares: dict[int, float]
    ) -> tuple[Process, ...]:
        processes = [
            tracked.process for tracked in self._found.values() if tracked.process is not None
        ]
        if gpu_users is None:
            return tuple(processes)
        return tuple(
            replace(
                process,
                gpu_client=gpu_users.get(process.pid, False),
                gpu_percent=shares.get(process.pid) if process.pid in gpu_users else 0.0,
            )
            for process in processes
        )


def _has_shrunk(process: Process | None, footprint: Footprint) -> bool:
    before = None if process is None else process.footprint
    return before is not None and footprint.now is not None and footprint.now < SHRUNK * before


def _with_footprint(process: Process | None, footprint: Footprint) -> Process | None:
    """The same process with another footprint; its peak grows until it is examined again."""
    if process is None:
        return None
    now, peak = footprint.now, footprint.peak
    if peak is None:
        peak = max(now or 0, process.footprint_peak or 0) or None
    naps = footprint.is_napping
    if (process.footprint, process.footprint_peak, process.is_napping) == (now, peak, naps):
        return process
    return replace(process, footprint=now, footprint_peak=peak, is_napping=naps)


def _describe_problem(reader: str, result: Any) -> Problem | None:
    if isinstance(result, ReadStuckError):
        return Problem(reader, "does not answer")
    if result is _LATE:
        return Problem(reader, "could not be read in time")
    if isinstance(result, Exception):
        return Problem(reader, f"{type(result).__name__}: {result}")
    return None
