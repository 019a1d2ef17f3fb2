"""The processes as a table for a terminal: which columns, how wide, which rows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpsbar.views import cells, wording
from mpsbar.views.frame import Frame, Hit, Line, Span
from mpsbar.views.terminal_rows import Entry

# At least; they share what is left.
_NAME, _NOTE = 16, 13


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    width: int
    to_right: bool = True


def choose_columns(width: int, entries: Sequence[Entry], charged_name: str) -> list[Column]:
    """Those that fit, the most telling first; name and note share what is left."""
    wanted = [
        Column("HELD", 8), Column("PID", 7), Column("CACHED", 8), Column("DEVICE", 6, False),
        Column(charged_name, max(8, len(charged_name))), Column("GPU", 5), Column("ALLOCATED", 9),
        Column("PEAK", 8),
    ]  # fmt: skip
    used, chosen = _NAME + 1 + _NOTE, []
    for column in wanted:
        words = [entry.cells.get(column.name, "") for entry in entries]
        if column.name in ("GPU", "PEAK") and not any(
            w not in ("", wording.UNKNOWN) for w in words
        ):
            continue
        wide = max([column.width, *map(cells.width, words)])
        if used + wide + 1 > width:
            break
        used += wide + 1
        chosen.append(Column(column.name, wide, column.to_right))
    return _in_order(chosen, width - used, charged_name)


def _in_order(chosen: list[Column], left: int, charged_name: str) -> list[Column]:
    more = min(max(left, 0) // 2, 22)
    flexible = {
        "NAME": Column("NAME", _NAME + more, False),
        "NOTE": Column("NOTE", _NOTE + left - more, False),
    }
    found = {column.name: column for column in chosen} | flexible
    order = ("PID", "NAME", "DEVICE", "HELD", "ALLOCATED", "CACHED", "PEAK", charged_name, "GPU")
    return [found[name] for name in (*order, "NOTE") if name in found]


@dataclass(frozen=True, slots=True)
class Shown:
    """How the table is looked at."""

    chosen: str = ""  # the key of the chosen row
    offset: int = 0
    sort: str = ""
    descending: bool = True


def render_table(
    entries: Sequence[Entry], columns: Sequence[Column], shown: Shown, width: int, height: int
) -> Frame:
    """The head, and as many rows as fit from the offset on."""
    lines: list[Line] = [_head(columns, shown)]
    hits: list[Hit] = []
    at = 0
    for column in columns:
        hits.append(Hit(0, at, at + column.width + 1, f"sort:{column.name}"))
        at += column.width + 1
    for y, entry in enumerate(entries[shown.offset : shown.offset + height - 1], start=1):
        lines.append(_line(entry, columns, entry.key == shown.chosen))
        hits.append(Hit(y, 0, width, f"row:{entry.key}"))
    return Frame(tuple(lines), tuple(hits))


def _head(columns: Sequence[Column], shown: Shown) -> Line:
    words = []
    for column in columns:
        mark = ("▼" if shown.descending else "▲") if column.name == shown.sort else ""
        name = cells.cut(column.name, column.width - len(mark)) + mark
        words.append(cells.fit(name, column.width, column.to_right))
    return (Span(" ".join(words), "head"),)


def _line(entry: Entry, columns: Sequence[Column], is_chosen: bool) -> Line:
    words = []
    for column in columns:
        text = entry.cells.get(column.name, "")
        if column.name == "NAME":
            text = wording.shorten(text, column.width)
        words.append(cells.fit(text, column.width, column.to_right))
    return (Span(" ".join(words), "chosen" if is_chosen else entry.style),)
