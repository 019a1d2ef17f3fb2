"""The processes as a table for a terminal: which columns, how wide, which rows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.columns import COLUMNS, Column
from mpsbar.ui.terminal.frame import Frame, Hit, Line, StyledSpan
from mpsbar.ui.terminal.table_rows import Entry
from mpsbar.ui.text import cells, wording

# What the name takes of the room that is left, at most; the note has the rest.
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
    """Those that fit, the most telling first; name and note share what is left."""
    shown = {one.key: ShownColumn(one, one.key, one.width) for one in COLUMNS if not one.rank}
    used = sum(one.width + 1 for one in shown.values()) - 1
    for column in sorted((one for one in COLUMNS if one.rank), key=lambda one: one.rank):
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
        one = shown[key]
        shown[key] = ShownColumn(one.column, one.head, one.width + room)
    return [shown[column.key] for column in COLUMNS if column.key in shown]


@dataclass(frozen=True, slots=True)
class Shown:
    """How the table is looked at."""

    chosen: str = ""  # the key of the chosen row
    offset: int = 0
    sort: str = ""
    descending: bool = True


def render_table(
    entries: Sequence[Entry], columns: Sequence[ShownColumn], shown: Shown, width: int, height: int
) -> Frame:
    """The head, and as many rows as fit from the offset on."""
    lines: list[Line] = [_head(columns, shown)]
    hits: list[Hit] = []
    at = 0
    for column in columns:
        hits.append(Hit(0, at, at + column.width + 1, f"sort:{column.key}"))
        at += column.width + 1
    for y, entry in enumerate(entries[shown.offset : shown.offset + height - 1], start=1):
        lines.append(_line(entry, columns, entry.key == shown.chosen))
        hits.append(Hit(y, 0, width, f"row:{entry.key}"))
    return Frame(tuple(lines), tuple(hits))


def _head(columns: Sequence[ShownColumn], shown: Shown) -> Line:
    words = []
    for one in columns:
        mark = ("▼" if shown.descending else "▲") if one.key == shown.sort else ""
        name = cells.cut(one.head, one.width - len(mark)) + mark
        words.append(cells.fit(name, one.width, one.column.to_right))
    return (StyledSpan(" ".join(words), "head"),)


def _line(entry: Entry, columns: Sequence[ShownColumn], is_chosen: bool) -> Line:
    words = []
    for one in columns:
        text = entry.cells.get(one.key, "")
        if one.key == "NAME":
            text = wording.shorten(text, one.width)
        words.append(cells.fit(text, one.width, one.column.to_right))
    return (StyledSpan(" ".join(words), "chosen" if is_chosen else entry.style),)
