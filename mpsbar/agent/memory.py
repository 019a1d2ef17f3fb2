"""What this very process holds, as a flat dict of numbers: `mpsbar.memory()`."""

from .all_backends import BACKENDS
from .backends import IN_USE, cpu
from .counters import COUNTERS


def read_memory(prefix: str = "") -> "dict[str, int]":
    """Returns bytes, added up over the allocators in use; what is not known is not in it.

    It takes microseconds, no connection and no garbage collection, and touches no device that is
    not in use.
    """
    found = [backend.stats() for backend in BACKENDS if backend.state(None) == IN_USE]
    totals: dict[str, int] = {}
    for counter in COUNTERS:
        numbers = [number for stats in found if (number := counter.compute(stats)) is not None]
        if numbers:
            totals[counter.name] = sum(numbers) if counter.is_sum else max(numbers)
    resident = cpu.measure()
    if resident is not None:
        totals["resident"] = resident
    return {prefix + name: value for name, value in totals.items()}
