"""Actions a person may ask for, and their outcomes, as data; ui/text has the words. Pure."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal, TypeVar

from mpsbar.agent.conventions import NEVER_FREED

FreeState = Literal[
    "done", "busy", "waiting", "cancelled", "gone", "ended", "silent", "refused", "failed",
    "refilled",
]  # fmt: skip
# above: it needs more than the limit; impossible: nothing there can be limited.
LimitState = Literal[
    "done", "busy", "above", "impossible", "gone", "ended", "silent", "refused", "failed"
]
# Why mpsbar freed a cache by itself.
FreeCause = Literal["keep_below", "idle", "pressure"]
StopState = Literal["asked", "gone", "another", "not_allowed", "failed"]
ConnectState = Literal["enabled", "enabled_before", "no_answer", "refused"]


# --- performed by the monitor: they concern a worker or this computer


@dataclass(frozen=True, slots=True)
class Free:
    """Return the cached memory of one process to the system."""

    pid: int
    seconds: float | None = None  # how long to wait for its answer; None: the usual time
    # When the process that a person saw started; None: whoever has the pid is meant. The same
    # request for one process is one, whether its start is known by now or not.
    started: float | None = field(default=None, compare=False)
    cause: FreeCause | None = field(default=None, compare=False)  # None: a person asked for it


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit the memory of one process; None: no longer."""

    pid: int
    limit: int | None  # bytes
    started: float | None = field(default=None, compare=False)  # as for Free


@dataclass(frozen=True, slots=True)
class FreeWhenPossible:
    """Free at the first safe moment: the request stays with the process for some minutes."""

    pid: int
    started: float | None = field(default=None, compare=False)  # as for Free


@dataclass(frozen=True, slots=True)
class CancelFree:
    """End a FreeWhenPossible that still waits."""

    pid: int
    started: float | None = field(default=None, compare=False)  # as for Free


@dataclass(frozen=True, slots=True)
class FindTensors:
    """Count the live tensors of one process."""

    pid: int
    started: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """End one process with SIGINT, `firmly` with SIGTERM. SIGKILL is never sent."""

    pid: int
    started: float  # identifies the process together with the pid, which may be reused
    name: str
    firmly: bool = False


@dataclass(frozen=True, slots=True)
class Connect:
    """Enable mpsbar in exactly this interpreter."""

    python: str


@dataclass(frozen=True, slots=True)
class InspectPythons:
    """Inspect torch in the Pythons of this user, for a bug report."""


@dataclass(frozen=True, slots=True)
class ProbeDtypes:
    """Measure which dtypes work here, in the first Python with torch."""


# --- performed by the front end itself


@dataclass(frozen=True, slots=True)
class Copy:
    text: str


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """Notify when this process ends; with `on` False no longer."""

    pid: int
    started: float | None
    name: str
    on: bool


@dataclass(frozen=True, slots=True)
class AskLimit:
    """Ask for a limit of one process, then set it."""

    pid: int
    limit: int | None = None  # bytes; None: let the person type it
    started: float | None = field(default=None, compare=False)  # as for Free


@dataclass(frozen=True, slots=True)
class AutoFreeRule:
    """When the cache of one process is freed by itself. None: as set for all processes."""

    keep_cache_below: int | None = None  # bytes; 0: never
    free_when_idle: bool | None = None


@dataclass(frozen=True, slots=True)
class SetAutoFree:
    pid: int
    started: float | None
    rule: AutoFreeRule


@dataclass(frozen=True, slots=True)
class ChangeSetting:
    """Change a setting."""

    key: str
    value: str | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartAtLogin:
    on: bool


class Command(Enum):
    """Actions without parameters."""

    ASK_PYTHON = auto()  # let the person name an interpreter to connect
    CANCEL_PROBE = auto()  # end a running probe; what it has measured is kept
    OPEN_REPORT = auto()  # write the report and open it in the browser
    SHOW_PROFILING = auto()  # how to find out where the time goes
    INSTALL_COMMAND = auto()  # link the app's `mpsbar` into a folder that the person chooses
    SHOW_ABOUT = auto()
    EXPLAIN_DELIVERY = auto()  # why alerts may not be seen, and what to do
    QUIT = auto()


Asked = (
    Free | FreeWhenPossible | CancelFree | Limit | FindTensors | Stop | Connect | InspectPythons
    | ProbeDtypes
)  # fmt: skip
Action = (
    Asked | Copy | WatchEnd | AskLimit | SetAutoFree | ChangeSetting | StartAtLogin | Command
)  # fmt: skip


