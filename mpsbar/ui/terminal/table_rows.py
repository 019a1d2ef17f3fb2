"""The rows of the menu with the numbers that only a wide table has room for. Pure."""

from collections.abc import Iterable
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
        """What tells it apart: not its numbers."""
        told = [one.key for one in COLUMNS if one.number is None or one.key == "PID"]
        words = [self.cells.get(key, "") for key in told]
        return text.lower() in " ".join(words).lower()


def build_entries(rows: Iterable[Row], snapshot: Snapshot) -> tuple[Entry, ...]:
    workers = {f"worker-{worker.pid}": worker for worker in snapshot.workers}
    processes = {f"worker-{process.pid}": process for process in snapshot.processes or ()}
    entries = []
    for row in rows:
        one = workers.get(row.key) or processes.get(row.key)
        entries.append(_text(row) if one is None else _entry(row, one))
    return tuple(entries)


def _entry(row: Row, one: Worker | Process) -> Entry:
    notes = _note(row)
    if isinstance(one, Worker):  # the column says it already
        notes = ", ".join(note for note in notes.split(", ") if note != wording.cached(one))
    is_dim = isinstance(one, Process) or one.state == "gone"
    # Of the name the whole: the menu's is cut, and tells doubles apart by the pid.
    named = {"NAME": _INDENT + one.name if _is_child(row) else one.name, "NOTE": notes}
    values = {column.key: column.number(one) for column in COLUMNS if column.number is not None}
    cells = {column.key: column.write(one, values.get(column.key)) for column in COLUMNS} | named
    return Entry(row, one.pid, cells, values, _is_child(row), "dim" if is_dim else "")


def _text(row: Row) -> Entry:
    """A row that stands for several, or for one that is gone: what it says, where it fits."""
    name, device, size, note = (*row.cells, *("",) * 4)[:4] if row.cells else (row.text, "", "", "")
    known = {"NAME": name, "DEVICE": device, "FOOTPRINT": size, "NOTE": note}
    return Entry(row, None, known, {}, _is_child(row), "dim")


def _is_child(row: Row) -> bool:
    return bool(row.cells) and row.cells[0].startswith(_INDENT)


def _note(row: Row) -> str:
    return row.cells[3] if len(row.cells) > 3 else ""
