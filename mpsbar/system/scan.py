"""One look at this computer: its state, and the processes that have a framework loaded.

What a process has loaded is asked once for each process, and seldom again for one that had nothing
(torch can be imported late). What is stuck never holds up the rest.
"""

import heapq
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mpsbar.core.machine import Machine, Problem, Process
from mpsbar.system.gpu_share import GpuShares
from mpsbar.system.platform import Computer, Footprint, GpuClient
from mpsbar.system.process_reader import Answer, examine
from mpsbar.system.read_timeouts import CEILING, Readers, Stuck

# After this many seconds a process without torch is asked again; then after twice as many.
FIRST_WAIT = 2.0
LONGEST_WAIT = 60.0
# One with torch may have loaded another framework too, or become another program by exec.
FOUND_WAIT = 30.0
# One that is stuck costs nothing to ask: it is not, as long as its last answer is due.
AGAIN_WAIT = 0.5
# Ended, or not ours.
_GONE = (ProcessLookupError, FileNotFoundError, PermissionError)
_NOT_KNOWN = Footprint(None, None)
# Processes that were here before us are spread over time, so that they do not come due together.
_GOLDEN_RATIO = 0.618034

_Jobs = list[tuple[int, Callable[[], Any]]]


@dataclass(frozen=True, slots=True)
class Scan:
    machine: Machine
    processes: tuple[Process, ...] | None  # None: they could not be listed
    gpu_clients: dict[int, bool] = field(default_factory=dict)  # whether a pid holds the GPU
    has_gpu_times: bool = False  # so that a second look tells each process's share
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Known:
    """One process; `process` once a framework was found in it."""

    wait: float
    due: float = 0.0
    answer: Answer | None = None
    process: Process | None = None
    has_gpu: bool = False


