"""The rows of a terminal's table: the menu's rows with more numbers, in the chosen order. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.ui.columns import COLUMNS
from mpsbar.ui.rows import Row
from mpsbar.ui.terminal.frame import Style
from mpsbar.ui.text import wording

_INDENT = "└ "


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table."""

    row: Row
    pid: int | None
    cells: dict[str, str]
    values: dict[str, float | None]  # to sort by
    is_child: bool
    style: Style = ""

    @property
    def key(self) -> str:
        return self.row.key

    def matches(self, text: str) -> bool:
        """Whether a text column or the pid contains the text."""
        searched = [
            column.key for column in COLUMNS if column.number is None or column.key == "PID"
        ]
        words = [self.cells.get(key, "") for key in searched]
        return text.lower() in " ".join(words).lower()


def build_entries(rows: Iterable[Row], snapshot: Snapshot) -> tuple[Entry, ...]:
    workers = {f"worker-{worker.pid}": worker for worker in snapshot.workers}
    processes = {f"worker-{process.pid}": process for process in snapshot.processes or ()}
    entries = []
    for row in rows:
        process = workers.get(row.key) or processes.get(row.key)
        entries.append(_text(row) if process is None else _entry(row, process))
    return tuple(entries)


def _entry(row: Row, process: Worker | Process) -> Entry:
    notes = _note(row)
    if isinstance(process, Worker):  # these have columns of their own
        shown = (wording.cached(process), wording.limit(process))
        notes = ", ".join(note for note in notes.split(", ") if note not in shown)
    is_dim = isinstance(process, Process) or process.state == "gone"
    # The full name: the menu's is shortened, and has the pid where two are the same.
    named = {"NAME": _INDENT + process.name if _is_child(row) else process.name, "NOTE": notes}
    values = {column.key: column.number(process) for column in COLUMNS if column.number is not None}
    cells = {
        column.key: column.write(process, values.get(column.key)) for column in COLUMNS
    } | named
    return Entry(row, process.pid, cells, values, _is_child(row), "dim" if is_dim else "")


def _text(row: Row) -> Entry:
    """Of a row without a running process of its own, as that of several: the cells it has."""
    name, device, size, note = (*row.cells, *("",) * 4)[:4] if row.cells else (row.text, "", "", "")
    known = {"NAME": name, "DEVICE": device, "FOOTPRINT": size, "NOTE": note}
    return Entry(row, None, known, {}, _is_child(row), "dim")


def _is_child(row: Row) -> bool:
    return bool(row.cells) and row.cells[0].startswith(_INDENT)


def _note(row: Row) -> str:
    return row.cells[3] if len(row.cells) > 3 else ""


# How much larger a process must be than the one above to pass it: rows that swap places at every
# reading can neither be read nor clicked.
_MARGIN = 1.1
_WORDS = [column.key for column in COLUMNS if column.number is None]


def arrange(
    entries: Sequence[Entry], sort: str, descending: bool, before: Sequence[str] = ()
) -> tuple[Entry, ...]:
    """Families stay together. `before`: the keys in their last order; rows move only if they differ
    by more than the margin."""
    if not sort:
        return tuple(entries)
    families = _families(entries)
    measure = _measure(sort)
    places = {key: place for place, key in enumerate(before)}
    known = [family for family in families if family[0].key in places]
    known.sort(key=lambda family: places[family[0].key])
    new = [family for family in families if family[0].key not in places]
    order: list[list[Entry]] = []
    for family in [*known, *sorted(new, key=measure, reverse=descending)]:
        _insert(order, family, measure, descending)
    return tuple(entry for family in order for entry in family)


def _families(entries: Sequence[Entry]) -> list[list[Entry]]:
    families: list[list[Entry]] = []
    for entry in entries:
        if entry.is_child and families:
            families[-1].append(entry)
        else:
            families.append([entry])
    return families


_Measure = Callable[[list[Entry]], tuple[float, str]]


def _measure(sort: str) -> _Measure:
    """The number of a column, or its text; an unknown number is the least."""

    def measure(family: list[Entry]) -> tuple[float, str]:
        if sort in _WORDS:
            return (0.0, family[0].cells.get(sort, "").lower())
        known = [v for entry in family if (v := entry.values.get(sort)) is not None]
        return (sum(known) if known else -1.0, "")

    return measure


def _insert(
    order: list[list[Entry]], family: list[Entry], measure: _Measure, descending: bool
) -> None:
    """Insert it as far up as it clearly passes those above."""
    at, value = len(order), measure(family)
    while at and _passes(value, measure(order[at - 1]), descending):
        at -= 1
    order.insert(at, family)


def _passes(value: tuple[float, str], above: tuple[float, str], descending: bool) -> bool:
    if value[1] or above[1]:
        return value[1] > above[1] if descending else value[1] < above[1]
    if descending:
        return value[0] > max(above[0], 0) * _MARGIN and value[0] > above[0]
    return max(value[0], 0) * _MARGIN < above[0] or value[0] < 0 <= above[0]
