"""The counters of an allocator: one list for wire, model, JSON, tables, report and history. Pure.

A new counter is a row of COUNTERS and, in Backend, a field if agents send it, else a property.
"""

from dataclasses import dataclass

from mpsbar.language import mark


@dataclass(frozen=True, slots=True)
class Counter:
    name: str  # of the field or property of Backend; on the wire, in JSON and in the history
    meaning: str  # for people; English in the metrics, else shown by `_()`
    is_sent: bool = False  # by the agent; else computed from those that are
    label: str = ""  # for people, where it differs from the name
    rank: int | None = None  # its priority where a table is narrow (ui/columns.py); None: no column
    recorded: int | None = None  # the version of the history's file that added its column
    is_sum: bool = True  # over the allocators of a process; else the largest is that of the process

    def read(self, backend: "Backend") -> int | None:
        number: int | None = getattr(backend, self.name)
        return number


COUNTERS = (
    Counter(mark("allocated"), mark("in live tensors"), is_sent=True, rank=10, recorded=1),
    Counter(mark("cached"), mark("kept for reuse"), rank=6, recorded=1),
    Counter("other", mark("graphs and other memory, some of which Free may return")),
    Counter("reserved", mark("what the allocator got from the driver"), is_sent=True),
    Counter("driver", mark("everything Metal gave the process"), is_sent=True),
    Counter(mark("peak"), mark("the most that was ever allocated"), is_sent=True, rank=11),
    Counter(
        mark("held"), mark("everything the driver gave the process"), label=mark("held (driver)"),
        rank=1, recorded=1,
    ),
    Counter("budget", mark("what Metal recommends staying below"), is_sent=True),
    Counter(
        mark("limit"), mark("the limit that was set for the process"), is_sent=True, rank=12,
        is_sum=False,
    ),
)  # fmt: skip
SENT = tuple(counter for counter in COUNTERS if counter.is_sent)
# The values that are recorded of a process at one time: counters, its footprint, and its speed in
# millionths a second: an epoch may take an hour.
RECORDED = (*(counter.name for counter in COUNTERS if counter.recorded), "footprint", "speed")


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
        return _first(self.driver, self.reserved, self.allocated)

    @property
    def cached(self) -> int | None:
        """What the allocator keeps for reuse; before torch 2.13 only an upper bound is known."""
        return _difference(_first(self.reserved, self.driver), self.allocated)

    @property
    def cached_is_bound(self) -> bool:
        return self.reserved is None and self.cached is not None

    @property
    def other(self) -> int | None:
        return _difference(self.driver, self.reserved)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _difference(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else max(0, whole - part)
