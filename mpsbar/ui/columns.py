"""The columns of the processes: one list for `status`, `top` and the report. Pure.

A new column is a row of COLUMNS; a counter brings its own (core/counters.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mpsbar.core.counters import COUNTERS, Counter
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import _

Table = Literal["status", "top"]


@dataclass(frozen=True, slots=True)
class Column:
    key: str  # its head in a terminal, and what the table is sorted by
    title: str  # in the report
    number: Callable[[Worker | Process], float | None] | None  # to sort by; None: it has words
    write: Callable[[Worker | Process, Any], str]  # of a process, with that number
    rank: int = 0  # of those that fit on a screen the lowest are shown; 0: always
    width: int = 8  # at least
    to_right: bool = True
    is_outside: bool = False  # known of a process that is not connected, too
    hidden_if_unknown: tuple[Table, ...] = ()  # where it is left out while nobody's is known

    def head(self, snapshot: Snapshot) -> str:
        """On Linux the system charges resident pages, which have a name of their own."""
        if self.key != "FOOTPRINT":
            return self.key
        kinds = {process.footprint_kind for process in snapshot.processes or ()}
        return "RSS" if kinds == {"rss"} else self.key

    def cell(self, one: Worker | Process) -> str:
        return self.write(one, None if self.number is None else self.number(one))

    def is_known(self, words: list[str]) -> bool:
        return any(word not in ("", wording.UNKNOWN) for word in words)


def _device(one: Worker | Process, _number: None) -> str:
    return wording.device(one) if isinstance(one, Worker) else "+".join(one.frameworks)


def _note(one: Worker | Process, _number: None) -> str:
    return wording.state(one) if isinstance(one, Worker) else wording.not_connected(one)


def _footprint(one: Worker | Process) -> int | None:
    process = one.process if isinstance(one, Worker) else one
    return None if process is None else process.footprint


def _gpu_percent(one: Worker | Process) -> float | None:
    process = one.process if isinstance(one, Worker) else one
    return None if process is None else process.gpu_percent


def _of_counter(counter: Counter) -> Column:
    def number(one: Worker | Process) -> int | None:
        return one.total(counter.read) if isinstance(one, Worker) else None

    def write(one: Worker | Process, size: int | None) -> str:
        is_bound = counter.name == "cached" and isinstance(one, Worker) and one.cached_is_bound
        return ("≤ " if is_bound else "") + wording.size(size)

    key = counter.name.upper()
    is_main = counter.name in ("held", "allocated", "cached")
    return Column(
        key, counter.name.capitalize(), number, write, counter.rank or 0, max(8, len(key)),
        hidden_if_unknown=() if is_main else ("top",),
    )  # fmt: skip


# What a process holds in all is the number shown first.
_SHOWN = sorted((one for one in COUNTERS if one.rank), key=lambda one: one.name != "held")

# In the order of `status` and `top`; the report begins with the name.
COLUMNS = (
    Column("PID", "PID", lambda one: one.pid, lambda one, _: str(one.pid), 2, 7, is_outside=True),
    Column("NAME", "Name", None, lambda one, _: one.name, 0, 16, False, is_outside=True),
    Column("DEVICE", "Device", None, _device, 4, 6, False, is_outside=True),
    *map(_of_counter, _SHOWN),
    Column(
        "FOOTPRINT", "Footprint", _footprint, lambda _, size: wording.size(size), 5,
        is_outside=True,
    ),
    Column(
        "GPU", "GPU", _gpu_percent, lambda _, percent: wording.percent(percent), 6, 5,
        is_outside=True, hidden_if_unknown=("status", "top"),
    ),
    Column("NOTE", "Note", None, _note, 0, 13, False, is_outside=True),
)  # fmt: skip
# The first cell of a row names it.
REPORTED = sorted(COLUMNS, key=lambda column: column.key != "NAME")


def explain_counters() -> list[str]:
    """What the columns of numbers mean, one line each."""
    return [f"{one.name}: {_(one.meaning)}" for one in _SHOWN]
