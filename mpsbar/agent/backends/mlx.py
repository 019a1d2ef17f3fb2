"""MLX's own caching allocator, on Metal and (really caching too) on Linux."""

import sys
from typing import Any, Callable, Optional

from . import IN_USE, NOT_INITIALISED, NOT_KNOWN, Stats, loaded

NAME = "mlx"
FRAMEWORK = "mlx"
# On Metal the GPU may still write a buffer in the cache: that of an array which was dropped before
# its evaluation ended. clear_cache() really releases it; crashes and kernel panics are reported
# (mlx-swift#331, mlx#3450, mlx#3186). So it follows the rule of MPS.
_ON_METAL = sys.platform == "darwin"
ANYWHERE = not _ON_METAL
# A thread that waits may have left work on the GPU, and only its own thread can wait for that.
ON_MAIN_ONLY = True


def state(gpu_client: Optional[bool]) -> Optional[str]:
    if loaded("mlx.core") is None:
        return None
    if not _ON_METAL:
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


def release_call() -> "tuple[Callable[..., Any], tuple[Any, ...]]":
    return _call("clear_cache"), ()


def finish_work() -> None:
    """Wait until the GPU has done what this thread gave it; from another thread MLX cannot."""
    core = loaded("mlx.core")
    assert core is not None
    core.synchronize()


def _call(name: str) -> Callable[[], Any]:
    core = loaded("mlx.core")
    assert core is not None
    # In mlx.core.metal up to 0.24.0.
    return getattr(core, name, None) or getattr(core.metal, name)  # type: ignore[no-any-return]
