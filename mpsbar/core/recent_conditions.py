"""What the machine did in the last minute: memory pressure, swap and resets of the GPU. Pure.

The evidence for why a process ended, for the monitor and for `mpsbar run --summary`.
"""

from collections import deque
from dataclasses import dataclass
from typing import get_args

from mpsbar.core.machine import Pressure
from mpsbar.core.snapshot import Snapshot

# How long before an end memory counts, and how long after it: the memory of a process that was
# killed is freed late.
_BEFORE_SECONDS, _AFTER_SECONDS = 60.0, 5.0
# Within so much of an end, in seconds, a reset of the GPU may be its cause.
RESET_SECONDS = 5.0
_MAX_READINGS = 120  # a minute of them at one each half second


@dataclass(frozen=True, slots=True)
class _Reading:
    time: float
    pressure: Pressure | None
    swap: int | None


class RecentConditions:
    def __init__(self) -> None:
        self._readings: deque[_Reading] = deque(maxlen=_MAX_READINGS)
        self._recoveries: int | None = None
        self.reset_at: float | None = None  # of the GPU, as far as its count shows

    def add(self, snapshot: Snapshot) -> None:
        machine = snapshot.machine
        self._readings.append(_Reading(snapshot.time, machine.pressure, machine.swap_used))

    def note_reset(self, snapshot: Snapshot) -> bool:
        """Returns whether the GPU's count of recoveries rose since the last snapshot."""
        count, before = snapshot.machine.gpu.recoveries, self._recoveries
        if count is None:
            return False
        self._recoveries = count
        has_risen = before is not None and count > before
        if has_risen:
            self.reset_at = snapshot.time
        return has_risen

    def was_reset(self, ended: float) -> bool:
        """Returns whether the GPU was reset just before or after the end."""
        return self.reset_at is not None and abs(self.reset_at - ended) <= RESET_SECONDS

    def find_worst_pressure(self, ended: float) -> Pressure | None:
        near = [r.pressure for r in self._find_near(ended) if r.pressure is not None]
        return max(near, key=get_args(Pressure).index, default=None)

    def find_swap_growth(self, ended: float) -> int | None:
        near = [r.swap for r in self._find_near(ended) if r.swap is not None]
        return max(near) - near[0] if near else None

    def _find_near(self, ended: float) -> list[_Reading]:
        first, last = ended - _BEFORE_SECONDS, ended + _AFTER_SECONDS
        return [reading for reading in self._readings if first <= reading.time <= last]
