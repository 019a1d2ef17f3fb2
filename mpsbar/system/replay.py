"""A recorded machine as a platform of its own: for demos, pictures and tests.

A recording holds what a real one was read to say, under the system's own names, and says itself
which of its values were invented around that. Its course repeats, one step every two seconds.
"""

import json
import time
from collections.abc import Callable, Hashable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mpsbar.core.errors import UserError
from mpsbar.core.machine import FootprintKind, Machine, Problem
from mpsbar.system.macos.accelerator import Properties, parse_gpu
from mpsbar.system.platform import Details, Footprint, GpuClient

STEP_SECONDS = 2.0
_SHIPPED = Path(__file__).parent / "recordings"
_LARGEST = 4 << 20
_FIELDS = {field.name for field in fields(Machine)} - {"gpu", "recording"}


def list_recordings() -> list[str]:
    return sorted(path.stem for path in _SHIPPED.glob("*.json"))


def read_recording(name: str) -> dict[str, Any]:
    """One of those that come along, or a file."""
    path = Path(name) if "/" in name or name.endswith(".json") else _SHIPPED / f"{name}.json"
    try:
        with path.open("rb") as file:
            recording = json.loads(file.read(_LARGEST))
    except FileNotFoundError:
        known = ", ".join(list_recordings())
        raise UserError(f"there is no recording {name}; choose one of {known}") from None
    except (OSError, ValueError) as problem:
        raise UserError(f"{path} is not a recording: {problem}") from None
    if not isinstance(recording, dict) or recording.get("recording") != 1:
        raise UserError(f'{path} is not a recording: it does not say "recording": 1')
    return recording


class Computer:
    footprint_kind: FootprintKind = "footprint"
    problems: tuple[Problem, ...] = ()

    def __init__(
        self, recording: dict[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._recording = recording
        self._clock = clock
        self._began = clock()
        self._epoch = time.time()
        self._processes = {told["pid"]: told for told in recording.get("processes", ())}
        self.recorded_workers: list[dict[str, Any]] | None = recording.get("workers", [])

    def read_machine(self) -> Machine:
        told = self._recording.get("machine", {})
        known = {name: _tuples(value) for name, value in told.items() if name in _FIELDS}
        accelerator: Properties = self._now(self._recording.get("accelerator") or [{}])
        gpu = replace(parse_gpu(accelerator), **self._recording.get("gpu", {}))
        return Machine(**known, gpu=gpu, recording=self._recording.get("title", "?"))

    def list_processes(self) -> dict[int, Hashable] | None:
        return dict.fromkeys(self._processes, "recorded")

    def read_size(self, pid: int) -> int | None:  # noqa: ARG002 - nothing is loaded later
        return 0

    def read_libraries(self, pid: int) -> dict[str, str]:
        return dict(self._told(pid)["libraries"])

    def read_start(self, pid: int) -> float:
        """A recorded pid may be anyone's here: there is nobody to send a signal to."""
        raise ProcessLookupError(f"{pid} is a recorded one")

    def read_details(self, pid: int) -> Details:
        told = self._told(pid)
        return Details(
            started=self._epoch - told["started_ago"],
            parent=told.get("parent"),
            command=tuple(told["command"]),
            executable=told.get("executable"),
            variables=told.get("variables", {}),
        )

    def read_footprint(self, pid: int, with_peak: bool = True) -> Footprint:  # noqa: ARG002
        course = self._told(pid)["footprint"]
        return Footprint(self._now(course), max(course))

    def read_gpu_clients(self) -> dict[int, GpuClient] | None:
        """Counters that grow as the recorded share says."""
        passed = self._clock() - self._began
        return {
            pid: GpuClient(pid, int(passed * told["gpu_percent"] * 1e7))
            for pid, told in self._processes.items()
            if told.get("gpu_percent") is not None
        }

    def _told(self, pid: int) -> dict[str, Any]:
        try:
            told: dict[str, Any] = self._processes[pid]
        except KeyError:
            raise ProcessLookupError(pid) from None
        return told

    def _now(self, course: list[Any]) -> Any:
        return course[int((self._clock() - self._began) / STEP_SECONDS) % len(course)]


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
