"""What lies over a terminal's screen: help, a question, a menu, tensors, a field. Pure."""

from dataclasses import dataclass
from typing import Literal

from mpsbar.ui.terminal.frame import (
    Frame,
    Hit,
    Line,
    Style,
    StyledSpan,
    fit_line,
    line_of,
    slice_line,
)
from mpsbar.ui.text import cells
from mpsbar.ui.text.wording import _

_MARGIN = 2


@dataclass(frozen=True, slots=True)
class Box:
    kind: Literal["help", "ask", "menu", "text", "type"]
    title: str
    lines: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    at: int = 0  # the choice that Enter takes
    text: str = ""  # what was typed so far

    def move(self, by: int) -> int:
        return (self.at + by) % len(self.choices) if self.choices else 0


def lay_over(frame: Frame, box: Box, width: int, height: int) -> Frame:
    """Draw a box in the middle of a frame; what is under it cannot be clicked."""
    inner = _inner(box, width - 2 * _MARGIN - 2)
    wide = max(cells.width(line[0]) for line in inner)
    inner = _shorten(inner, box, height - 2)
    left, top = max((width - wide - 4) // 2, 0), max((height - len(inner) - 2) // 2, 0)
    drawn = _draw(box, inner, wide)
    lines, hits = list(frame.lines), []
    for y, line in enumerate(drawn, start=top):
        if y < len(lines):
            right = left + wide + 4
            lines[y] = (*slice_line(lines[y], 0, left), *line, *slice_line(lines[y], right, width))
    for y, (_text, number) in enumerate(inner, start=top + 1):
        if number is not None:
            hits.append(Hit(y, left, left + wide + 4, f"choice:{number}"))
    return Frame(tuple(lines), tuple(hits))


def _inner(box: Box, most: int) -> list[tuple[str, int | None]]:
    """Its lines, and the number of the choice each stands for."""
    lines: list[tuple[str, int | None]] = [(cells.cut(box.title, most), None)]
    lines += [(text, None) for line in box.lines for text in _wrapped(box, line, most)]
    if (box.choices and box.lines) or box.kind == "type":
        lines.append(("", None))
    if box.kind == "type":
        keys = _("Enter sets it, Esc changes nothing")
        lines += [(cells.cut(f"› {box.text}▏", most), None), ("", None), (keys, None)]
    marks = ["›" if number == box.at else " " for number in range(len(box.choices))]
    for number, (mark, text) in enumerate(zip(marks, box.choices, strict=True)):
        lines.append((cells.cut(f"{mark} {text}", most), number))
    return lines


def _wrapped(box: Box, line: str, most: int) -> list[str]:
    is_prose = box.kind in ("ask", "type")
    return cells.wrap(line, min(most, 66)) if is_prose else [cells.cut(line, most)]


def _shorten(
    inner: list[tuple[str, int | None]], box: Box, height: int
) -> list[tuple[str, int | None]]:
    """Where not all lines fit: the title, then the choices, then text."""
    if len(inner) <= height:
        return inner
    shown = inner[: max(height, 1)]
    if box.kind == "type":  # the field is near the end
        return [inner[0], *inner[len(inner) - max(height - 1, 1) :]][: max(height, 1)]
    if not box.choices:
        return shown
    choices = [line for line in inner if line[1] is not None][: max(height - 1, 1)]
    return [*inner[: max(height - len(choices), 0)], *choices]


def _draw(box: Box, inner: list[tuple[str, int | None]], wide: int) -> list[Line]:
    edge = "─" * (wide + 2)
    lines: list[Line] = [line_of(f"┌{edge}┐", "box")]
    for number, (text, choice) in enumerate(inner):
        chosen = choice is not None and choice == box.at
        style: Style = "chosen" if chosen else "title" if number == 0 else ""
        middle = fit_line((StyledSpan(text, style),), wide)
        lines.append((StyledSpan("│ ", "box"), *middle, StyledSpan(" │", "box")))
    return [*lines, line_of(f"└{edge}┘", "box")]
