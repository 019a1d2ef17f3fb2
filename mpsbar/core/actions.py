"""What a person may ask, and how it ended: data; the words are made in ui/text."""

from dataclasses import dataclass, field
from typing import Literal

FreeState = Literal["done", "busy", "gone", "silent", "refused", "failed"]
StopState = Literal["asked", "gone", "another", "not_allowed", "failed"]
ConnectState = Literal["enabled", "enabled_before", "no_answer", "refused"]


# --- asked of a worker or of this computer: the monitor performs them


@dataclass(frozen=True, slots=True)
class Free:
    """Give the caches of one process back."""

    pid: int
    seconds: float | None = None  # how long to wait for its answer; None: the usual time


@dataclass(frozen=True, slots=True)
class FindTensors:
    """Count the live tensors of one process."""

    pid: int


@dataclass(frozen=True, slots=True)
class Stop:
    """End one process as Ctrl-C does; `firmly` as a shut-down does. Never by force."""

    pid: int
    started: float  # with the pid it names the process: a pid alone may be another's by now
    name: str
    firmly: bool = False


@dataclass(frozen=True, slots=True)
class Connect:
    """Enable exactly this interpreter."""

    python: str


@dataclass(frozen=True, slots=True)
class CheckUp:
    """Look at torch in the Pythons of this user, for a bug report."""


@dataclass(frozen=True, slots=True)
class ProbeDtypes:
    """Measure which dtypes work here, in the first Python with torch."""


@dataclass(frozen=True, slots=True)
class CancelProbe:
    pass


# --- asked of the front end itself


@dataclass(frozen=True, slots=True)
class Copy:
    text: str


@dataclass(frozen=True, slots=True)
class WatchEnd:
    """Notify when this process ends, or no longer."""

    pid: int
    started: float | None
    name: str
    on: bool


@dataclass(frozen=True, slots=True)
class Choose:
    """A setting."""

    key: str
    value: str | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartAtLogin:
    on: bool


@dataclass(frozen=True, slots=True)
class ShowProfiling:
    """How to find out where the time goes."""


@dataclass(frozen=True, slots=True)
class OpenReport:
    """Everything on one page, in the browser."""


@dataclass(frozen=True, slots=True)
class InstallCommand:
    """The app's own command, for the terminal: a link where the person says."""


@dataclass(frozen=True, slots=True)
class ShowAbout:
    pass


@dataclass(frozen=True, slots=True)
class Quit:
    pass


Asked = Free | FindTensors | Stop | Connect | CheckUp | ProbeDtypes
Action = (
    Asked
    | CancelProbe
    | Copy
    | WatchEnd
    | Choose
    | StartAtLogin
    | ShowProfiling
    | OpenReport
    | InstallCommand
    | ShowAbout
    | Quit
)


# --- how it ended


@dataclass(frozen=True, slots=True)
class Freed:
    """How a Free ended. `freed` is measured, before minus after."""

    pid: int
    name: str
    state: FreeState
    freed: int | None = None
    seconds: float | None = None
    pinned: int | None = None  # still cached afterwards: live tensors share its heaps
    collected: bool | None = None  # whether gc.collect() ran first; None for an older agent
    gui_toolkit: str | None = None  # beside which gc.collect() is not safe
    not_known: tuple[str, ...] = ()  # backends of which nobody knows whether they are in use
    reason: str | None = None  # a code: thread_computing, main_computing, …
    where: str | None = None  # the place the reason is about
    error: str | None = None
    number: int | None = None  # of the worker's Frees; None for an older agent
    asked_here: bool = True  # False: another program asked for it


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """Live tensors of one device, dtype and shape; the bytes of their storages, each once."""

    device: str
    dtype: str
    shape: str
    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Tensors:
    """What a count of one worker's tensors found, largest first."""

    pid: int
    state: FreeState
    groups: tuple[TensorGroup, ...] = ()
    others: int | None = None  # bytes of the groups that are not listed
    not_visible: dict[str, int] = field(default_factory=dict)  # by backend: what C++ holds
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


Outcome = Freed | Tensors | Stopped | Connected
