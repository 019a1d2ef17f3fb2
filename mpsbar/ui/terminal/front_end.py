"""How the terminal asks and notifies: screens over the table, lines in the log under it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.widgets import RichLog

from mpsbar.desktop.programs import open_file
from mpsbar.ui.terminal.drawing import make_text
from mpsbar.ui.terminal.screens import AskScreen, FieldScreen
from mpsbar.ui.terminal.state import Note, TerminalState
from mpsbar.ui.terminal.themes import LEVEL_STYLES, Palette
from mpsbar.ui.text.cells import width
from mpsbar.ui.text.dialogs import Dialog, Notice

if TYPE_CHECKING:
    from mpsbar.ui.terminal.app import TerminalApp

_MIN_WRAPPED = 3  # lines: in fewer of the log, one long line would hide the others
_LENGTH_OF_TIME = 9  # and the space after it


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

    def notify(self, notice: Notice, key: str) -> None:  # noqa: ARG002 - a log replaces nothing
        is_short = notice.kind == "summary"
        text = notice.title if is_short else f"{notice.title}: {notice.text}"
        self._app.note(text, notice.level)

    def show(self, text: Dialog) -> None:
        paragraphs = text.text.split("\n\n")
        self._app.note(": ".join((text.title, *paragraphs)))

    def notify_failure(self, what: str, error: Exception) -> None:  # noqa: ARG002 - it was just pressed
        self._app.note(f"{type(error).__name__}: {error}", "warning")

    def open(self, file: Path) -> bool:
        return open_file(file)


def _call(answer: Callable[..., None], value: int | str | None) -> None:
    """Calls `answer` unless the question was dismissed, which gives None."""
    if value is not None:
        answer(value)


class NoteLog(RichLog):
    """What was done and what happened, a line for each note."""

    def __init__(self, **more: Any) -> None:
        super().__init__(wrap=True, min_width=0, max_lines=200, **more)
        self.can_focus = False
        self._written = 0  # of all notes there were

    def show(self, state: TerminalState, palette: Palette) -> None:
        """Write the notes that are new."""
        if not self.size.width:
            return
        notes = list(state.notes)
        new = min(state.note_count - self._written, len(notes))
        self._written = state.note_count
        for note in notes[len(notes) - new :]:
            self.write(self._render_note(note, palette))

    def rewrite(self, state: TerminalState, palette: Palette) -> None:
        """Write all notes again: the width or the colours have changed."""
        self.clear()
        self._written = state.note_count - len(state.notes)
        self.show(state, palette)

    def is_too_small_for(self, text: str) -> bool:
        """Returns whether a note of this text would be cut off."""
        return self._is_low and width(text) + _LENGTH_OF_TIME > self.size.width

    @property
    def _is_low(self) -> bool:
        return self.size.height < _MIN_WRAPPED

    def _render_note(self, note: Note, palette: Palette) -> Text:
        text = Text.assemble(
            make_text(f"{note.time} ", palette.style("quiet")),
            make_text(note.text, palette.style(LEVEL_STYLES.get(note.level, ""))),
        )
        text.no_wrap = self._is_low
        if text.no_wrap:
            text.truncate(self.size.width, overflow="ellipsis")
        return text
