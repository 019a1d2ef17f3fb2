"""The terminal app: draws each snapshot, and hands keys and clicks on. Never waits for a worker."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from mpsbar.core.settings import Loaded
from mpsbar.core.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.ui.controller import Controller
from mpsbar.ui.terminal.canvas import Canvas
from mpsbar.ui.terminal.front_end import TerminalFrontEnd
from mpsbar.ui.terminal.key_commands import KeyCommands
from mpsbar.ui.terminal.keys import find_command
from mpsbar.ui.terminal.screen import build_frame
from mpsbar.ui.terminal.state import TerminalState

_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "home": -10_000, "end": 10_000}


class TerminalApp(App[None]):
    """`run` returns when the person has quit. The monitor ticks already, or begins to here."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: ansi_default; color: ansi_default; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", priority=True),
        Binding("ctrl+z", "suspend_process"),
    ]

    class Ticked(Message):
        pass

    class Called(Message):
        """A function that another thread wants to be called here."""

        def __init__(self, function: Callable[[], None]) -> None:
            super().__init__()
            self.function = function

    def __init__(self, monitor: Monitor, loaded: Loaded) -> None:
        super().__init__(ansi_color=True)
        self.title = "mpsbar"
        self._monitor = monitor
        self._terminal_state = TerminalState(monitor.latest, loaded.settings)
        front_end = TerminalFrontEnd(
            self._terminal_state,
            copy=self.copy_to_clipboard,
            on_change=self._take_ui_state,
            call_on_main=lambda function: self._post(self.Called(function)),
        )
        self._controller = Controller(monitor, front_end, self._terminal_state.ui_state)
        self._key_commands = KeyCommands(self._terminal_state, self._controller)
        self._canvas = Canvas()
        for complaint in loaded.complaints:
            self._terminal_state.note(complaint, "warning")

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
        with contextlib.suppress(RuntimeError):  # it has not started, or has ended
            self.post_message(message)

    # --- what happens

    def on_terminal_app_ticked(self, _message: Ticked) -> None:
        self._take()

    def on_terminal_app_called(self, message: Called) -> None:
        message.function()
        self._take()

    def on_unmount(self) -> None:
        self._controller.close()

    def on_resize(self, _event: events.Resize) -> None:
        self._draw()

    def on_canvas_pressed(self, message: Canvas.Pressed) -> None:
        kind, _colon, what = message.target.partition(":")
        if self._terminal_state.view.box is not None:
            if kind == "choice":
                self._terminal_state.answer(int(what))
            else:
                self._key_commands.close_box()
        elif kind == "key":
            self._press({"⏎": "enter", "esc": "escape"}.get(what, what), what)
        elif kind == "sort":
            self._terminal_state.sort_by(what)
        elif kind == "row":
            again = what == self._terminal_state.view.table.chosen
            self._terminal_state.choose(what)
            if again:
                self._key_commands.show_menu()
        self._draw()

    def on_canvas_scrolled(self, message: Canvas.Scrolled) -> None:
        if self._terminal_state.view.box is None:
            self._terminal_state.move(message.by)
            self._draw()

    def on_paste(self, event: events.Paste) -> None:
        box, text = self._terminal_state.view.box, event.text.strip()
        if box is not None and box.kind == "type" and text.isprintable():
            self._terminal_state.type_in_field(box.text + text)
            self._draw()
        elif self._terminal_state.view.is_typing:
            self._type(event.text)
            self._draw()

    def on_key(self, event: events.Key) -> None:
        event.prevent_default()
        if self._terminal_state.view.box is not None:
            self._press_in_box(event.key, event.character or "")
        elif self._terminal_state.view.is_typing:
            self._press_in_filter(event.key, event.character or "")
        else:
            self._press(event.key, event.character or "")
        self._draw()

    # --- keys

    def _press(self, key: str, char: str) -> None:
        page = max(self.size.height // 3, 1)
        moves = _MOVES | {"pageup": -page, "pagedown": page}
        state = self._terminal_state
        commands: dict[str, Callable[[], object]] = {
            "quit": self.exit,
            "show_help": self._key_commands.show_help,
            "filter": lambda: state.filter(state.view.filter, is_typing=True),
            "sort": state.sort_next,
            "reverse": state.reverse_order,
            "show_menu": self._key_commands.show_menu,
        }
        command = find_command("⏎" if key == "enter" else char)
        if key in moves:
            state.move(moves[key])
        elif key == "escape":
            state.filter("", is_typing=False)
        elif command:
            commands[command]()
        else:
            self._key_commands.press(char)

    def _press_in_box(self, key: str, char: str) -> None:
        box = self._terminal_state.view.box
        assert box is not None
        if box.kind == "type":
            self._press_in_field(key, char, box.text)
        elif key in ("up", "down", "k", "j", "tab") and box.choices:
            by = -1 if key in ("up", "k") else 1
            self._terminal_state.move_in_box(by)
        elif key == "enter" and box.choices:
            self._terminal_state.answer(box.at)
        elif box.kind == "ask" and char == "y":
            self._terminal_state.answer(0)
        else:
            self._key_commands.close_box()

    def _press_in_field(self, key: str, char: str, text: str) -> None:
        state = self._terminal_state
        if key == "enter":
            state.take_field()
        elif key == "escape":
            self._key_commands.close_box()
        elif key == "backspace":
            state.type_in_field(text[:-1])
        elif char.isprintable():
            state.type_in_field(text + char)

    def _press_in_filter(self, key: str, char: str) -> None:
        text = self._terminal_state.view.filter
        if key == "enter":
            self._terminal_state.filter(text, is_typing=False)
        elif key == "escape":
            self._terminal_state.filter("", is_typing=False)
        elif key == "backspace":
            self._terminal_state.filter(text[:-1], is_typing=True)
        elif key in ("up", "down"):
            self._terminal_state.move(_MOVES[key])
        else:
            self._type(char)

    def _type(self, text: str) -> None:
        line = "".join(char for char in text if char.isprintable())
        self._terminal_state.filter(self._terminal_state.view.filter + line, is_typing=True)

    # --- drawing

    def _take_ui_state(self) -> None:
        self._monitor.apply(self._controller.ui_state.settings)
        self._terminal_state.ui_state = self._controller.ui_state
        self._terminal_state.arrange()

    def _take(self) -> None:
        self._terminal_state.take(self._monitor.latest)
        self._key_commands.refresh_box()
        if self._terminal_state.bells:
            self._terminal_state.bells = 0
            self.bell()
        self._draw()

    def _draw(self) -> None:
        width, height = self.size
        if width and height:
            self._terminal_state.scroll(width, height)
            self._canvas.show(build_frame(self._terminal_state.content(), width, height))
