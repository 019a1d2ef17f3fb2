"""A terminal's whole screen as data: lines of styled text, and what a click on them means. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from mpsbar.ui.text import cells

Style = Literal[
    "", "title", "head", "dim", "ok", "warning", "critical", "key", "gauge", "allocated", "cached",
    "chosen", "box",
]  # fmt: skip


class StyledSpan(NamedTuple):
    text: str
    style: Style = ""


Line = tuple[StyledSpan, ...]


class Hit(NamedTuple):
    """Cells of one line that do something when clicked: `left` of them, up to `right`."""

    y: int
    left: int
    right: int
    target: str  # "key:f", "row:worker-4711", "sort:HELD", "choice:0"


@dataclass(frozen=True, slots=True)
class Frame:
    lines: tuple[Line, ...]
    hits: tuple[Hit, ...] = ()

    def __str__(self) -> str:
        return "\n".join(text_of(line).rstrip() for line in self.lines)

    def target(self, x: int, y: int) -> str | None:
        """What a click there means; of two the one drawn last counts."""
        found = (hit for hit in reversed(self.hits) if hit.y == y and hit.left <= x < hit.right)
        return next((hit.target for hit in found), None)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def line_of(text: str, style: Style = "") -> Line:
    return (StyledSpan(text, style),)


@lru_cache(512)  # most lines stay the same from one frame to the next
def fit_line(line: Line, width: int) -> Line:
    """Cut or fill a line with spaces to exactly this width."""
    spans, room = [], width
    for span in line:
        if room <= 0:
            break
        text = cells.cut(span.text, room)
        spans.append(StyledSpan(text, span.style))
        room -= cells.width(text)
    return (*spans, StyledSpan(" " * room)) if room > 0 else tuple(spans)


def spread(left: Line, right: Line, width: int) -> Line:
    """Put one line at each edge; the right one only where both fit."""
    used = sum(cells.width(span.text) for line in (left, right) for span in line)
    if not right or used + 2 > width:
        return fit_line(left, width)
    return (*left, StyledSpan(" " * (width - used)), *right)


def fill(lines: Iterable[Line], width: int, height: int) -> list[Line]:
    """Cut or fill to exactly this many lines, each exactly this wide."""
    fitted = [fit_line(line, width) for line in list(lines)[: max(height, 0)]]
    return fitted + [line_of(" " * width)] * (height - len(fitted))


def slice_line(line: Line, left: int, right: int) -> Line:
    """The cells from `left` up to `right`; half a wide character is a space."""
    spans, at = [], 0
    for span in line:
        part = ""
        for char in span.text:
            wide = cells.width(char)
            if left <= at and at + wide <= right:
                part += char
            elif at < right and at + wide > left:
                part += " " * (min(at + wide, right) - max(at, left))
            at += wide
        if part:
            spans.append(StyledSpan(part, span.style))
    return tuple(spans)
