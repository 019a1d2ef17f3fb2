"""Text in the cells of a terminal: how wide it is there, cut and padded to fit. Pure."""

import unicodedata
from functools import lru_cache

from mpsbar.model.text import printable

# From one look to the next most of a screen stays as it is.
_remembered = lru_cache(2048)


@_remembered
def width(text: str) -> int:
    """Of one line; a Chinese character takes two cells, an accent of its own none."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, most: int) -> str:
    """What fits, from the left; an ellipsis tells that there was more."""
    text = printable(text, most=1000)
    if width(text) <= most:
        return text
    kept, room = "", most - 1
    for char in text:
        room -= _cells(char)
        if room < 0:
            break
        kept += char
    return kept + "…" if most > 0 else ""


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


@_remembered
def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
