"""Text in the cells of a terminal: how wide it is there, cut and padded to fit, coloured. Pure."""

import re
from collections.abc import Callable
from functools import lru_cache

from mpsbar.core.naming import printable

# One cell each: Latin letters, dashes and dots, arrows, lines and bars. Whatever else there is, the
# tables of wcwidth tell; their import takes 20 ms, and most screens do without.
_NARROW = re.compile(
    r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u2193\u2264\u2500-\u259f]*"
)
# From one look to the next most of a screen stays as it is.
_remembered = lru_cache(2048)
# Colour is never the only sign of anything.
_COLOURS = {"ok": "32", "warning": "33", "critical": "31;1", "head": "1", "dim": "2"}

Paint = Callable[[str, str], str]


@_remembered
def width(text: str) -> int:
    """Cells of one line: a Chinese character takes two, an accent of its own none."""
    if _NARROW.fullmatch(text):
        return len(text)
    from wcwidth import wcswidth, wcwidth

    cells = wcswidth(text)
    # -1: there is a control character, which has no width.
    return cells if cells >= 0 else sum(max(0, wcwidth(char)) for char in text)


def cut(text: str, most: int) -> str:
    """What fits, from the left; an ellipsis tells that there was more."""
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


@_remembered
def fit(text: str, cells: int, to_right: bool = False) -> str:
    """Exactly so many cells."""
    text = cut(text, cells)
    space = " " * (cells - width(text))
    return space + text if to_right else text + space


def wrap(text: str, cells: int) -> list[str]:
    """Lines that fit, broken between words where there are any; what is empty is one line."""
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
    """The 16 colours every terminal has; the user's own theme decides how they look."""
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if style in _COLOURS and text.strip() else text


def plain(text: str, style: str) -> str:  # noqa: ARG001 - the shape of in_colour
    return text
