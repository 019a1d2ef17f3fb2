"""What waits to be written: rows of the machine, of each run, of what happened. Bounded."""

import json
from collections import deque
from collections.abc import Iterable
from typing import Any

from mpsbar.model.action import Freed
from mpsbar.model.alerts import Alert
from mpsbar.model.history import gpu_memory
from mpsbar.model.lives import Held, Life
from mpsbar.model.snapshot import Gone, Snapshot

# While nothing changes one row a minute is enough to tell that someone looked.
STILL_SECONDS = 55.0
# An hour of a full disk; then the oldest are lost.
_MOST_ROWS = 40_000
_MOST_DETAILS = 2_000
_MOST_NAME = 300


class Batch:
    def __init__(self) -> None:
        self.machine: deque[tuple[Any, ...]] = deque(maxlen=_MOST_ROWS // 20)
        self.samples: deque[tuple[int, Life, Held]] = deque(maxlen=_MOST_ROWS)
        self.events: deque[tuple[Any, ...]] = deque(maxlen=_MOST_ROWS // 40)
        self.seen: dict[int, Life] = {}  # by identity; whose row in `runs` is to be brought up
        self.ended: dict[int, tuple[Life, Gone]] = {}
        self.is_pressing = False  # not to be lost if this process ends now
        self._written: dict[int, tuple[Life, Held, float]] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.machine or self.seen or self.events or self.ended)

    def add(
        self, snapshot: Snapshot, lives: Iterable[Life], ended: list[tuple[Life, Gone]]
    ) -> None:
        now, time = snapshot.time, int(snapshot.time * 1000)
        self.machine.append((time, *_read_machine(snapshot)))
        written = self._written
        for life in lives:
            before = written.get(life.pid)
            if before is None or before[0] is not life:
                self.is_pressing |= life.is_connected  # a new one
            elif before[1] == life.values and 0 <= now - before[2] < STILL_SECONDS:
                continue
            if life.last == now:
                written[life.pid] = (life, life.values, now)
                self.samples.append((time, life, life.values))
                self.seen[id(life)] = life
        for life, gone in ended:
            self.ended[id(life)] = (life, gone)
            self.seen[id(life)] = life
            written.pop(life.pid, None)
            self.is_pressing |= life.is_connected

    def see(self, lives: Iterable[Life]) -> None:
        for life in lives:
            self.seen[id(life)] = life

    def add_events(self, now: float, freed: list[Freed], alerts: Iterable[Alert]) -> None:
        time = int(now * 1000)
        for one in freed:
            name = one.name[:_MOST_NAME]
            self.events.append((time, "free", one.state, "ok", one.pid, name, one.freed, "", None))
            self.is_pressing = True
        for alert in alerts:
            details = json.dumps(alert.reason.values if alert.reason else {})
            known = details if len(details) < _MOST_DETAILS else None
            name = alert.name[:_MOST_NAME] if alert.name else ""
            row = (time, "alert", alert.code, alert.level, alert.pid, name, None, alert.kind, known)
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


def _read_machine(snapshot: Snapshot) -> tuple[int | None, ...]:
    machine = snapshot.machine
    total, available = machine.memory_total, machine.memory_available
    used = None if total is None or available is None else max(0, total - available)
    busy = machine.gpu.utilization
    return (
        used, machine.swap_used, gpu_memory(snapshot), None if busy is None else round(busy),
        total, machine.gpu.memory_budget,
    )  # fmt: skip
