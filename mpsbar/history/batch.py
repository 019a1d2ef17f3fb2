"""What waits to be written: rows of the machine, of each run, of what happened. Bounded."""

import json
from collections import deque
from collections.abc import Iterable
from typing import Any

from mpsbar.core.actions import Freed
from mpsbar.core.events import Alert, EndedProcess, Event
from mpsbar.core.process_tracker import Sizes, TrackedProcess
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import gpu_memory

# While nothing changes one row a minute is enough to tell that someone looked.
STILL_SECONDS = 55.0
# An hour of a full disk; then the oldest are lost.
_MOST_ROWS = 40_000
# A fork bomb of workers must not fill the file.
MOST_PROCESSES = 200
_MOST_DETAILS = 2_000
_MOST_NAME = 300

_Values = tuple[int | None, ...]  # in the order of RECORDED


class Batch:
    def __init__(self) -> None:
        self.machine: deque[tuple[Any, ...]] = deque(maxlen=_MOST_ROWS // 20)
        self.samples: deque[tuple[int, TrackedProcess, _Values]] = deque(maxlen=_MOST_ROWS)
        self.events: deque[tuple[Any, ...]] = deque(maxlen=_MOST_ROWS // 40)
        # By identity: whose row in `runs` is to be brought up to date.
        self.seen: dict[int, TrackedProcess] = {}
        self.ended: dict[int, tuple[TrackedProcess, EndedProcess]] = {}
        self.is_pressing = False  # not to be lost if this process ends now
        self._written: dict[int, tuple[TrackedProcess, Sizes, float]] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.machine or self.seen or self.events or self.ended)

    def add(
        self,
        snapshot: Snapshot,
        present: Iterable[TrackedProcess],
        ended: list[tuple[TrackedProcess, EndedProcess]],
    ) -> None:
        now, time = snapshot.time, int(snapshot.time * 1000)
        self.machine.append((time, *_read_machine(snapshot)))
        written = self._written
        for process, end in ended:
            if process.pid in written and written[process.pid][0] is process:
                del written[process.pid]
                self.ended[id(process)] = (process, end)
                self.seen[id(process)] = process
                self.is_pressing |= process.is_connected
        for process in present:
            before = written.get(process.pid)
            if before is None and len(written) >= MOST_PROCESSES:
                continue
            if before is None or before[0] is not process:
                self.is_pressing |= process.is_connected  # a new one
            elif before[1] == process.values and 0 <= now - before[2] < STILL_SECONDS:
                continue
            if process.last == now:
                written[process.pid] = (process, process.values, now)
                self.samples.append((time, process, tuple(process.values.values())))
                self.seen[id(process)] = process

    def see_all(self) -> None:
        """Everyone that is recorded gets a row, also in a file that was opened anew."""
        for process, _, _ in self._written.values():
            self.seen[id(process)] = process

    def add_events(self, events: Iterable[Event]) -> None:
        for event in events:
            row = _build_event(event)
            if row is not None:
                self.events.append(row)
                self.is_pressing = True

    def clear(self) -> None:
        """All is written."""
        self.machine.clear()
        self.samples.clear()
        self.events.clear()
        self.seen.clear()
        self.ended.clear()
        self.is_pressing = False


def _build_event(event: Event) -> tuple[Any, ...] | None:
    """The row of an alert or a Free; an end has none, it stands in the row of its run."""
    time, what = int(event.time * 1000), event.what
    if isinstance(what, Freed):
        name = what.name[:_MOST_NAME]
        return (time, "free", what.state, "ok", what.pid, name, what.freed, "", None)
    if not isinstance(what, Alert) or what.kind == "ended":
        return None
    details = json.dumps(what.reason.values if what.reason else {})
    known = details if len(details) < _MOST_DETAILS else None
    name = what.name[:_MOST_NAME] if what.name else ""
    return (time, "alert", what.code, what.level, what.pid, name, None, what.kind, known)


def _read_machine(snapshot: Snapshot) -> tuple[int | None, ...]:
    machine = snapshot.machine
    total, available = machine.memory_total, machine.memory_available
    used = None if total is None or available is None else max(0, total - available)
    busy = machine.gpu.utilization
    return (
        used, machine.swap_used, gpu_memory(snapshot), None if busy is None else round(busy),
        total, machine.gpu.memory_budget,
    )  # fmt: skip
