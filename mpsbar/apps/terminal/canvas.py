"""The one widget: draws a frame, and of the next one only the lines that changed."""

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mpsbar.apps.terminal.paint import draw
from mpsbar.views.frame import Frame, Line


class Canvas(Widget):
    DEFAULT_CSS = "Canvas { width: 1fr; height: 1fr; }"

    class Pressed(Message):
        """A click; `target` is empty where nothing is meant by it."""

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