# --- outcomes


def may_come_later(state: str, reason: str | None) -> bool:
    """Returns whether a Free was busy, and one that waits may still find a safe moment."""
    return state == "busy" and reason not in NEVER_FREED


@dataclass(frozen=True, slots=True)
class Freed:
    """The outcome of a Free. `freed` is measured, before minus after."""

    pid: int
    name: str
    state: FreeState
    freed: int | None = None
    seconds: float | None = None
    pinned: int | None = None  # still cached afterwards: live tensors share its heaps
    collected: bool | None = None  # whether gc.collect() ran first; None for an older agent
    gui_toolkit: str | None = None  # GUI toolkit in the process that makes gc.collect() unsafe
    # whether the main thread was waiting, so gc.collect() could not run; false for an older agent
    main_was_waiting: bool = False
    not_known: tuple[str, ...] = ()  # backends that may or may not be in use
    reason: str | None = None  # a code: thread_computing, main_computing, …
    where: str | None = None  # the place in the program that the reason is about
    error: str | None = None
    number: int | None = None  # sequence number of this Free in the worker; None for an older agent
    asked_here: bool = True  # False: another program asked for it
    age: float | None = None  # of a result that the worker repeated: requests came too often
    waits: float | None = None  # for "waiting": for at most this many more seconds
    trimmed: bool = False  # a busy worker gave its cache back itself, at its next allocation
    when_possible: bool = False  # a request that had waited for a safe moment
    cause: FreeCause | None = None  # None: a person or another program asked for it

    @property
    def may_come_later(self) -> bool:
        return may_come_later(self.state, self.reason)


@dataclass(frozen=True, slots=True)
class Limited:
    """The outcome of a Limit."""

    pid: int
    name: str
    state: LimitState
    asked: int | None = None  # bytes; None: no limit
    limit: int | None = None  # in force now; after "off" that of the process's environment, if any
    least: int | None = None  # bytes that it needs at least, where that is above the limit
    held: int | None = None  # bytes held afterwards
    freed: int | None = None  # bytes of its cache that were freed to get below the limit
    reason: str | None = None  # a code
    where: str | None = None
    error: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """Live tensors of one device, dtype and shape. `size` counts each storage once."""

    device: str
    dtype: str
    shape: str
    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Tensors:
    """The live tensors of one worker, largest group first."""

    pid: int
    state: FreeState
    groups: tuple[TensorGroup, ...] = ()
    others: int | None = None  # bytes of the groups that are not listed
    not_visible: dict[str, int] = field(default_factory=dict)  # by backend: held by C++ alone
    cut_short: bool = False
    reason: str | None = None
    where: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    pid: int
    name: str
    state: StopState
    firmly: bool = False
    error: str | None = None
    started: float | None = None  # of the process that was meant


@dataclass(frozen=True, slots=True)
class Connected:
    python: str
    state: ConnectState
    error: str | None = None
    prefix: str | None = None  # the folder of its environment, where it could be read
    has_framework: bool = True  # False: nothing to show there yet


Outcome = Freed | Limited | Tensors | Stopped | Connected
# Seconds for which the outcome of an action is part of the snapshots that follow.
_SHOWN_SECONDS: dict[type[Outcome], float] = {
    Freed: 60.0,
    Limited: 60.0,
    Stopped: 600.0,  # within this time the next Stop of the process is a firm one
    Tensors: 600.0,  # time to read them; opening the submenu again counts them anew
}
_T = TypeVar("_T", Freed, Limited, Tensors, Stopped)


class RecentOutcomes:
    """The latest outcomes by kind and pid; times are of the monotonic clock."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[type[Outcome], int], tuple[float, Outcome]] = {}

    def add(self, outcome: Freed | Limited | Tensors | Stopped, now: float) -> None:
        self._outcomes[type(outcome), outcome.pid] = (now, outcome)

    def find(self, kind: type[_T], now: float) -> dict[int, _T]:
        """Outcomes of one kind by pid; those that are too old are dropped."""
        since = now - _SHOWN_SECONDS[kind]
        self._outcomes = {
            key: entry
            for key, entry in self._outcomes.items()
            if key[0] is not kind or entry[0] >= since
        }
        found = (outcome for _, outcome in self._outcomes.values())
        return {outcome.pid: outcome for outcome in found if isinstance(outcome, kind)}
