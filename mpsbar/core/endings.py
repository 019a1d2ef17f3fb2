"""What is known of how a process ended, as data, before anyone judges it. Pure.

The kernel's exit status, the last words of its agent, and what the system wrote about it.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mpsbar.core.fallbacks import Fallbacks
from mpsbar.core.machine import Pressure

if TYPE_CHECKING:
    from mpsbar.core.verdicts import EndVerdict

# A system file that may not be read is not the same as one that is not there.
Unreadable = Literal["system_reports", "user_reports", "kernel_log", "last_words"]


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How the kernel says that a process ended: by a code or by a signal."""

    code: int | None = None  # of exit(), 0 to 255
    signal: int | None = None
    jetsam: str | None = None  # macOS killed it for memory, and why: "low-swap"
    code_signing: bool = False  # macOS killed it because its code was changed


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a watched process, when it was noticed. `status` None: it could not be read."""

    pid: int
    started: float
    time: float
    status: ExitStatus | None


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An exception that Python printed before it ended."""

    type: str
    text: str  # the first line, cut
    where: str = ""  # file:line
    is_main: bool = False  # it ended the main script; else a prompt or a test may have gone on


@dataclass(frozen=True, slots=True)
class LastWords:
    """The record that an agent leaves when Python ends by itself."""

    pid: int
    attached: float  # seconds since the epoch, by the worker's clock
    ended: float
    error: RaisedError | None = None
    name: str = ""
    parent: int | None = None
    memory: dict[str, int] = field(default_factory=dict)  # the last counters, in bytes
    frameworks: dict[str, str] = field(default_factory=dict)
    # Operations that ran on the CPU; None: none is known. Counted by `mpsbar run --explain`.
    fallbacks: Fallbacks | None = None
    # False: it was killed, or had more modules than it could look at in time: there may be one.
    knows_fallbacks: bool = False
    started: float | None = None  # None: its agent was an older one, or the system did not say
    verdict: "EndVerdict | None" = None  # of `mpsbar run --summary`, the parent
    is_of_parent: bool = False  # all of it: the process itself was killed and left nothing


@dataclass(frozen=True, slots=True)
class CrashReport:
    """A crash report of macOS about this very process."""

    signal: int | None
    sentence: str = ""  # of an assertion
    library: str = ""  # the first on the crashed stack that is not the system's own
    symbol: str = ""  # its function
    has_python_traceback: bool = False  # faulthandler has written one to stderr


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """A GPU restart that macOS wrote down: no pid, a name of at most 16 characters."""

    time: float
    name: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Panic:
    reason: str
    task: str = ""  # the name of the process that ran


@dataclass(frozen=True, slots=True)
class SystemReports:
    """What the system wrote about one end, as far as it could be read."""

    crash: CrashReport | None = None
    jetsam: str | None = None  # this very process is in a jetsam report, with this reason
    gpu_event: GpuEvent | None = None
    panic: Panic | None = None
    kernel_log: bool = False  # the kernel's log says that it killed this pid for memory
    cgroup_kill: bool | None = None  # whether its cgroup counted a kill for memory at that time
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class EndEvidence:
    """Everything that is known of one end. None: not known."""

    status: ExitStatus | None = None
    is_connected: bool = False
    # Whether its agent writes last words when Python ends by itself.
    writes_exit_record: bool | None = None
    words: LastWords | None = None
    stop_signal: str | None = None  # mpsbar was asked to stop it: "SIGINT" or "SIGTERM"
    became: bool = False  # the process runs on as another program
    pressure: Pressure | None = None  # the highest in the last minute
    swap_growth: int | None = None  # bytes in the last minute
    gpu_reset: bool = False  # the GPU's count of recoveries rose within seconds
    restarted: bool = False  # the computer was started anew since
    parent_failed: str | None = None  # the name of a rank of the same run that failed just before
    held: int | None = None  # bytes, when it was last read
    peak: int | None = None
    torch: str | None = None  # its version
    exit_reason: str | None = None  # macOS told its parent that it was killed for memory, and why
    is_mac: bool = False
    reports: SystemReports = SystemReports()
