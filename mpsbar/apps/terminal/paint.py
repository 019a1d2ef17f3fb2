"""A line of the screen as textual draws it: the 16 colours of the person's own theme, or none."""

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.strip import Strip

from mpsbar.model.text import printable
from mpsbar.views.frame import Line

# Each can be told apart without its colour too: by weight, by shape, or by words.
_COLOURED = {
    "": RichStyle(),
    "title": RichStyle(color="cyan", bold=True),
    "head": RichStyle(bold=True, underline=True),
    "dim": RichStyle(dim=True),
    "ok": RichStyle(color="green"),
    "warning": RichStyle(color="yellow", bold=True),
    "critical": RichStyle(color="red", bold=True),
    "key": RichStyle(color="cyan", bold=True, reverse=True),
    "gauge": RichStyle(color="cyan"),
    "allocated": RichStyle(color="blue"),
    "cached": RichStyle(color="cyan"),
    "chosen": RichStyle(reverse=True),
    "box": RichStyle(bold=True),
}
_PLAIN = {name: style.without_color for name, style in _COLOURED.items()}


def draw(line: Line, width: int, is_coloured: bool) -> Strip:
    """Whatever a name contains, no control character gets past here."""
    styles = _COLOURED if is_coloured else _PLAIN
    segments = [Segment(printable(text, most=2000), styles[style]) for text, style in line]
    return Strip(segments).adjust_cell_length(width)
