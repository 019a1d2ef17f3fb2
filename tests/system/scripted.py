"""A computer whose answers a test writes: the boundary between `scan` and the platforms."""

from dataclasses import dataclass, field
from typing import Any

from mpsbar.core.machine import Machine, Problem
from mpsbar.system.platform import (
    Details,
    ExitWatch,
    Footprint,
    NoExitWatch,
    NoReports,
    ReportReader,
)


@dataclass
class Scripted:
    """A value is an answer; an exception is raised; `asked` counts who was asked for libraries."""

    is_mac: bool = True
    recorded_workers: None = None
    problems: tuple[Problem, ...] = ()
    machine: Any = field(default_factory=lambda: Machine(chip="Apple M9"))
    pids: Any = field(default_factory=dict)
    libraries: dict[int, Any] = field(default_factory=dict)
    footprints: dict[int, Any] = field(default_factory=dict)
    clients: Any = None
    sizes: dict[int, Any] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    waited: float | None = None

    def read_machine(self) -> Machine:
        return _answer(self.machine)

    def wait_for_slow(self, seconds: float) -> None:
        self.waited = seconds

    def list_processes(self) -> dict[int, Any] | None:
        pids = _answer(self.pids)
        return None if pids is None else dict(pids)

    def read_libraries(self, pid: int) -> dict[str, str]:
        self.asked.append(pid)
        return _answer(self.libraries.get(pid, {}))

    def read_size(self, pid: int) -> Any:
        return _answer(self.sizes.get(pid))

    def read_start(self, pid: int) -> float:
        return self.read_details(pid).started

    def read_details(self, pid: int) -> Details:
        return Details(float(pid), 1, ("python", f"train{pid}.py"), "/usr/bin/python3", {})

    def read_footprint(self, pid: int, with_peak: bool = True) -> Footprint:
        return _answer(self.footprints.get(pid, Footprint(pid << 20, pid << 21)))

    def read_gpu_clients(self) -> Any:
        return _answer(self.clients)

    def watch_exits(self) -> ExitWatch:
        return NoExitWatch()

    def read_reports(self) -> ReportReader:
        return NoReports()

    def read_exit_reason(self, pid: int) -> tuple[int, int] | None:
        return None

    def read_boot(self) -> float | None:
        return None


def _answer(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value
