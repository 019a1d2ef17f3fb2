"""MLX's own caching allocator, on Metal and (really caching too) on Linux."""

import sys
from typing import Any, Callable, Optional

from . import IN_USE, NOT_INITIALISED, NOT_KNOWN, Stats, loaded

NAME = "mlx"
FRAMEWORK = "mlx"
# The allocator has its own mutex and no graphs.
ANYWHERE = True


def state(gpu_client: Optional[bool]) -> Optional[str]:
    if loaded("mlx.core") is None:
        return None
    if sys.platform != "darwin":
        return IN_USE
    # The first counter read creates the Metal device, and MLX has no lazy check.
    if gpu_client is None:
        return NOT_KNOWN
    return IN_USE if gpu_client else NOT_INITIALISED


def stats() -> Stats:
    active = _call("get_active_memory")()
    return {
        "allocated": active,
        "reserved": active + _call("get_cache_memory")(),
        "peak": _call("get_peak_memory")(),
        "driver": None,
        "budget": None,
    }


def measure() -> int:
    return int(_call("get_active_memory")() + _call("get_cache_memory")())


def release() -> None:
    _call("clear_cache")()


def _call(name: str) -> Callable[[], Any]:
    core = loaded("mlx.core")
    assert core is not None
    # In mlx.core.metal before 0.22.
    return getattr(core, name, None) or getattr(core.metal, name)  # type: ignore[no-any-return]
