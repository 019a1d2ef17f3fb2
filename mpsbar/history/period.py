"""What was recorded between two times: the machine, the runs and the events, as values. Pure."""

from dataclasses import dataclass, field

from mpsbar.core.findings import Level, Value
from mpsbar.core.verdicts import EndVerdict

SeriesColumn = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Values over time: `times` in seconds since the epoch, and a column of values by name."""

    times: tuple[float, ...] = ()
    columns: dict[str, SeriesColumn] = field(default_factory=dict)

    def most(self, name: str) -> int | None:
        known = [value for value in self.columns.get(name, ()) if value is not None]
        return max(known, default=None)


@dataclass(frozen=True, slots=True)
class Run:
    """One process from its start to its end; bytes, and speed in millionths a second."""

    pid: int
    name: str
    device: str
    is_connected: bool
    first: float
    last: float  # seen
    ended: float | None = None  # None: it runs, as far as was recorded
    how: str | None = None  # the verdict's code; unseen: while mpsbar was not running
    peak: int | None = None
    footprint_peak: int | None = None
    known: dict[str, int | None] = field(default_factory=dict)  # the last known value of each
    series: TimeSeries = field(default_factory=TimeSeries)
    verdict: EndVerdict | None = None  # of its end


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """A Free, a limit or an alert."""

    time: float
    kind: str  # "free", "limit" or "alert"
    code: str  # how the Free or the limit ended; the reason's code
    pid: int | None
    name: str | None
    level: Level = "ok"
    size: int | None = None  # bytes freed; the limit, None for "off"
    phase: str = ""  # of an alert: raised, worse, recovered, ended
    values: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Period:
    """Everything between two times."""

    since: float
    until: float
    machine: TimeSeries = field(default_factory=TimeSeries)  # used, swap, gpu, busy, total, budget
    runs: tuple[Run, ...] = ()  # allocated, cached, held, footprint; the largest first
    events: tuple[RecordedEvent, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.machine.times and not self.runs
