"""What every platform (linux, macos, replay) offers under the same names, and what they share.

A Computer only reads; repeating, caching and comparing are done in `scan`. Reading a process that
has ended raises ProcessLookupError, another user's PermissionError, anything else OSError.
"""

import os
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.core.endings import Exit, ExitStatus, SystemReports
from mpsbar.core.machine import Machine, Problem
from mpsbar.core.naming import printable

MAX_ARGUMENTS = 20
MAX_CHARACTERS = 300
MAX_VALUE = 4096  # a PATH is long
# One descriptor each on Linux: more processes than this are tracked by scanning alone.
MAX_WATCHED = 500
# All that is stored of someone's environment: torch's own settings, the rank, which Python runs.
_STORED_VARIABLES = frozenset(
    (
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "JPY_SESSION_NAME",
        "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__",
    )
)  # fmt: skip


# Once setproctitle is imported, all arguments are one text until a title is set.
_JOINED_COMMAND = re.compile(rb"((?:.*?/)?[Pp]ython[\d.]*) (.*)", re.DOTALL)


def parse_command(arguments: Iterable[bytes]) -> tuple[str, ...]:
    first = list(islice(arguments, MAX_ARGUMENTS))
    if len(first) == 1 and (joined := _JOINED_COMMAND.fullmatch(first[0])):
        first = [joined[1], *joined[2].split(b" ")[: MAX_ARGUMENTS - 1]]
    return tuple(
        printable(argument[: 4 * MAX_CHARACTERS].decode(errors="replace"), MAX_CHARACTERS)
        for argument in first
    )


def parse_variables(entries: Iterable[bytes]) -> dict[str, str]:
    variables = {}
    for entry in entries:
        name, _, value = entry[: MAX_VALUE + 100].decode(errors="replace").partition("=")
        if name in _STORED_VARIABLES or name.startswith("PYTORCH_"):
            variables[printable(name, 100)] = printable(value, MAX_VALUE)
    return variables


@dataclass(frozen=True, slots=True)
class Details:
    """What does not change while a program runs."""

    started: float  # seconds since the epoch
    parent: int | None
    command: tuple[str, ...] = ()
    executable: str | None = None
    variables: dict[str, str] = field(default_factory=dict)  # of its environment, at its start


@dataclass(frozen=True, slots=True)
class Footprint:
    now: int | None
    peak: int | None
    is_napping: bool | None = None  # read along with it; None: not known, or no Mac


@dataclass(frozen=True, slots=True)
class GpuClient:
    """One opening of the GPU by one process."""

    pid: int
    nanoseconds: int | None  # of GPU time since it was opened; None: not reported
    has_worked: bool | None = None  # False: opened, but nothing was ever submitted to the GPU


@dataclass(frozen=True, slots=True)
class EndedPid:
    """A process that has ended, for whoever looks for reports about it."""

    pid: int
    started: float | None
    earliest: float  # it ended between these two times
    latest: float
    signal: int | None = None
    is_exact: bool = True  # False: it ended while mpsbar was not running
    restarted: bool = False  # the computer was started anew since


class ExitWatch(Protocol):
    """The ends of processes that are not our children. Used by one thread.

    Watching costs nothing until a process ends.
    """

    def add(self, pid: int, started: float) -> bool:
        """Watch this process; False: it has ended, or cannot be watched."""

    def poll(self) -> list[Exit]:
        """The processes that have ended since the last call, each once. Never waits."""

    def is_running(self, pid: int, started: float) -> bool:
        """Returns whether it is watched and has not ended, whatever program it runs by now."""

    def close(self) -> None: ...


class NoExitWatch:
    """The watch of a platform that cannot tell: a process ends when scans miss it."""

    def add(self, pid: int, started: float) -> bool:  # noqa: ARG002
        return False

    def poll(self) -> list[Exit]:
        return []

    def is_running(self, pid: int, started: float) -> bool:  # noqa: ARG002
        return False

    def close(self) -> None:
        return


class ReportReader(Protocol):
    """What the system wrote about ends. Used by one thread."""

    def note(self, pid: int) -> None:
        """Remember what must be read while the process lives."""

    def refresh(self) -> None:
        """Called at every tick."""

    def read(self, end: EndedPid) -> SystemReports: ...


class NoReports:
    """The reports of a platform that writes none."""

    def note(self, pid: int) -> None:  # noqa: ARG002
        return

    def refresh(self) -> None:
        return

    def read(self, end: EndedPid) -> SystemReports:  # noqa: ARG002
        return SystemReports()


def parse_wait_status(status: int) -> ExitStatus | None:
    """The status of wait(2), of which only 16 bits count; None for what is no end."""
    try:
        code = os.waitstatus_to_exitcode(status & 0xFFFF)
    except ValueError:  # stopped, continued
        return None
    return ExitStatus(signal=-code) if code < 0 else ExitStatus(code=code)


class Computer(Protocol):
    is_mac: bool
    # What the agents of a recorded machine answered; None: this machine has real workers.
    recorded_workers: list[dict[str, Any]] | None

    def read_machine(self) -> Machine: ...

    def wait_for_slow(self, seconds: float) -> None:
        """Waits for values that are read in the background, such as Metal's budget.

        The monitor's ticks do not wait for them; a command that reads the machine only once must.
        """

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What the last read_machine could not read, and why."""

    def list_processes(self) -> dict[int, Hashable] | None:
        """At least this user's pids, each with a token that differs when the pid is used again.

        None: no process was started since the last call.
        """

    def read_size(self, pid: int) -> int | None:
        """A number that changes when a process loads something; None where there is none."""

    def read_libraries(self, pid: int) -> dict[str, str]:
        """The frameworks loaded, by their names, each with the path of one of its libraries."""

    def read_details(self, pid: int) -> Details: ...

    def read_start(self, pid: int) -> float:
        """The start as in read_details, cheaply: `stop` reads it just before it sends a signal."""

    def read_footprint(self, pid: int, with_peak: bool = True) -> Footprint:
        """The peak may be left out where that is much cheaper."""

    def read_gpu_clients(self) -> dict[int, GpuClient] | None:
        """Clients by a number that is never reused; None where the platform has no such list."""

    def watch_exits(self) -> ExitWatch:
        """A new watch for the ends of processes."""

    def read_reports(self) -> ReportReader:
        """A new reader of what the system writes about ends."""

    def read_exit_reason(self, pid: int) -> tuple[int, int] | None:
        """Namespace and code by which the kernel explains the end of our own child, while it has
        not been waited for; None where the platform has none."""

    def read_boot(self) -> float | None:
        """When this computer was started, in seconds since the epoch."""


_BY_LIBRARY = {
    library: framework.name for framework in FRAMEWORKS for library in framework.libraries
}
# The file names of wheels, conda packages and source builds, on Linux and macOS; a hash after
# the name is auditwheel's.
_FILE = re.compile(
    rf"({'|'.join(map(re.escape, _BY_LIBRARY))})(?:-[0-9a-f]+)?(?:\.dylib|\.so(?:\.\d+)*)"
)


def framework_of(path: str) -> str | None:
    """The name of the framework whose code this mapped file is, or None."""
    match = _FILE.fullmatch(path.removesuffix(" (deleted)").rpartition("/")[2])
    return match and _BY_LIBRARY[match[1]]
