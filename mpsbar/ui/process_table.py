"""The processes as rows of cells, and the columns that fit: for `status` and `top`. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Family, Snapshot, Worker
from mpsbar.language import _
from mpsbar.ui.columns import COLUMNS, Column, Table
from mpsbar.ui.text import cells, wording
from mpsbar.ui.text.outcomes import list_notes

INDENT = "└ "
MAX_NAME = 40


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row; `process` is None where it stands for several."""

    key: str
    process: Worker | Process | None
    cells: dict[str, str]
    values: dict[str, float | None]  # to sort by
    is_child: bool = False


def build_rows(snapshot: Snapshot, as_tree: bool = True) -> tuple[TableRow, ...]:
    """Keeps each family together; children that are copies share one row. Without `as_tree`: one
    row per process."""
    families = snapshot.families
    if as_tree:
        return tuple(row for family in families for row in _build_family(family, snapshot))
    members: tuple[Worker | Process, ...] = (*snapshot.workers, *snapshot.unconnected)
    return tuple(_build_row(member, snapshot) for member in members)


def _build_family(family: Family, snapshot: Snapshot) -> Iterable[TableRow]:
    yield _build_row(family.root, snapshot)
    members: tuple[Worker | Process, ...] = (*family.workers, *family.own_rows)
    for member in members:
        row = _build_row(member, snapshot)
        cells = row.cells | {"NAME": INDENT + row.cells["NAME"]}
        yield replace(row, cells=cells, is_child=True)
    if family.copies:
        words = {
            "NAME": INDENT + wording.children(len(family.copies)),
            "FOOTPRINT": wording.charged_together(family.copies),
            "NOTE": _("not connected"),
        }
        yield TableRow(f"children-{family.root.pid}", None, words, {}, True)


def _build_row(process: Worker | Process, snapshot: Snapshot) -> TableRow:
    values = {column.key: column.number(process) for column in COLUMNS if column.number}
    cells = {column.key: column.write(process, values.get(column.key)) for column in COLUMNS}
    cells["NOTE"] = ", ".join(list_notes(process, snapshot))
    if isinstance(process, Process):
        cells["DEVICE"] = wording.UNKNOWN  # what it has loaded is in the note
    return TableRow(f"process-{process.pid}", process, cells, values)


@dataclass(frozen=True, slots=True)
class FittedColumn:
    column: Column
    header: str
    width: int

    @property
    def key(self) -> str:
        return self.column.key

    def mark_header(self, mark: str) -> str:
        """The header with a mark after it, which shows by what the table is sorted."""
        header = self.header
        while cells.width(header + mark) > self.width:
            header = header[:-1]
        return cells.pad(header + mark, self.width, True) if self.column.to_right else header + mark

    def fit(self, text: str) -> str:
        """The text in exactly this width; a long name is cut in its middle."""
        if self.key == "NAME" and cells.width(text) > self.width:
            text = cells.cut_middle(text, self.width)
        return cells.fit(text, self.width, self.column.to_right)


def choose_columns(
    rows: Sequence[TableRow],
    snapshot: Snapshot,
    width: int | None,
    table: Table,
    gap: int = 2,
    is_steady: bool = False,
) -> list[FittedColumn]:
    """Returns the columns that fit, by rank; name and note share the room left.

    A width of None means all columns.

    `is_steady`: no column is narrower than usual, so that the next reading moves nothing.
    """
    wanted = list(_list_columns(rows, table))
    full = {column.key: _measure(column, rows, snapshot, is_steady) for column in wanted}
    least = {
        c.key: min(full[c.key], c.width) if not c.rank else full[c.key] for c in wanted
    }  # fmt: skip
    shown = [column for column in wanted if not column.rank]
    used = sum(least[column.key] for column in shown) + gap * (len(shown) - 1)
    for column in sorted((c for c in wanted if c.rank), key=lambda column: column.rank):
        used += least[column.key] + gap
        if width is not None and used > width:
            used -= least[column.key] + gap
            break
        shown.append(column)
    widths = least | _share(width, used, least, full)
    if table == "top":
        _stretch_drawings(widths, full, shown)
    if width is not None and used > width:  # not even name and note fit as they are
        widths["NAME"] = max(min(widths["NAME"], width), 1)
        room = width - widths["NAME"] - gap
        shown = [c for c in shown if c.key == "NAME" or room >= _MIN_NOTE]
        widths["NOTE"] = room
    return [
        FittedColumn(column, cells.cut(column.header(snapshot), wide), wide)
        for column in wanted
        if column in shown and (wide := widths[column.key])
    ]


_MIN_NOTE, _USUAL_NOTE = 6, 24
_WIDEST_DRAWING = 28


def _list_columns(rows: Sequence[TableRow], table: Table) -> Iterable[Column]:
    for column in COLUMNS:
        if column.drawing is not None and table != "top":
            continue
        words = [row.cells.get(column.key, "") for row in rows]
        if table not in column.hidden_if_unknown or column.is_known(words):
            yield column


def _measure(
    column: Column, rows: Sequence[TableRow], snapshot: Snapshot, is_steady: bool
) -> int:  # fmt: skip
    words = [row.cells.get(column.key, "") for row in rows]
    longest = max([cells.width(column.header(snapshot)), *map(cells.width, words)])
    if column.key == "NAME":
        longest = min(longest, MAX_NAME)
    return max(longest, column.width) if is_steady or column.drawing else longest


def _share(
    width: int | None, used: int, least: dict[str, int], full: dict[str, int]
) -> dict[str, int]:
    """The name grows to its length with up to half of the room that is left, the note takes the
    rest, and what that does not need goes to the name."""
    if width is None:
        return {"NAME": full["NAME"], "NOTE": full["NOTE"]}
    left = max(width - used, 0)
    name = min(full["NAME"] - least["NAME"], max(left // 2, left - full["NOTE"] + least["NOTE"]))
    return {"NAME": least["NAME"] + max(name, 0), "NOTE": least["NOTE"] + left - max(name, 0)}


def _stretch_drawings(
    widths: dict[str, int], full: dict[str, int], shown: Sequence[Column]
) -> None:
    """Widens bars and histories in a wide window, by what the notes do not need."""
    for column in shown:
        spare = widths["NOTE"] - max(full["NOTE"], _USUAL_NOTE)
        if column.drawing is not None and spare > 0:
            more = min(spare, _WIDEST_DRAWING - widths[column.key])
            widths[column.key] += more
            widths["NOTE"] -= more
