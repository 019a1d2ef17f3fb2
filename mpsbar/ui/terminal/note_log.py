"""The log of the terminal app: what was done and what happened, a line for each note."""

from typing import Any

from rich.text import Text
from textual.widgets import RichLog

from mpsbar.ui.terminal.drawing import make_text
from mpsbar.ui.terminal.state import Note, TerminalState
from mpsbar.ui.terminal.themes import Palette

_LEAST_WRAPPED = 3  # lines: in fewer, one long line would hide the others
_LENGTH_OF_TIME = 9  # and the space after it
_STYLES = {"ok": "success", "warning": "warning", "critical": "error"}


class NoteLog(RichLog):
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
        """Whether a note of this text would be cut off."""
        return self._is_low and len(text) + _LENGTH_OF_TIME > self.size.width

    @property
    def _is_low(self) -> bool:
        return self.size.height < _LEAST_WRAPPED

    def _render_note(self, note: Note, palette: Palette) -> Text:
        text = Text.assemble(
            make_text(f"{note.time} ", palette.style("quiet")),
            make_text(note.text, palette.style(_STYLES.get(note.level, ""))),
        )
        text.no_wrap = self._is_low
        if text.no_wrap:
            text.truncate(self.size.width, overflow="ellipsis")
        return text
