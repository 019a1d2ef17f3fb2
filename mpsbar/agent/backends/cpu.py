"""torch's device "cpu": malloc keeps freed pages and can give them back."""

import ctypes
import os
import sys
from typing import Any, Callable, Optional

from .. import gil_io  # noqa: TID252 - the folder is copied as it stands
from . import IN_USE, Stats, loaded

NAME = "cpu"
FRAMEWORK = "torch"
ANYWHERE = True
CENSUS_ALONE = False
CAN_LIMIT = False
_LIBRARY = ctypes.CDLL(None)  # made once: it has a class of its own


def state(gpu_client: Optional[bool]) -> Optional[str]:  # noqa: ARG001 - the CPU is always there
    return IN_USE if loaded("torch") is not None else None


def stats() -> Stats:
    """Returns no numbers: torch counts none here, and what the OS charges is read from outside."""
    return {"allocated": None, "reserved": None, "peak": None, "driver": None, "budget": None}


def measure() -> Optional[int]:
    """Returns resident bytes; None where reading is not cheap (macOS's release returns them)."""
    try:
        return int(gil_io.read_file(b"/proc/self/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def release_call() -> "tuple[Callable[..., Any], tuple[Any, ...]]":
    """Gives free pages back to the system; on macOS it returns how many bytes that were."""
    if sys.platform == "darwin":
        return _libc("malloc_zone_pressure_relief", ctypes.c_size_t), (None, 0)
    return _libc("malloc_trim", None), (0,)


def _libc(name: str, returned: Any) -> Callable[..., Any]:
    # Without argtypes: their conversion makes objects that the collector tracks.
    function: Any = getattr(_LIBRARY, name, None)
    if function is None:
        raise RuntimeError(f"this system's malloc has no {name}")
    function.restype = returned
    return function  # type: ignore[no-any-return]
