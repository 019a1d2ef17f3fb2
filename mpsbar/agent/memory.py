"""Reads what this process itself holds, as a flat dict of numbers: `mpsbar.memory()`."""

from .backends import IN_USE, cpu
from .counters import COUNTERS
from .import_backends import BACKENDS


def read_memory(prefix: str = "") -> "dict[str, int]":
    """Returns bytes, added up over the allocators in use; unknown values are left out.

    It takes microseconds, no connection and no garbage collection, and touches no device that is
    not in use.
    """
    read = [backend.stats() for backend in BACKENDS if backend.state(None) == IN_USE]
    totals: dict[str, int] = {}
    for counter in COUNTERS:
        numbers = [number for stats in read if (number := counter.compute(stats)) is not None]
        if numbers:
            totals[counter.name] = sum(numbers) if counter.is_sum else max(numbers)
    resident = cpu.measure()
    if resident is not None:
        totals["resident"] = resident
    return {prefix + name: value for name, value in totals.items()}
