"""A Mac as one of the platforms: which reader answers what."""

import os
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from mpsbar.core.machine import Machine, Problem
from mpsbar.system.macos import processes, sysctl
from mpsbar.system.macos.gpu import BUDGET_INTERVAL, GpuReader, read_budget
from mpsbar.system.macos.native import SYSTEM, Libraries, load
from mpsbar.system.platform import (
    Details,
    ExitWatch,
    Footprint,
    GpuClient,
    NoExitWatch,
    ReportReader,
)
from mpsbar.system.read_timeouts import BackgroundValue


class MacComputer:
    """Its methods may be called from different threads, one after the other."""

    is_mac = True
    recorded_workers: list[dict[str, Any]] | None = None

    def __init__(
        self,
        libraries: Libraries | None = None,
        read_budget: Callable[[], int | None] = read_budget,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises OSError where this is no Mac."""
        libraries = libraries or Libraries()
        self._system = load(libraries.system, SYSTEM)
        self._gpu = GpuReader(libraries, clock)
        self._budget = BackgroundValue(read_budget, BUDGET_INTERVAL, clock)
        self._on_battery = BackgroundValue(sysctl.read_on_battery, sysctl.BATTERY_INTERVAL, clock)
        self._fixed: Machine | None = None
        self._unknown: tuple[Problem, ...] = ()

    def read_machine(self) -> Machine:
        system = self._system
        if self._fixed is None or self._fixed.memory_total is None:
            self._fixed = sysctl.read_fixed(system)
        machine = replace(
            self._fixed,
            memory_available=sysctl.read_memory_available(system),
            swap_used=sysctl.read_swap_used(system),
            pressure=sysctl.read_pressure(system),
            on_battery=self._on_battery.get(),
            gpu=replace(
                self._gpu.read(),
                memory_budget=self._budget.get(),
                wired_limit=sysctl.read_wired_limit(system),
            ),
        )
        self._unknown = tuple(
            Problem(field, sysctl.explain(system, names))
            for field, names in sysctl.NAMES.items()
            if getattr(machine, field) is None
        )
        return machine

    def wait_for_slow(self, seconds: float) -> None:
        self._budget.wait(seconds)

    @property
    def problems(self) -> tuple[Problem, ...]:
        budget = self._budget.failure
        return (
            *self._unknown,
            *self._gpu.problems,
            *([] if budget is None else [Problem("memory_budget", budget)]),
        )

    def list_processes(self) -> dict[int, Hashable] | None:
        """The token is the start, to the microsecond."""
        pids = processes.list_pids(self._system, os.geteuid())
        return dict(processes.read_tokens(self._system, pids))

    def read_size(self, pid: int) -> int | None:
        return processes.read_size(self._system, pid)

    def read_libraries(self, pid: int) -> dict[str, str]:
        return processes.read_libraries(self._system, pid)

    def read_start(self, pid: int) -> float:
        return processes.read_start(self._system, pid)

    def read_details(self, pid: int) -> Details:
        """Leaves out a command that the system does not give: in an exec, or restricted."""
        started = processes.read_start(self._system, pid)
        details = processes.read_details(pid, started)
        if processes.read_start(self._system, pid) != started:
            raise ProcessLookupError(f"{pid} has ended")
        return details

    def read_footprint(self, pid: int, with_peak: bool = True) -> Footprint:  # noqa: ARG002 - one call
        return processes.read_footprint(self._system, pid)

    def read_gpu_clients(self) -> dict[int, GpuClient] | None:
        return self._gpu.read_clients()

    def watch_exits(self) -> ExitWatch:
        from mpsbar.system.macos.exits import KqueueWatch  # a single reading needs none

        try:
            return KqueueWatch(self.read_start)
        except OSError:
            return NoExitWatch()

    def read_reports(self) -> ReportReader:
        from mpsbar.system.macos.reports import MacReports

        return MacReports()

    def read_exit_reason(self, pid: int) -> tuple[int, int] | None:
        return processes.read_exit_reason(self._system, pid)

    def read_boot(self) -> float | None:
        return sysctl.read_boot(self._system)
