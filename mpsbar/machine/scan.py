"""One look at this computer: its state, and the processes that have torch or MLX loaded.

What a process has loaded is asked once for each process, and seldom again for one that had nothing
(torch can be imported late). What is stuck never holds up the rest.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mpsbar.machine.gpu_share import GpuShares
from mpsbar.machine.interpreter import find_python
from mpsbar.machine.patience import CEILING, Job, Readers, Stuck
from mpsbar.machine.platform import Computer, Footprint, GpuClient
from mpsbar.model.machine import Machine, Problem, Process
from mpsbar.model.naming import name_process

# After this many seconds a process without torch is asked again; then after twice as many.
FIRST_WAIT = 2.0
LONGEST_WAIT = 60.0
# One with torch may have loaded MLX too, or become another program by exec.
FOUND_WAIT = 30.0
# Processes that were here before us are spread over time, so that they do not come due together.
_GOLDEN_RATIO = 0.618034


@dataclass(frozen=True, slots=True)
class Look:
    machine: Machine
    processes: tuple[Process, ...] | None  # None: they could not be listed
    gpu_clients: dict[int, bool] = field(default_factory=dict)  # whether a pid holds the GPU
    has_gpu_times: bool = False  # so that a second look tells each process's share
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Known:
    """One process by its pid and token; `process` once torch or MLX was found in it."""

    token: Hashable
    due: float
    wait: float
    process: Process | None = None
    has_gpu: bool = False


class Scanner:
    """`look` and `close` from one thread only."""

    def __init__(self, computer: Computer, clock: Callable[[], float] = time.monotonic) -> None:
        self._computer = computer
        self._clock = clock
        self._readers = Readers()
        self._shares = GpuShares()
        self._known: dict[int, _Known] = {}
        self._is_first = True

    def look(self, seconds: float = CEILING) -> Look:
        deadline = self._clock() + seconds
        computer = self._computer
        jobs: list[Job] = [
            ("machine", computer.read_machine),
            ("processes", computer.list_processes),
            ("gpu", computer.read_gpu_clients),
        ]
        told = self._readers.run(jobs, seconds)
        problems = [_problem(str(key), told.get(key, Stuck())) for key, _ in jobs]
        machine, pids, clients = (_value(told.get(key)) for key, _ in jobs)
        holders = None if clients is None else {client.pid for client in clients.values()}
        if pids is not None:
            self._follow(pids, holders or set())
            problems += self._ask(max(0.0, deadline - self._clock()))
        shares = self._shares.update(clients, self._clock())
        return Look(
            machine=machine or Machine(),
            processes=None if pids is None else self._found(holders, shares),
            gpu_clients={} if holders is None else {pid: pid in holders for pid in self._known},
            has_gpu_times=_has_times(clients),
            problems=tuple(problem for problem in problems if problem is not None),
        )

    def close(self) -> None:
        self._readers.close()

    def _follow(self, pids: dict[int, Hashable], holders: set[int]) -> None:
        """Who is new, who has gone, whose pid is another process now, who has opened the GPU."""
        now = self._clock()
        for pid in [pid for pid, known in self._known.items() if pids.get(pid) != known.token]:
            del self._known[pid]
        for pid, token in pids.items():
            if pid not in self._known:
                spread = LONGEST_WAIT * (pid * _GOLDEN_RATIO % 1) if self._is_first else 0.0
                self._known[pid] = _Known(token, now, max(FIRST_WAIT, spread))
        self._is_first = False
        for pid in holders & self._known.keys():
            known = self._known[pid]
            if not known.has_gpu:
                known.has_gpu, known.due = True, now

    def _ask(self, seconds: float) -> list[Problem | None]:
        """Examine who is due, and read the footprint of who is known to have torch or MLX."""
        now = self._clock()
        due = sorted((known.wait, pid) for pid, known in self._known.items() if known.due <= now)
        asked = {pid for _, pid in due}
        jobs: list[tuple[int, Callable[[], Any]]] = [
            (pid, partial(self._computer.read_footprint, pid))
            for pid, known in self._known.items()
            if known.process is not None and pid not in asked
        ]
        jobs += [(pid, partial(self._examine, pid)) for _, pid in due]
        told = self._readers.run(jobs, seconds)
        problems = [self._learn(pid, told[pid], now) for pid, _ in jobs if pid in told]
        if late := len(jobs) - len(told):
            problems.append(Problem("processes", f"{late} could not be looked at in time"))
        return problems

    def _examine(self, pid: int) -> Process | None:
        """On the reading thread: whatever is asked here may hang."""
        libraries = self._computer.read_libraries(pid)
        if not libraries:
            return None
        details = self._computer.read_details(pid)
        footprint = self._computer.read_footprint(pid)
        python, environment = find_python(details, next(iter(libraries.values())))
        variables = details.variables
        return Process(
            pid=pid,
            started=details.started,
            name=name_process(details.command, None, variables, details.executable),
            frameworks=tuple(sorted(libraries, reverse=True)),  # torch first
            parent=details.parent,
            command=details.command,
            executable=details.executable,
            python=python,
            environment=environment,
            settings={k: v for k, v in variables.items() if k.startswith("PYTORCH_")},
            footprint=footprint.now,
            footprint_peak=footprint.peak,
            footprint_kind=self._computer.footprint_kind,
        )

    def _learn(self, pid: int, answer: Any, now: float) -> Problem | None:
        known = self._known[pid]
        if isinstance(answer, Footprint):
            assert known.process is not None
            known.process = _charge(known.process, answer)
        elif isinstance(answer, Process):
            known.process, known.due = answer, now + FOUND_WAIT
        elif isinstance(answer, Stuck):
            if known.process is not None:
                known.process = _charge(known.process, Footprint(None, None))
        else:
            known.process = None
            known.due = now + (LONGEST_WAIT if isinstance(answer, PermissionError) else known.wait)
            known.wait = min(LONGEST_WAIT, known.wait * 2)
        is_usual = isinstance(answer, (ProcessLookupError, FileNotFoundError, PermissionError))
        return None if is_usual else _problem(f"process {pid}", answer)

    def _found(self, holders: set[int] | None, shares: dict[int, float]) -> tuple[Process, ...]:
        found = [known.process for known in self._known.values() if known.process is not None]
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


def _charge(process: Process, footprint: Footprint) -> Process:
    return replace(process, footprint=footprint.now, footprint_peak=footprint.peak)


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
