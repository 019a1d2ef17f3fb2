"""Text in terminal cells: its width, cut and padded to fit, coloured. Pure."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from mpsbar.core.naming import printable

# These take one cell each: Latin letters, dashes and dots, arrows, lines and bars. For all others
# wcwidth is asked; its import takes 20 ms, and most screens need none of it.
_NARROW = re.compile(
    r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u2193\u2264\u2500-\u259f]*"
)
# Most of a screen stays the same from one refresh to the next.
_cached = lru_cache(2048)
# Colour is never the only sign of anything.
_COLOURS = {"ok": "32", "warning": "33", "critical": "31;1", "head": "1", "dim": "2"}

Paint = Callable[[str, str], str]


@_cached
def width(text: str) -> int:
    """The cells one line takes: two for a Chinese character, none for a combining accent."""
    if _NARROW.fullmatch(text):
        return len(text)
    from wcwidth import wcswidth, wcwidth

    cells = wcswidth(text)
    # -1: there is a control character, which has no width.
    return cells if cells >= 0 else sum(max(0, wcwidth(char)) for char in text)


def cut(text: str, most: int) -> str:
    """The part that fits, from the left, with an ellipsis if it was cut."""
    text = printable(text, most=1000)
    if width(text) <= most:
        return text
    if most <= 0:
        return ""
    end = 0
    # Measured together: an emoji of several characters is narrower or wider than their sum.
    while width(text[: end + 1]) < most:
        end += 1
    return text[:end] + "…"


@_cached
def cut_middle(text: str, most: int) -> str:
    """The beginning and the end, which both help to recognise a name; in full if it fits."""
    if len(text) > 1000:
        text = text[:500] + "…" + text[-499:]
    text = printable(text, most=1000)
    if most < 4 or width(text) <= most:
        return cut(text, most)
    tail = text[-most:]
    while width(tail) > (most - 1) // 2:
        tail = tail[1:]
    return cut(text, most - width(tail)) + tail


@_cached
def fit(text: str, cells: int, to_right: bool = False) -> str:
    """Cut or pad the text to exactly this many cells."""
    return pad(cut(text, cells), cells, to_right)


def pad(text: str, cells: int, to_right: bool = False) -> str:
    """The whole text, with spaces to at least this many cells."""
    space = " " * (cells - width(text))
    return space + text if to_right else text + space


def align(rows: Sequence[Sequence[str]], to_right: bool = False) -> list[str]:
    """A line for each row, with its columns below each other; `to_right`: all but the first."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            pad(cell, most, to_right and number > 0)
            for number, (cell, most) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def wrap(text: str, cells: int) -> list[str]:
    """Lines that fit, broken between words; an empty text is one empty line."""
    lines: list[str] = []
    for part in text.split("\n"):
        lines.append("")
        for word in printable(part, most=2000).split(" "):
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if width(joined) <= cells:
                lines[-1] = joined
            elif lines[-1]:
                lines.append(cut(word, cells))
            else:
                lines[-1] = cut(word, cells)
    return lines


def in_colour(text: str, style: str) -> str:
    """Colour the text with one of the 16 standard colours, which follow the terminal's theme."""
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if style in _COLOURS and text.strip() else text


def plain(text: str, style: str) -> str:  # noqa: ARG001 - the shape of in_colour
    return text
