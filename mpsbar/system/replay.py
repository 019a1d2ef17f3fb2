"""A recorded machine as a platform of its own, for demos, pictures and tests.

A recording holds values read from a real machine, under the system's own names, and marks the
values that were added to them. Its time series repeat, one step every two seconds.
"""

import json
import time
from collections.abc import Callable, Hashable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mpsbar.core.errors import UserError
from mpsbar.core.machine import Machine, Problem
from mpsbar.language import _
from mpsbar.system.macos.iokit_values import Properties, parse_gpu
from mpsbar.system.platform import (
    Details,
    ExitWatch,
    Footprint,
    GpuClient,
    NoExitWatch,
    NoReports,
    ReportReader,
)

STEP_SECONDS = 2.0
_SHIPPED = Path(__file__).parent / "recordings"
_LARGEST = 4 << 20
_FIELDS = {field.name for field in fields(Machine)} - {"gpu", "recording"}


def list_recordings() -> list[str]:
    return sorted(path.stem for path in _SHIPPED.glob("*.json"))


def read_recording(name: str) -> dict[str, Any]:
    """Reads a recording that comes with mpsbar, or a file."""
    path = Path(name) if "/" in name or name.endswith(".json") else _SHIPPED / f"{name}.json"
    try:
        with path.open("rb") as file:
            recording = json.loads(file.read(_LARGEST))
    except FileNotFoundError:
        names = ", ".join(list_recordings())
        raise UserError(
            _("there is no recording {name}; choose one of {names}").format(name=name, names=names)
        ) from None
    except (OSError, ValueError) as problem:
        raise UserError(
            _("{path} is not a recording: {problem}").format(path=path, problem=problem)
        ) from None
    if not isinstance(recording, dict) or recording.get("recording") != 1:
        raise UserError(
            _('{path} is not a recording: it does not say "recording": 1').format(path=path)
        )
    return recording


class RecordedComputer:
    is_mac = True
    problems: tuple[Problem, ...] = ()

    def __init__(
        self, recording: dict[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._recording = recording
        self._clock = clock
        self._began = clock()
        self._epoch = time.time()
        self._processes = {process["pid"]: process for process in recording.get("processes", ())}
        self.recorded_workers: list[dict[str, Any]] | None = recording.get("workers", [])

    def read_machine(self) -> Machine:
        machine = self._recording.get("machine", {})
        values = {name: _to_tuples(value) for name, value in machine.items() if name in _FIELDS}
        accelerator: Properties = self._now(self._recording.get("accelerator") or [{}])
        gpu = replace(parse_gpu(accelerator), **self._recording.get("gpu", {}))
        return Machine(**values, gpu=gpu, recording=self._recording.get("title", "?"))

    def list_processes(self) -> dict[int, Hashable] | None:
        return dict.fromkeys(self._processes, "recorded")

    def read_size(self, pid: int) -> int | None:  # noqa: ARG002 - nothing is loaded later
        return 0

    def read_libraries(self, pid: int) -> dict[str, str]:
        return dict(self._find(pid)["libraries"])

    def read_start(self, pid: int) -> float:
        """Always fails: the pid may be another process's here, which must not get a signal."""
        raise ProcessLookupError(f"{pid} is a recorded process")

    def read_details(self, pid: int) -> Details:
        process = self._find(pid)
        return Details(
            started=self._epoch - process["started_ago"],
            parent=process.get("parent"),
            command=tuple(process["command"]),
            executable=process.get("executable"),
            variables=process.get("variables", {}),
        )

    def read_footprint(self, pid: int, with_peak: bool = True) -> Footprint:  # noqa: ARG002
        series = self._find(pid)["footprint"]
        return Footprint(self._now(series), max(series))

    def wait_for_slow(self, seconds: float) -> None:  # noqa: ARG002 - nothing is slow here
        return

    def read_gpu_clients(self) -> dict[int, GpuClient] | None:
        """The counters grow as the recorded share says."""
        passed = self._clock() - self._began
        return {
            pid: GpuClient(pid, int(passed * process["gpu_percent"] * 1e7), has_worked=True)
            for pid, process in self._processes.items()
            if process.get("gpu_percent") is not None
        }

    def watch_exits(self) -> ExitWatch:
        return NoExitWatch()

    def read_reports(self) -> ReportReader:
        return NoReports()

    def read_exit_reason(self, pid: int) -> tuple[int, int] | None:  # noqa: ARG002 - macOS only
        return None

    def read_boot(self) -> float | None:
        return None

    def _find(self, pid: int) -> dict[str, Any]:
        if pid not in self._processes:
            raise ProcessLookupError(pid)
        process: dict[str, Any] = self._processes[pid]
        return process

    def _now(self, series: list[Any]) -> Any:
        return series[int((self._clock() - self._began) / STEP_SECONDS) % len(series)]


def _to_tuples(value: Any) -> Any:
    return tuple(_to_tuples(item) for item in value) if isinstance(value, list) else value
