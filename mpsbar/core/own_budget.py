"""What mpsbar itself may use: over its budget it refreshes less often, and says so. Pure."""

from dataclasses import dataclass

# Of one core, over at least this long; a first scan of hundreds of processes is no reason yet.
CPU_SHARE = 0.05
PERIOD = 60.0
MEMORY = 400_000_000
MOST_FACTOR = 8.0


@dataclass(frozen=True, slots=True)
class OwnUse:
    """What this process has used until now."""

    cpu: float  # seconds
    memory: int | None  # bytes; None: could not be read


class OwnBudget:
    """`factor` is by how much the pause between two readings is longer than usual."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.reason: str | None = None
        self._start: tuple[float, float] | None = None  # time and CPU at the start of the period

    def is_due(self, now: float) -> bool:
        return self._start is None or now - self._start[0] >= PERIOD

    def note(self, use: OwnUse, now: float) -> bool:
        """Judge once in a period; returns whether the factor or the reason has changed."""
        if self._start is None:
            self._start = (now, use.cpu)
        started, before = self._start
        if not self.is_due(now):
            return False
        self._start = (now, use.cpu)
        share = (use.cpu - before) / (now - started)
        old = (self.factor, self.reason)
        if share > CPU_SHARE:
            self.factor = min(MOST_FACTOR, self.factor * 2)
            self.reason = (
                f"mpsbar used {share:.0%} of a core in the last minute, more than its"
                f" {CPU_SHARE:.0%}: it refreshes {self.factor:.0f} times less often"
            )
        elif share < CPU_SHARE / 2:  # twice as often would still be within the budget
            self.factor = max(1.0, self.factor / 2)
            self.reason = None if self.factor == 1.0 else self.reason
        if use.memory is not None and use.memory > MEMORY and self.reason is None:
            size, most = use.memory // 10**6, MEMORY // 10**6
            self.reason = f"mpsbar itself uses {size} MB, more than its {most} MB: start it again"
        return old != (self.factor, self.reason)
