"""torch's device "cpu": malloc keeps freed pages and can give them back."""

import os
import sys
from typing import Any, Callable, Optional

from . import IN_USE, Stats, loaded

NAME = "cpu"
FRAMEWORK = "torch"
ANYWHERE = True


def state(gpu_client: Optional[bool]) -> Optional[str]:  # noqa: ARG001 - the CPU is always there
    return IN_USE if loaded("torch") is not None else None


def stats() -> Stats:
    """Nothing here is counted by torch; what the OS charges the process is read from outside."""
    return {"allocated": None, "reserved": None, "peak": None, "driver": None, "budget": None}


def measure() -> Optional[int]:
    """Resident bytes; None where they cannot be read cheaply (macOS's release tells by itself)."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def release() -> Optional[int]:
    """Give free pages back to the system; on macOS the number of bytes it says it took."""
    if sys.platform == "darwin":
        return int(_libc("malloc_zone_pressure_relief")(None, 0))
    _libc("malloc_trim")(0)
    return None


def _libc(name: str) -> Callable[..., Any]:
    import ctypes

    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is None:
        raise RuntimeError(f"this system's malloc has no {name}")
    function.argtypes = (
        [ctypes.c_void_p, ctypes.c_size_t] if name.startswith("malloc_zone") else [ctypes.c_size_t]
    )
    function.restype = ctypes.c_size_t if name.startswith("malloc_zone") else ctypes.c_int
    return function  # type: ignore[no-any-return]
