"""The app: ticks in, frames out, keys and clicks to deeds. Never waits for a worker."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from mpsbar.apps.terminal.canvas import Canvas
from mpsbar.apps.terminal.deeds import Deeds
from mpsbar.apps.terminal.stage import Stage, complain
from mpsbar.model.settings import Loaded
from mpsbar.model.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.views.terminal import build_frame

_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "home": -10_000, "end": 10_000}


class Terminal(App[None]):
    """`run` returns when the person has quit. The monitor ticks already, or begins to here."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: ansi_default; color: ansi_default; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", priority=True),
        Binding("ctrl+z", "suspend_process"),
    ]

    class Ticked(Message):
        pass

    class Ended(Message):
        """A future, and what follows from it."""

        def __init__(self, future: "Future[Any]", then: Callable[[Any], None]) -> None:
            super().__init__()
            self.future, self.then = future, then

    def __init__(self, monitor: Monitor, loaded: Loaded) -> None:
        super().__init__(ansi_color=True)
        self.title = "mpsbar"
        self._monitor = monitor
        self._stage = Stage(monitor.latest, loaded.settings)
        self._deeds = Deeds(self._stage, monitor, self._follow, self.copy_to_clipboard)
        self._canvas = Canvas()
        complain(self._stage, loaded.complaints)

    def compose(self) -> ComposeResult:
        yield self._canvas

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):  # not on the main thread: a test
            loop.add_signal_handler(signal.SIGTERM, self.exit)
        self._take()

    def on_tick(self, _snapshot: Snapshot) -> None:
        """On the ticking thread, for `Monitor.start`."""
        self._post(self.Ticked())

    def _post(self, message: Message) -> None:
        with contextlib.suppress(RuntimeError):  # not begun yet, or over
            self.post_message(message)

    def _follow(self, future: "Future[Any]", then: Callable[[Any], None]) -> None:
        def done(ended: "Future[Any]") -> None:
            if not ended.cancelled():
                self._post(self.Ended(ended, then))

        future.add_done_callback(done)
        self._draw()

    # --- what happens

    def on_terminal_ticked(self, _message: Ticked) -> None:
        self._take()

    def on_terminal_ended(self, message: Ended) -> None:
        if error := message.future.exception():
            self._stage.note(f"{type(error).__name__}: {error}", "warning")
        else:
            message.then(message.future.result())
        self._take()

    def on_resize(self, _event: events.Resize) -> None:
        self._draw()

    def on_canvas_pressed(self, message: Canvas.Pressed) -> None:
        kind, _colon, what = message.target.partition(":")
        if self._stage.view.box is not None:
            self._deeds.answer(int(what)) if kind == "choice" else self._deeds.close_box()
        elif kind == "key":
            self._press({"⏎": "enter", "esc": "escape"}.get(what, what), what)
        elif kind == "sort":
            self._stage.sort_by(what)
        elif kind == "row":
            again = what == self._stage.view.shown.chosen
            self._stage.choose(what)
            if again:
                self._deeds.show_menu()
        self._draw()

    def on_canvas_scrolled(self, message: Canvas.Scrolled) -> None:
        if self._stage.view.box is None:
            self._stage.move(message.by)
            self._draw()

    def on_paste(self, event: events.Paste) -> None:
        if self._stage.view.is_typing:
            self._type(event.text)
            self._draw()

    def on_key(self, event: events.Key) -> None:
        event.prevent_default()
        if self._stage.view.box is not None:
            self._press_in_box(event.key, event.character or "")
        elif self._stage.view.is_typing:
            self._press_in_filter(event.key, event.character or "")
        else:
            self._press(event.key, event.character or "")
        self._draw()

    # --- keys

    def _press(self, key: str, char: str) -> None:
        page = max(self.size.height // 3, 1)
        moves = _MOVES | {"pageup": -page, "pagedown": page}
        doers: dict[str, Callable[[], object]] = {
            "q": self.exit,
            "?": self._deeds.show_help,
            "/": lambda: self._stage.filter(self._stage.view.filter, is_typing=True),
            "o": self._stage.sort_next,
            "O": self._stage.turn,
            "enter": self._deeds.show_menu,
            "escape": lambda: self._stage.filter("", is_typing=False),
        }
        if key in moves:
            self._stage.move(moves[key])
        elif doer := doers.get(key) or doers.get(char):
            doer()
        else:
            self._deeds.press(char)

    def _press_in_box(self, key: str, char: str) -> None:
        box = self._stage.view.box
        assert box is not None
        if key in ("up", "down", "k", "j", "tab") and box.choices:
            by = -1 if key in ("up", "k") else 1
            self._stage.open(replace(box, at=box.move(by)))
        elif key == "enter" and box.choices:
            self._deeds.answer(box.at)
        elif box.kind == "ask" and char == "y":
            self._deeds.answer(0)
        else:
            self._deeds.close_box()

    def _press_in_filter(self, key: str, char: str) -> None:
        text = self._stage.view.filter
        if key == "enter":
            self._stage.filter(text, is_typing=False)
        elif key == "escape":
            self._stage.filter("", is_typing=False)
        elif key == "backspace":
            self._stage.filter(text[:-1], is_typing=True)
        elif key in ("up", "down"):
            self._stage.move(_MOVES[key])
        else:
            self._type(char)

    def _type(self, text: str) -> None:
        line = "".join(char for char in text if char.isprintable())
        self._stage.filter(self._stage.view.filter + line, is_typing=True)

    # --- drawing

    def _take(self) -> None:
        self._stage.take(self._monitor.latest)
        self._deeds.refresh_box()
        if self._stage.bells:
            self._stage.bells = 0
            self.bell()
        self._draw()

    def _draw(self) -> None:
        width, height = self.size
        if width and height:
            self._stage.scroll(width, height)
            self._canvas.show(build_frame(self._stage.scene(), width, height))
