"""MLX's own caching allocator, on Metal and (really caching too) on Linux."""

import sys
import time
from typing import Any, Callable, Optional

from . import IN_USE, NOT_INITIALISED, NOT_KNOWN, Stats, loaded

NAME = "mlx"
FRAMEWORK = "mlx"
# On Metal the GPU may still write a buffer in the cache: that of an array which was dropped before
# its evaluation ended. clear_cache() really releases it; crashes and kernel panics are reported
# (mlx-swift#331, mlx#3450, mlx#3186). On the CPU it waits for running evaluations and keeps
# the GIL meanwhile: 7 s were measured. So it follows the rule of MPS.
ANYWHERE = False
_ON_METAL = sys.platform == "darwin"
# A thread that waits may have left work on the GPU, and only its own thread can wait for that.
ON_MAIN_ONLY = _ON_METAL
CENSUS_ALONE = False
CAN_LIMIT = True
# On Metal a limit is a number that the host's next allocation looks at; the CPU's allocator waits
# for all running evaluations instead, and keeps the GIL meanwhile (7 s were measured).
LIMIT_ANYWHERE = _ON_METAL
# MLX reads no variable. At its import nothing was evaluated yet, so nothing has to be waited for.
LIMIT_AT_IMPORT = True
# What may be kept for reuse: MLX for the CPU looks at this limit alone, and not at the other.
_CACHE_PART = 4
TRIM_SECONDS = 2.0


class _Limits:
    """What was set here, and what was in force before: (memory, cache)."""

    set: Optional[int] = None
    before: "Optional[tuple[int, int]]" = None


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
        "limit": read_limit(),
    }


def measure() -> int:
    return int(_call("get_active_memory")() + _call("get_cache_memory")())


def release_call() -> "tuple[Callable[..., Any], tuple[Any, ...]]":
    return _call("clear_cache"), ()


def shrink(limit: int) -> int:  # noqa: ARG001 - MLX trims its cache by itself
    return int(_call("get_active_memory")())


def set_limit(limit: Optional[int], call: Callable[..., Any]) -> None:
    """Sets the limit beyond which MLX returns its cache and waits for running work; it does not
    raise.

    Never set_wired_limit: kernel panics are reported with it (mlx#3186). What the program has set
    since stays.
    """
    is_ours = read_limit() is not None
    before = _Limits.before if is_ours else None
    if limit is None:
        if before is not None:
            call(_call("set_memory_limit"), before[0])
            call(_call("set_cache_limit"), before[1])
        _Limits.set = _Limits.before = None
        return
    memory = call(_call("set_memory_limit"), limit)
    cache = call(_call("set_cache_limit"), limit // _CACHE_PART)
    if before is None:
        before = (memory, cache)
    if before[1] < limit // _CACHE_PART:  # never more than the program has allowed
        call(_call("set_cache_limit"), before[1])
    _Limits.set, _Limits.before = limit, before


def read_limit() -> Optional[int]:
    """Returns what was set here, unless the program has set another since."""
    if _Limits.set is None:
        return None
    read = getattr(sys.modules["mlx.core"], "get_memory_limit", None)
    return _Limits.set if read is None or read() == _Limits.set else None


def finish_work() -> None:
    """Waits until the GPU has done what this thread gave it; from another thread MLX cannot."""
    core = loaded("mlx.core")
    assert core is not None
    core.synchronize()


def start_trim() -> "Optional[Trim]":
    """Begins to trim the cache of a busy process.

    Returns None on the CPU, where a new limit waits for running evaluations, and before MLX 0.16,
    which has no such limit.
    """
    core = loaded("mlx.core")
    modules = (core, getattr(core, "metal", None))
    if not _ON_METAL or not any(hasattr(module, "set_cache_limit") for module in modules):
        return None
    return Trim()


class Trim:
    """Sets MLX's cache limit to 0 temporarily, so that its next allocation releases the cache.

    On Metal the limit is only a number, and the thread that allocates releases the cache.
    """

    def __init__(self) -> None:
        self.freed = 0
        self._set_limit: Callable[[int], int] = _call("set_cache_limit")
        self._cached = _call("get_cache_memory")
        self._at_first = self._cached()
        self._until = time.monotonic() + TRIM_SECONDS
        self._old = self._set_limit(0)

    def step(self) -> bool:
        """Returns True once the old limit is restored."""
        if self._cached() >= self._at_first > 0 and time.monotonic() < self._until:
            return False
        self.freed = max(0, self._at_first - self._cached())
        limit = self._set_limit(self._old)
        if limit != 0:
            self._set_limit(limit)  # the process has set one itself meanwhile
        return True


def _call(name: str) -> Callable[..., Any]:
    core: Any = sys.modules["mlx.core"]  # not loaded(): at its import Python calls it unfinished
    # In mlx.core.metal up to 0.24.0.
    return getattr(core, name, None) or getattr(core.metal, name)  # type: ignore[no-any-return]
