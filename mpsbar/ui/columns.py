"""The columns of the processes: one list for `status`, `top` and the report. Pure.

A new column is a row of COLUMNS; a counter brings its own (agent/counters.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mpsbar.core.counters import SHOWN, Counter
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.language import _, mark
from mpsbar.ui.text import progress, wording

Table = Literal["status", "top"]
# What `top` draws where others have no column: allocated, cached and other memory as a bar against
# the budget, and the memory of the last minutes.
Drawing = Literal["bar", "history"]
_NOT_SET = "–"


@dataclass(frozen=True, slots=True)
class Column:
    key: str  # its header in a terminal, in English, and what the table is sorted by
    title: str  # in the report, in English
    number: Callable[[Worker | Process], float | None] | None  # to sort by; None: by the text
    write: Callable[[Worker | Process, Any], str]  # the cell of a process, given that number
    rank: int = 0  # where not all fit, those with the lowest are shown; 0: always
    width: int = 8  # at least
    to_right: bool = True
    is_outside: bool = False  # known of unconnected processes too
    hidden_if_unknown: tuple[Table, ...] = ()  # tables that leave it out while no value is known
    drawing: Drawing | None = None  # only in `top`, which draws it
    is_main: bool = False  # one of those that the key `o` of `top` goes through to sort by

    def header(self, snapshot: Snapshot) -> str:
        """Returns the key, translated; on Linux the footprint is the resident set, called RSS."""
        if self.key == "FOOTPRINT":
            kinds = {process.footprint_kind for process in snapshot.processes or ()}
            if kinds == {"rss"}:
                return "RSS"
        return translate(self.key)

    def cell(self, process: Worker | Process) -> str:
        return self.write(process, None if self.number is None else self.number(process))

    def is_known(self, words: list[str]) -> bool:
        return any(word not in ("", wording.UNKNOWN, _NOT_SET) for word in words)


# The words of the headers and titles below; those of the counters are in agent/counters.
_WORDS = (
    mark("name"), mark("device"), mark("memory"), mark("history"), mark("footprint"),
    mark("progress"), mark("note"), mark("host"), mark("runs"),
)  # fmt: skip


def translate(header: str) -> str:
    """The header or title of a column; English as it is written, GPU and PID everywhere."""
    word, translated = header.lower(), _(header.lower())
    if translated == word:
        return header
    return translated.upper() if header.isupper() else translated[:1].upper() + translated[1:]


def _device(process: Worker | Process, _number: None) -> str:
    return wording.device(process) if isinstance(process, Worker) else "+".join(process.frameworks)


def _note(process: Worker | Process, _number: None) -> str:
    return wording.state(process) if isinstance(process, Worker) else wording.not_connected(process)


def _fraction(process: Worker | Process) -> float | None:
    run = process.progress if isinstance(process, Worker) else None
    return None if run is None else run.fraction


def _progress(process: Worker | Process, _number: float | None) -> str:
    return progress.say_briefly(process.progress if isinstance(process, Worker) else None)


def _footprint(process: Worker | Process) -> int | None:
    outside = process.process if isinstance(process, Worker) else process
    return None if outside is None else outside.footprint


def _gpu_percent(process: Worker | Process) -> float | None:
    outside = process.process if isinstance(process, Worker) else process
    return None if outside is None else outside.gpu_percent


def _measure(process: Worker | Process) -> int | None:
    return process.held if isinstance(process, Worker) else None


def _draw(_process: Worker | Process, _number: float | None) -> str:
    return ""  # by ui/terminal


# Where a counter is left out while no value is known; the others only in `top`, which is narrow.
_HIDDEN: dict[str, tuple[Table, ...]] = {
    "HELD": (), "ALLOCATED": (), "CACHED": (), "LIMIT": ("status", "top"),
}  # fmt: skip


def _of_counter(counter: Counter) -> Column:
    def number(process: Worker | Process) -> int | None:
        return process.count(counter) if isinstance(process, Worker) else None

    def write(process: Worker | Process, size: int | None) -> str:
        is_bound = (
            counter.name == "cached" and isinstance(process, Worker) and process.cached_is_bound
        )
        if not counter.is_sum and size is None and isinstance(process, Worker):
            return _NOT_SET
        return ("≤ " if is_bound else "") + wording.size(size)

    key = counter.name.upper()
    return Column(
        key, counter.name.capitalize(), number, write, counter.rank or 0, max(8, len(key)),
        hidden_if_unknown=_HIDDEN.get(key, ("top",)), is_main=key in ("HELD", "CACHED"),
    )  # fmt: skip


# In the order of `status` and `top`; the report begins with the name.
COLUMNS = (
    Column(
        "PID", "PID", lambda process: process.pid, lambda process, _: str(process.pid), 2, 5,
        is_outside=True,
    ),
    Column(
        "NAME", "Name", None, lambda process, _: process.name, 0, 16, False, is_outside=True,
        is_main=True,
    ),
    Column("DEVICE", "Device", None, _device, 7, 6, False, is_outside=True),
    Column("MEMORY", "", _measure, _draw, 3, 8, False, drawing="bar"),
    *map(_of_counter, SHOWN),
    Column("HISTORY", "", _measure, _draw, 8, 8, False, drawing="history"),
    Column(
        "FOOTPRINT", "Footprint", _footprint, lambda _, size: wording.size(size), 9,
        is_outside=True, is_main=True,
    ),
    Column(
        "GPU", "GPU", _gpu_percent, lambda _, percent: wording.percent(percent), 5, 4,
        is_outside=True, hidden_if_unknown=("status", "top"),
    ),
    Column(
        "PROGRESS", "Progress", _fraction, _progress, 4, 14, False,
        hidden_if_unknown=("status", "top"),
    ),
    Column("NOTE", "Note", None, _note, 0, 13, False, is_outside=True),
)  # fmt: skip
# In HTML the first cell of a row is its heading.
REPORTED = sorted(
    (column for column in COLUMNS if column.drawing is None),
    key=lambda column: column.key != "NAME",
)


def explain_counters() -> list[str]:
    """What each counter in the tables means, one line each."""
    return [f"{_(counter.name)}: {_(counter.meaning)}" for counter in SHOWN]
