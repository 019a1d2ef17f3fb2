"""The processes as a table for a terminal: which columns, how wide, which rows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.columns import COLUMNS, Column
from mpsbar.ui.terminal.frame import Frame, Hit, Line, StyledSpan
from mpsbar.ui.terminal.table_rows import Entry
from mpsbar.ui.text import cells, wording

# How much of the room that is left the name takes at most; the note has the rest.
_MORE_NAME = 22


@dataclass(frozen=True, slots=True)
class ShownColumn:
    column: Column
    head: str
    width: int

    @property
    def key(self) -> str:
        return self.column.key


def choose_columns(width: int, entries: Sequence[Entry], snapshot: Snapshot) -> list[ShownColumn]:
    """Those that fit, by rank; name and note share the room that is left."""
    shown = {
        column.key: ShownColumn(column, column.key, column.width)
        for column in COLUMNS
        if not column.rank
    }
    used = sum(column.width + 1 for column in shown.values()) - 1
    for column in sorted(
        filter(lambda column: column.rank and not column.drawing, COLUMNS),
        key=lambda column: column.rank,
    ):
        words = [entry.cells.get(column.key, "") for entry in entries]
        if "top" in column.hidden_if_unknown and not column.is_known(words):
            continue
        head = column.head(snapshot)
        wide = max([column.width, len(head), *map(cells.width, words)])
        if used + wide + 1 > width:
            break
        used += wide + 1
        shown[column.key] = ShownColumn(column, head, wide)
    left = width - used
    more = min(max(left, 0) // 2, _MORE_NAME)
    for key, room in (("NAME", more), ("NOTE", left - more)):
        shown[key] = replace(shown[key], width=shown[key].width + room)
    return [shown[column.key] for column in COLUMNS if column.key in shown]


@dataclass(frozen=True, slots=True)
class TableView:
    """Which row is chosen, how far the table is scrolled and how it is sorted."""

    chosen: str = ""  # the key of the chosen row
    offset: int = 0
    sort: str = ""
    descending: bool = True


def render_table(
    entries: Sequence[Entry],
    columns: Sequence[ShownColumn],
    view: TableView,
    width: int,
    height: int,
) -> Frame:
    """The head, and as many rows as fit from the offset on."""
    lines: list[Line] = [_head(columns, view)]
    hits: list[Hit] = []
    at = 0
    for column in columns:
        hits.append(Hit(0, at, at + column.width + 1, f"sort:{column.key}"))
        at += column.width + 1
    for y, entry in enumerate(entries[view.offset : view.offset + height - 1], start=1):
        lines.append(_line(entry, columns, entry.key == view.chosen))
        hits.append(Hit(y, 0, width, f"row:{entry.key}"))
    return Frame(tuple(lines), tuple(hits))


def _head(columns: Sequence[ShownColumn], view: TableView) -> Line:
    words = []
    for column in columns:
        mark = ("▼" if view.descending else "▲") if column.key == view.sort else ""
        name = cells.cut(column.head, column.width - len(mark)) + mark
        words.append(cells.fit(name, column.width, column.column.to_right))
    return (StyledSpan(" ".join(words), "head"),)


def _line(entry: Entry, columns: Sequence[ShownColumn], is_chosen: bool) -> Line:
    words = []
    for column in columns:
        text = entry.cells.get(column.key, "")
        if column.key == "NAME":
            text = wording.shorten(text, column.width)
        words.append(cells.fit(text, column.width, column.column.to_right))
    return (StyledSpan(" ".join(words), "chosen" if is_chosen else entry.style),)
