"""What was recorded, as immutable values: the machine, each run, what happened. Pure.

Series hold one column a value, as long as their times; None: was not known then.
"""

from dataclasses import dataclass, field

from mpsbar.core.findings import Level, Value

Column = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Values over time: `times` in seconds since the epoch, rising; the columns by name."""

    times: tuple[float, ...] = ()
    columns: dict[str, Column] = field(default_factory=dict)

    def most(self, name: str) -> int | None:
        known = [value for value in self.columns.get(name, ()) if value is not None]
        return max(known, default=None)


@dataclass(frozen=True, slots=True)
class Run:
    """One process from its start to its end; bytes."""

    pid: int
    started: float | None
    name: str
    device: str
    is_connected: bool
    first: float
    last: float  # seen
    ended: float | None = None  # None: it runs, as far as was recorded
    how: str | None = None  # stopped, pressure, unknown; unseen: while nobody looked
    peak: int | None = None
    footprint_peak: int | None = None
    known: dict[str, int | None] = field(default_factory=dict)  # the last of each recorded
    course: TimeSeries = field(default_factory=TimeSeries)


@dataclass(frozen=True, slots=True)
class Event:
    """A Free or an alert."""

    time: float
    kind: str  # "free" or "alert"
    code: str  # how the Free ended; the reason's code
    pid: int | None
    name: str | None
    level: Level = "ok"
    size: int | None = None  # bytes freed
    phase: str = ""  # of an alert: raised, worse, recovered, ended
    values: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Period:
    """Everything between two times."""

    since: float
    until: float
    machine: TimeSeries = field(default_factory=TimeSeries)  # used, swap, gpu, busy, total, budget
    runs: tuple[Run, ...] = ()  # allocated, cached, held, footprint; the largest first
    happenings: tuple[Event, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.machine.times and not self.runs
