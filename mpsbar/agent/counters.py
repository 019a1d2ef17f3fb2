"""The counters of an allocator: one list for agent, wire, model, JSON, tables, report and history.

Only data and how some counters follow from others: the monitor reads it too. A new counter is a row
of COUNTERS and, in Backend (core/counters.py), a field if agents send it, else a property.
"""

from typing import Any, Callable, Optional

from .language import mark

# Computes a counter from allocated, reserved and driver.
Derive = Callable[[Optional[int], Optional[int], Optional[int]], Optional[int]]


class Counter:
    def __init__(
        self,
        name: str,  # of the field or property of Backend; on the wire, in JSON and in the history
        meaning: str,  # for people; English in the metrics, else shown by `_()`
        derive: Optional[Derive] = None,  # None: agents send it
        label: str = "",  # for people, where it differs from the name
        rank: Optional[int] = None,  # its priority where a table is narrow; None: no column
        recorded: Optional[int] = None,  # the version of the history's file that added its column
        # Over the allocators of a process; else the largest counts, and most processes have none.
        is_sum: bool = True,
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.derive = derive
        self.is_sent = derive is None
        self.label = label
        self.rank = rank
        self.recorded = recorded
        self.is_sum = is_sum

    def read(self, backend: Any) -> Optional[int]:
        """Reads it from a Backend of the monitor."""
        number: Optional[int] = getattr(backend, self.name)
        return number

    def compute(self, stats: "dict[str, Any]") -> Optional[int]:
        """Reads it from what an allocator says (`stats()` in backends), or derives it from that."""
        if self.derive is None:
            number: Optional[int] = stats.get(self.name)
            return number
        return self.derive(stats.get("allocated"), stats.get("reserved"), stats.get("driver"))


def derive_held(
    allocated: Optional[int], reserved: Optional[int], driver: Optional[int]
) -> Optional[int]:
    return next((number for number in (driver, reserved, allocated) if number is not None), None)


def derive_cached(
    allocated: Optional[int], reserved: Optional[int], driver: Optional[int]
) -> Optional[int]:
    """Returns what the allocator keeps for reuse; before torch 2.13 only an upper bound."""
    return _difference(driver if reserved is None else reserved, allocated)


def derive_other(
    _allocated: Optional[int], reserved: Optional[int], driver: Optional[int]
) -> Optional[int]:
    return _difference(driver, reserved)


def _difference(whole: Optional[int], part: Optional[int]) -> Optional[int]:
    return None if whole is None or part is None else max(0, whole - part)


COUNTERS = (
    Counter(mark("allocated"), mark("in live tensors"), rank=10, recorded=1),
    Counter(mark("cached"), mark("kept for reuse"), derive_cached, rank=6, recorded=1),
    Counter("other", mark("graphs and other memory, some of which Free may return"), derive_other),
    Counter("reserved", mark("what the allocator got from the driver")),
    Counter("driver", mark("everything Metal gave the process")),
    Counter(mark("peak"), mark("the most that was ever allocated"), rank=11),
    Counter(
        mark("held"), mark("everything the driver gave the process"), derive_held,
        label=mark("held (driver)"), rank=1, recorded=1,
    ),
    Counter("budget", mark("what Metal recommends staying below")),
    Counter(
        mark("limit"), mark("the limit that was set for the process"), rank=12,
        is_sum=False,
    ),
)  # fmt: skip
# Those with a column, in the order of tables: the total that a process holds comes first.
SHOWN = sorted(
    (counter for counter in COUNTERS if counter.rank), key=lambda counter: counter.name != "held"
)
