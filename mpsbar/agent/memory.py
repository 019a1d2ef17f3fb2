"""What this very process holds, as a flat dict of numbers: `mpsbar.memory()`."""

from typing import Optional

from .all_backends import BACKENDS
from .backends import IN_USE, cpu


def read_memory(prefix: str = "") -> "dict[str, int]":
    """Bytes, added up over the allocators in use; what is not known is not in it.

    Microseconds, no connection, no device that is not in use is touched, no garbage collection.
    """
    totals: dict[str, int] = {}
    for backend in BACKENDS:
        if backend.state(None) == IN_USE:
            for name, value in _derive(backend.stats()).items():
                if value is not None:
                    totals[name] = totals.get(name, 0) + value
    resident = cpu.measure()
    if resident is not None:
        totals["resident"] = resident
    return {prefix + name: value for name, value in totals.items()}


def _derive(stats: "dict[str, Optional[int]]") -> "dict[str, Optional[int]]":
    """The same words as in `status --json` (core/counters.py has the definitions)."""
    allocated, reserved, driver = (stats.get(name) for name in ("allocated", "reserved", "driver"))
    held = next((number for number in (driver, reserved, allocated) if number is not None), None)
    whole = driver if reserved is None else reserved
    return {
        "allocated": allocated,
        "cached": _difference(whole, allocated),
        "other": _difference(driver, reserved),
        "reserved": reserved,
        "driver": driver,
        "peak": stats.get("peak"),
        "held": held,
        "budget": stats.get("budget"),
    }


def _difference(whole: Optional[int], part: Optional[int]) -> Optional[int]:
    return None if whole is None or part is None else max(0, whole - part)