class Scanner:
    """`look` and `close` from one thread only."""

    def __init__(self, computer: Computer, clock: Callable[[], float] = time.monotonic) -> None:
        self._computer = computer
        self._clock = clock
        self._readers = Readers()
        self._shares = GpuShares()
        self._tokens: dict[int, Hashable] = {}
        self._known: dict[int, _Known] = {}
        self._found: dict[int, _Known] = {}
        self._queue: list[tuple[float, int]] = []  # a heap: who comes due when
        self._was_listed = False

    def look(self, seconds: float = CEILING) -> Scan:
        """All that is known is asked at once; only who is new takes a second round."""
        deadline = self._clock() + seconds
        computer = self._computer
        standing = [
            ("machine", computer.read_machine),
            ("processes", computer.list_processes),
            ("gpu", self._read_gpu),
        ]
        jobs = self._pick_due()
        told = self._readers.run([*standing, *jobs], seconds, vital=len(standing))
        problems = [_problem(key, told.get(key, Stuck())) for key, _ in standing]
        machine, pids, gpu = (_value(told.get(key)) for key, _ in standing)
        read_at, clients = gpu or (self._clock(), None)
        problems += [*computer.problems, *self._learn_all(jobs, told)]
        holders = None if clients is None else {client.pid for client in clients.values()}
        if pids is not None:
            self._follow(pids)
        self._note_holders(holders or set())
        left = deadline - self._clock()
        if left > 0 and (new := self._pick_due(with_footprints=False)):
            problems += self._learn_all(new, self._readers.run(new, left))
        shares = self._shares.update(clients, read_at)
        return Scan(
            machine=machine or Machine(),
            processes=self._collect(holders, shares) if self._is_listed(told) else None,
            gpu_clients={} if holders is None else {pid: pid in holders for pid in self._known},
            has_gpu_times=_has_times(clients),
            problems=tuple(problem for problem in problems if problem is not None),
        )

    def close(self) -> None:
        self._readers.close()

    def _read_gpu(self) -> tuple[float, dict[int, GpuClient] | None]:
        """With the time of the reading itself: what follows it may take long."""
        return self._clock(), self._computer.read_gpu_clients()

    def _is_listed(self, told: dict[Any, Any]) -> bool:
        """Whether the list of processes is a true one: failed is not the same as unchanged."""
        answer = told.get("processes", Stuck())
        self._was_listed = self._was_listed or isinstance(answer, dict)
        return self._was_listed and not isinstance(answer, Exception)

    def _follow(self, pids: dict[int, Hashable]) -> None:
        """Who is new, who has gone, whose pid is another process now."""
        now = self._clock()
        before, self._tokens = self._tokens, pids
        for pid in before.keys() - pids.keys():
            self._forget(pid)
        for pid, _ in pids.items() - before.items():
            self._forget(pid)
            wait = FIRST_WAIT
            if not self._was_listed:
                wait = max(FIRST_WAIT, LONGEST_WAIT * (pid * _GOLDEN_RATIO % 1))
            self._known[pid] = _Known(wait)
            self._schedule(pid, now)

    def _forget(self, pid: int) -> None:
        self._known.pop(pid, None)
        self._found.pop(pid, None)

    def _schedule(self, pid: int, due: float) -> None:
        self._known[pid].due = due
        heapq.heappush(self._queue, (due, pid))

    def _note_holders(self, holders: set[int]) -> None:
        """Whoever has opened the GPU since the last look has probably loaded something."""
        for pid in holders & self._known.keys():
            known = self._known[pid]
            if not known.has_gpu:
                known.has_gpu, known.answer = True, None
                self._schedule(pid, self._clock())

    def _pick_due(self, with_footprints: bool = True) -> _Jobs:
        """Those to examine now and, of those already found, those to read the footprint of."""
        now = self._clock()
        due: dict[int, None] = {}
        while self._queue and self._queue[0][0] <= now:
            when, pid = heapq.heappop(self._queue)
            known = self._known.get(pid)
            if known is not None and known.due == when:
                due[pid] = None
        jobs: _Jobs = []
        if with_footprints:
            read = self._computer.read_footprint
            jobs = [
                (pid, partial(read, pid, with_peak=False)) for pid in self._found if pid not in due
            ]
        return jobs + [
            (pid, partial(examine, self._computer, pid, self._known[pid].answer)) for pid in due
        ]

    def _learn_all(self, jobs: _Jobs, told: dict[Any, Any]) -> list[Problem | None]:
        now = self._clock()
        problems = [self._learn(pid, told[pid], now) for pid, _ in jobs if pid in told]
        late = [pid for pid, _ in jobs if pid not in told]
        for pid in late:
            known = self._known[pid]
            known.process = _charge(known.process, _NOT_KNOWN)
            self._schedule(pid, now)
        if late:
            problems.append(Problem("processes", f"{len(late)} could not be looked at in time"))
        return problems

    def _learn(self, pid: int, answer: Any, now: float) -> Problem | None:
        known = self._known[pid]
        if isinstance(answer, Footprint):
            known.process = _charge(known.process, answer)
            return None
        known.answer = answer if isinstance(answer, Answer) else None
        if known.answer is not None and known.answer.process is not None:
            known.process, known.wait = known.answer.process, FIRST_WAIT
            self._found[pid] = known
            self._schedule(pid, now + FOUND_WAIT)
            return None
        if isinstance(answer, (Answer, *_GONE)):
            self._learn_nothing(pid, known, answer, now)
            return None
        # Stuck, or a failure that may pass: it is still there, but nothing is known of it now.
        known.process = _charge(known.process, _NOT_KNOWN)
        self._schedule(pid, now + AGAIN_WAIT)
        return _problem(f"process {pid}", answer)

    def _learn_nothing(self, pid: int, known: _Known, answer: Any, now: float) -> None:
        known.process = None
        self._found.pop(pid, None)
        self._schedule(
            pid, now + (LONGEST_WAIT if isinstance(answer, PermissionError) else known.wait)
        )
        known.wait = min(LONGEST_WAIT, known.wait * 2)

    def _collect(self, holders: set[int] | None, shares: dict[int, float]) -> tuple[Process, ...]:
        found = [known.process for known in self._found.values() if known.process is not None]
        if holders is None:
            return tuple(found)
        return tuple(
            replace(
                process,
                gpu_client=process.pid in holders,
                gpu_percent=shares.get(process.pid) if process.pid in holders else 0.0,
            )
            for process in found
        )


def _charge(process: Process | None, footprint: Footprint) -> Process | None:
    if process is None:
        return None
    now, peak = footprint.now, footprint.peak
    if peak is None:
        peak = max(now or 0, process.footprint_peak or 0) or None  # until it is examined again
    if (process.footprint, process.footprint_peak) == (now, peak):
        return process
    return replace(process, footprint=now, footprint_peak=peak)


def _value(answer: Any) -> Any:
    return None if isinstance(answer, Exception) else answer


def _problem(reader: str, answer: Any) -> Problem | None:
    if isinstance(answer, Stuck):
        return Problem(reader, "does not answer")
    if isinstance(answer, Exception):
        return Problem(reader, f"{type(answer).__name__}: {answer}")
    return None


def _has_times(clients: dict[int, GpuClient] | None) -> bool:
    return any(client.nanoseconds is not None for client in (clients or {}).values())
