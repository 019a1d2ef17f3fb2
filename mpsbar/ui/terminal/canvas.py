"""The only widget: draws a frame, and of the next frame only the lines that changed."""

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mpsbar.core.naming import printable
from mpsbar.ui.terminal.frame import Frame, Line

# Each differs without its colour too: by weight, by shape, or by words.
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


class Canvas(Widget):
    DEFAULT_CSS = "Canvas { width: 1fr; height: 1fr; }"

    class Pressed(Message):
        """A click; `target` is empty where it does nothing."""

        def __init__(self, target: str) -> None:
            super().__init__()
            self.target = target

    class Scrolled(Message):
        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self) -> None:
        super().__init__()
        self._frame = Frame(())

    def show(self, frame: Frame) -> None:
        before, self._frame = self._frame.lines, frame
        if len(before) != len(frame.lines):
            self.refresh()
            return
        width = self.size.width
        pairs = enumerate(zip(before, frame.lines, strict=True))
        if changed := [Region(0, y, width, 1) for y, (old, new) in pairs if old != new]:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        lines = self._frame.lines
        line: Line = lines[y] if y < len(lines) else ()
        return draw(line, self.size.width, not self.app.no_color)

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Pressed(self._frame.target(event.x, event.y) or ""))

    def on_mouse_scroll_down(self, _event: events.MouseScrollDown) -> None:
        self.post_message(self.Scrolled(1))

    def on_mouse_scroll_up(self, _event: events.MouseScrollUp) -> None:
        self.post_message(self.Scrolled(-1))
