"""This computer and its processes as values, also whether icon and alerts are shown.

None: could not be read.
"""

from dataclasses import dataclass, field
from typing import Literal

from mpsbar.core.gpu import Gpu

Pressure = Literal["normal", "warning", "critical"]
PRESSURE_LEVELS = {"normal": 0, "warning": 1, "critical": 2}
# What `footprint` is: what the system charges the process (macOS), or its resident pages (Linux).
FootprintKind = Literal["footprint", "rss"]


@dataclass(frozen=True, slots=True)
class Machine:
    os: str | None = None  # "macOS 26.3.2"
    os_version: tuple[int, ...] | None = None  # (26, 3, 2)
    model: str | None = None  # "Mac14,12"
    chip: str | None = None  # "Apple M4 Pro"
    cores: int | None = None
    core_kinds: tuple[tuple[str, int], ...] = ()  # (("Performance", 8), ("Efficiency", 4))
    memory_total: int | None = None
    memory_available: int | None = None
    swap_used: int | None = None
    pressure: Pressure | None = None
    on_battery: bool | None = None
    is_virtual: bool | None = None
    gpu: Gpu = field(default_factory=Gpu)
    recording: str | None = None  # what was recorded, if this is no live machine


# Seconds by which two readings of one start may differ: the boot time it is based on moves, and the
# clocks of files and of other programs are coarser.
SAME_START = 2.0


def is_same_start(first: float | None, second: float | None) -> bool:
    """Returns whether two starts known for one pid may be one process's, as the kernel said them.

    A start is not known while scans fail, which is no evidence that the pid was used again.
    """
    return first is None or second is None or first == second


@dataclass(frozen=True, slots=True)
class Process:
    """A process with a framework's libraries loaded, as seen from the outside."""

    pid: int
    started: float  # seconds since the epoch; identifies the process together with the pid
    name: str
    frameworks: tuple[str, ...]  # their names in agent/frameworks.py
    parent: int | None = None
    command: tuple[str, ...] = ()
    executable: str | None = None  # the file that runs
    python: str | None = None  # the interpreter a person would name; None: not an ordinary one
    environment: str | None = None  # the folder of its venv, conda environment or installation
    settings: dict[str, str] = field(default_factory=dict)  # PYTORCH_* variables at its start
    footprint: int | None = None
    footprint_peak: int | None = None
    footprint_kind: FootprintKind = "footprint"
    gpu_percent: float | None = None  # percent of one GPU, 0 to 100
    gpu_client: bool | None = None  # whether it has given the GPU work; False: opened at most
    is_napping: bool | None = None  # slowed down by macOS's App Nap; None: not known
    is_enabled: bool = False  # its environment is enabled, or `mpsbar run` started it
    is_starting: bool = False  # enabled before its start, a moment ago: it will connect by itself


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read, and why."""

    reader: str  # "machine", "processes", "gpu", "workers", …
    text: str


@dataclass(frozen=True, slots=True)
class IconCheck:
    time: float  # seconds since the epoch
    doubt: str | None  # a code; None: it is visible
    details: str  # one line of what macOS said


# What becomes of alerts. unknown: none was sent yet; shown: macOS takes ours; off: switched off in
# System Settings; script: sent by way of Script Editor, and whether it may is unknown;
# failed: that failed too.
Delivery = Literal["unknown", "shown", "off", "script", "failed"]


@dataclass(frozen=True, slots=True)
class DeliveryCheck:
    time: float  # seconds since the epoch
    delivery: Delivery
