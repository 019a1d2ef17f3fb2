"""What mpsbar itself may use: over its budget it refreshes less often, and says so. Pure."""

from dataclasses import dataclass

# Of one core, over at least this long; a first scan of hundreds of processes is no reason yet.
CPU_SHARE = 0.05
PERIOD = 60.0
MEMORY = 400_000_000
MAX_FACTOR = 8.0


@dataclass(frozen=True, slots=True)
class OwnUse:
    """What this process has used until now."""

    cpu: float  # seconds
    memory: int | None  # bytes; None: could not be read


class OwnBudget:
    """Judges what mpsbar itself uses; `factor` is how much longer the pause between readings is."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.reason: str | None = None
        self._start: tuple[float, float] | None = None  # time and CPU at the start of the period

    def is_due(self, now: float) -> bool:
        return self._start is None or now - self._start[0] >= PERIOD

    def update(self, use: OwnUse, now: float) -> bool:
        """Judges once in a period; returns whether the factor or the reason has changed."""
        if self._start is None:
            self._start = (now, use.cpu)
        started, before = self._start
        if not self.is_due(now):
            return False
        self._start = (now, use.cpu)
        share = (use.cpu - before) / (now - started)
        old = (self.factor, self.reason)
        over = []
        if share > CPU_SHARE:
            over.append(
                f"used {share:.0%} of a core in the last minute, more than its {CPU_SHARE:.0%}"
            )
        memory = use.memory or 0
        if memory > MEMORY:
            size, most = memory // 10**6, MEMORY // 10**6
            over.append(f"uses {size} MB of memory, more than its {most} MB")
        if over:
            self.factor = min(MAX_FACTOR, self.factor * 2)
            # Less often, memory grows more slowly; it seldom comes back.
            remedy = "; start it again" if memory > MEMORY else ""
            slower = f"it refreshes {self.factor:.0f} times less often"
            self.reason = f"mpsbar {', and '.join(over)}: {slower}{remedy}"
        elif share < CPU_SHARE / 2:  # twice as often would still be within the budget
            self.factor = max(1.0, self.factor / 2)
            self.reason = None if self.factor == 1.0 else self.reason
        return old != (self.factor, self.reason)
