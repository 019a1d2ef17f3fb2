"""What a key or a click in the terminal leads to: a row of the menu, or a box over the screen."""

from mpsbar.ui.controller import Controller
from mpsbar.ui.rows import Row
from mpsbar.ui.terminal.keys import can_press, find_row, help_lines
from mpsbar.ui.terminal.overlays import Box
from mpsbar.ui.terminal.state import TerminalState
from mpsbar.ui.text.wording import _


class KeyCommands:
    def __init__(self, state: TerminalState, controller: Controller) -> None:
        self._state, self._controller = state, controller
        self._open_row: str | None = None  # the key of the row whose children the box shows

    def press(self, char: str) -> None:
        """Do what the row of this key stands for, if there is one now."""
        chosen = self._state.chosen
        row = find_row(char, self._state.menu, chosen.row if chosen else None)
        if row is not None and can_press(row):
            self._do(row)

    def show_menu(self) -> None:
        """Show all that can be done with the chosen process."""
        chosen = self._state.chosen
        if chosen is None or not chosen.row.children:
            return
        self._open_menu(chosen.cells["NAME"], chosen.row)

    def _open_menu(self, title: str, parent: Row) -> None:
        """Its children, of which one can be chosen; the cursor stands at the one that is set."""
        rows = [row for row in parent.children if can_press(row)]
        choices = [("✓ " if row.is_checked else "") + row.text for row in rows]
        is_choice = not any(row.children or row.opens for row in rows)
        checked = (n for n, row in enumerate(rows) if row.is_checked and is_choice)
        self._open_row = None
        self._state.open(
            Box("menu", title, (), tuple(choices), next(checked, 0)),
            lambda number: self._do(rows[number]),
        )

    def show_help(self) -> None:
        self._open_row = None
        self._state.open(Box("help", _("mpsbar top"), tuple(help_lines())))

    def close_box(self) -> None:
        self._open_row = None
        self._state.open(None)

    def refresh_box(self) -> None:
        """Show the rows of an open submenu as they are now: tensors are counted meanwhile."""
        if self._open_row is None:
            return
        for entry in self._state.entries:
            for row in entry.row.children:
                if row.key == self._open_row:
                    title = f"{entry.cells['NAME']}: {row.text}"
                    lines = tuple(child.text for child in row.children)
                    self._state.open(Box("text", title, lines))

    def _do(self, row: Row) -> None:
        self._open_row = None
        self._controller.open_children(row)
        if any(can_press(child) for child in row.children):
            chosen = self._state.chosen
            is_of_chosen = chosen is not None and row in chosen.row.children
            name = f"{chosen.cells['NAME']}: " if chosen is not None and is_of_chosen else ""
            self._open_menu(f"{name}{row.text}", row)
        elif row.children:
            self._open_row = row.key
            self.refresh_box()
        else:
            self._controller.click(row)
