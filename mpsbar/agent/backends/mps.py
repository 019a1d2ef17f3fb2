"""torch's device "mps": reading a counter constructs the allocator, so not before it is used."""

import ctypes
import os
from typing import Any, Callable, Optional

from . import IN_USE, NOT_INITIALISED, NOT_KNOWN, Stats, loaded

NAME = "mps"
FRAMEWORK = "torch"
# From torch 2.13 empty_cache deletes graphs that running ops may be using.
ANYWHERE = False
ON_MAIN_ONLY = False
# A tensor looked at in the middle of its operation has crashed before.
CENSUS_ALONE = True
CAN_LIMIT = True
# It only stores two numbers, but where more is held than allowed, the cache is released first.
LIMIT_ANYWHERE = False
# torch reads its own variables.
LIMIT_AT_IMPORT = False
_HIGH = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
_USUAL_RATIO = 1.7  # of what Metal recommends
_MAX_RATIO = 2.0
# What torch reads the variable with. PyDLL: it may not let another thread run in a job on main.
_strtod: Any = ctypes.pythonapi["strtod"]
_strtod.restype = ctypes.c_double


class _ProcessFacts:
    """Facts about this process that stay true once observed."""

    in_use = False
    inherited = False  # initialised by the process we were forked from
    lazy_check = True  # torch >= 2.13 knows it without touching Metal
    first_ratio: Optional[float] = None  # of the environment, when the device was first in use
    limit: Optional[int] = None  # set here; torch has no function to read it


def state(gpu_client: Optional[bool]) -> Optional[str]:
    torch = loaded("torch")
    if torch is None or not getattr(torch._C, "_has_mps", False):
        return None
    if _ProcessFacts.inherited or getattr(torch._C, "_mps_is_in_bad_fork", bool)():
        return NOT_INITIALISED  # a forked child has its parent's memory, but not its device
    if _ProcessFacts.in_use:
        return IN_USE
    used = _is_initialised(torch)
    if used is None:
        used = gpu_client
    if used is None:
        return NOT_KNOWN
    _ProcessFacts.in_use = used
    return IN_USE if used else NOT_INITIALISED


def stats() -> Stats:
    torch = loaded("torch")
    assert torch is not None
    counters: Stats = {"allocated": None, "reserved": None, "peak": None, "budget": None}
    if _ProcessFacts.lazy_check:
        device = torch._C._accelerator_getDeviceStats(0)
        allocated = device["allocated_bytes"]["all"]
        counters["allocated"] = allocated["current"]
        counters["peak"] = allocated["peak"]
        counters["reserved"] = device["reserved_bytes"]["all"]["current"]
        counters["activity"] = allocated.get("allocated")
    else:
        counters["allocated"] = torch.mps.current_allocated_memory()
    counters["driver"] = torch.mps.driver_allocated_memory()
    recommended = getattr(torch.mps, "recommended_max_memory", None)  # torch >= 2.5
    if recommended is not None:
        counters["budget"] = recommended()
    counters["limit"] = read_limit()
    return counters


def measure() -> int:
    torch = loaded("torch")
    assert torch is not None
    return int(torch.mps.driver_allocated_memory())


def release_call() -> "tuple[Callable[..., Any], tuple[Any, ...]]":
    torch = loaded("torch")
    assert torch is not None
    return torch.mps.empty_cache, ()


def finish_work() -> None:
    """Does nothing: empty_cache waits for the GPU itself."""


def start_trim() -> None:
    """Returns None: a lower limit would make the next allocation of a busy run fail."""


def shrink(limit: int) -> int:
    """Releases the cache if more than `limit` is in use, and returns what is in use then.

    Live blocks pin their heaps, so only a release shows what remains.
    """
    if measure() > limit:
        function, arguments = release_call()
        function(*arguments)
    return measure()


def set_limit(limit: Optional[int], call: Callable[..., Any]) -> None:
    """Sets the high watermark: beyond it torch returns its cache, then raises. Frees nothing
    itself.
    """
    torch = loaded("torch")
    assert torch is not None
    ratio = _read_first_ratio()
    if limit is not None:
        ratio = limit / _recommended(torch)
        if ratio > _MAX_RATIO:
            raise ValueError("torch allows at most twice what Metal recommends")
    call(torch.mps.set_per_process_memory_fraction, float(ratio))
    _ProcessFacts.limit = limit


def read_limit() -> Optional[int]:
    """Returns what was set here, else by the environment; what the program set cannot be read."""
    ratio = _read_first_ratio()
    if _ProcessFacts.limit is not None or _HIGH not in os.environ or not ratio:
        return _ProcessFacts.limit
    torch = loaded("torch")
    recommended = getattr(torch.mps, "recommended_max_memory", None)  # type: ignore[union-attr]
    return None if recommended is None else int(ratio * recommended())


def _recommended(torch: Any) -> int:
    function = getattr(torch.mps, "recommended_max_memory", None)
    if function is None:
        raise RuntimeError("a limit needs torch 2.5 or later")
    return int(function())


def _read_first_ratio() -> float:
    """Reads the ratio once, as torch does at the first use of the device, a moment before us."""
    if _ProcessFacts.first_ratio is None:
        text = os.environ.get(_HIGH)
        ratio = _USUAL_RATIO if text is None else float(_strtod(text.encode(), None))
        _ProcessFacts.first_ratio = ratio if 0 <= ratio <= _MAX_RATIO else _USUAL_RATIO
    return _ProcessFacts.first_ratio


def after_fork() -> None:
    """Notes in a forked child what it inherited: torch's own flag is set only if someone had asked
    is_available().
    """
    torch = loaded("torch")
    if torch is not None and getattr(torch._C, "_has_mps", False):
        _ProcessFacts.inherited = _ProcessFacts.in_use or bool(_is_initialised(torch))


def _is_initialised(torch: Any) -> Optional[bool]:
    """Returns whether the allocator exists, or None where this torch (< 2.13) cannot say."""
    check = getattr(torch._C, "_accelerator_isAllocatorInitialized", None)
    if check is None or not _ProcessFacts.lazy_check:
        _ProcessFacts.lazy_check = False
        return None
    try:
        return bool(check())
    except RuntimeError:  # 2.9 to 2.12: "Allocator for mps is not a DeviceAllocator"
        _ProcessFacts.lazy_check = False
        return None
