"""How the terminal asks and tells: boxes over the screen, lines in its log."""

from collections.abc import Callable
from pathlib import Path

from mpsbar.desktop.programs import open_file
from mpsbar.ui.terminal.overlays import Box
from mpsbar.ui.terminal.state import TerminalState
from mpsbar.ui.text.dialogs import Dialog, Notice


class TerminalFrontEnd:
    """The FrontEnd of ui/controller.py; the app gives what only textual can do."""

    def __init__(
        self,
        state: TerminalState,
        copy: Callable[[str], None],
        on_change: Callable[[], None],
        call_on_main: Callable[[Callable[[], None]], None],
    ) -> None:
        self._state = state
        self.copy = copy
        self.changed = on_change
        self.call_on_main = call_on_main

    def ask(self, question: Dialog, answer: Callable[[int], None]) -> None:
        """Enter takes the last button, which changes nothing."""
        lines, last = tuple(question.text.split("\n")), len(question.buttons) - 1
        self._state.open(Box("ask", question.title, lines, question.buttons, last), answer)

    def ask_text(self, question: Dialog, text: str, answer: Callable[[str], None]) -> None:
        """Enter takes what was typed, Esc changes nothing."""
        lines = tuple(question.text.split("\n"))
        self._state.open_field(Box("type", question.title, lines, text=text), answer)

    def tell(self, notice: Notice, key: str) -> None:  # noqa: ARG002 - a log replaces nothing
        is_short = notice.kind == "summary"
        text = notice.title if is_short else f"{notice.title}: {notice.text}"
        self._state.note(text, notice.level)

    def show(self, text: Dialog) -> None:
        paragraphs = text.text.split("\n\n")
        self._state.note(": ".join((text.title, *paragraphs)))

    def tell_failure(self, what: str, error: Exception) -> None:  # noqa: ARG002 - it was just pressed
        self._state.note(f"{type(error).__name__}: {error}", "warning")

    def open(self, file: Path) -> bool:
        return open_file(file)
