"""How the terminal asks and tells: screens over the table, lines in its log."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar.desktop.programs import open_file
from mpsbar.ui.terminal.screens import AskScreen, FieldScreen
from mpsbar.ui.text.dialogs import Dialog, Notice

if TYPE_CHECKING:
    from mpsbar.ui.terminal.app import TerminalApp


class TerminalFrontEnd:
    """The FrontEnd of ui/controller.py."""

    def __init__(self, app: "TerminalApp") -> None:
        self._app = app
        self.copy = app.copy_to_clipboard
        self.changed = app.take_ui_state
        self.call_on_main = app.call_soon

    def ask(self, question: Dialog, answer: Callable[[int], None]) -> None:
        """Enter takes the last button, which changes nothing."""
        self._app.push_screen(AskScreen(question), lambda number: _call(answer, number))

    def ask_text(self, question: Dialog, text: str, answer: Callable[[str], None]) -> None:
        """Enter takes what was typed, Esc changes nothing."""
        self._app.push_screen(FieldScreen(question, text), lambda typed: _call(answer, typed))

    def tell(self, notice: Notice, key: str) -> None:  # noqa: ARG002 - a log replaces nothing
        is_short = notice.kind == "summary"
        text = notice.title if is_short else f"{notice.title}: {notice.text}"
        self._app.note(text, notice.level)

    def show(self, text: Dialog) -> None:
        paragraphs = text.text.split("\n\n")
        self._app.note(": ".join((text.title, *paragraphs)))

    def tell_failure(self, what: str, error: Exception) -> None:  # noqa: ARG002 - it was just pressed
        self._app.note(f"{type(error).__name__}: {error}", "warning")

    def open(self, file: Path) -> bool:
        return open_file(file)


def _call(answer: Callable[..., None], value: int | str | None) -> None:
    """None: it was dismissed."""
    if value is not None:
        answer(value)
