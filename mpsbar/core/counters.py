"""The counters of one allocator of one worker, as the monitor keeps them. Pure.

Their list is in agent/counters.py: the agent, which is copied without this folder, needs it too.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mpsbar.agent.counters import COUNTERS, SHOWN, Counter, derive_cached, derive_held, derive_other

__all__ = ["COUNTERS", "RECORDED", "SENT", "SHOWN", "Backend", "Counter", "sum_known"]

SENT = tuple(counter for counter in COUNTERS if counter.is_sent)
# The values that are recorded of a process at one time: counters, its footprint, and its speed in
# millionths a second: an epoch may take an hour.
RECORDED = (*(counter.name for counter in COUNTERS if counter.recorded), "footprint", "speed")


def sum_known(values: Iterable[int | None]) -> int | None:
    """Returns the sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Backend:
    """One allocator of one worker. All counters are in bytes."""

    name: str
    framework: str
    state: str
    allocated: int | None = None
    reserved: int | None = None
    driver: int | None = None
    peak: int | None = None
    budget: int | None = None
    limit: int | None = None  # None: none was set, or it cannot be read
    # A number that changes whenever it allocates; None: not known. Nobody is shown it.
    activity: int | None = None

    @property
    def held(self) -> int | None:
        return derive_held(self.allocated, self.reserved, self.driver)

    @property
    def cached(self) -> int | None:
        """Returns what the allocator keeps for reuse; before torch 2.13 only an upper bound."""
        return derive_cached(self.allocated, self.reserved, self.driver)

    @property
    def cached_is_bound(self) -> bool:
        return self.reserved is None and self.cached is not None

    @property
    def other(self) -> int | None:
        return derive_other(self.allocated, self.reserved, self.driver)
