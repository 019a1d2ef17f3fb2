"""What is known of another computer, as its own mpsbar told it over ssh. Pure."""

from dataclasses import dataclass

from mpsbar.core.fallbacks import Fallbacks
from mpsbar.core.findings import Level
from mpsbar.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    snapshot: Snapshot
    level: Level | None  # None: not known
    reasons: tuple[str, ...]  # sentences of the other host, safe to show


@dataclass(frozen=True, slots=True)
class EndInWords:
    """A run that ended, in words that are safe to show: of another host, in its own."""

    pid: int
    name: str
    sentence: str
    ended: float | None
    ran: float | None
    peak: int | None
    certainty: str | None  # None: its mpsbar does not tell
    evidence: tuple[str, ...]
    next_steps: tuple[str, ...]
    fallbacks: Fallbacks | None = None  # what ran on the CPU; None: nothing is known of any


@dataclass(frozen=True, slots=True)
class HostProblem:
    """Why a host gave no answer."""

    text: str  # one clause
    needs_person: bool = False  # ssh would ask for a password, or whether a host's key is right


@dataclass(frozen=True, slots=True)
class HostReading:
    """What is known of one host."""

    host: str
    status: RemoteStatus | None = None  # the last answer, if there ever was one
    answered_at: float | None = None  # when it came, by our own clock
    problem: str | None = None  # why there is none now; None: it answers, or has not yet
    is_done: bool = False  # no more will come
    needs_person: bool = False  # as in HostProblem
