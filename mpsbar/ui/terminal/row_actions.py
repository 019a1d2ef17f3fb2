"""What keys, clicks and the command palette do in `top`: each stands for a row of the menu."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import SystemCommand

from mpsbar.language import _
from mpsbar.ui.controller import Controller
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Row
from mpsbar.ui.terminal.drawing import make_text
from mpsbar.ui.terminal.screens import ChoiceScreen, TextScreen
from mpsbar.ui.terminal.state import TerminalState

if TYPE_CHECKING:
    from mpsbar.ui.terminal.app import TerminalApp

# Of the whole menu, for the command palette.
_COMMANDS = ("free-all", "probe", "report", "auto-free", "diagnostics")


class RowActions:
    """Does what rows of the menu do. Where the selected process has no such row, nothing
    happens."""

    def __init__(self, app: "TerminalApp", state: TerminalState, controller: Controller) -> None:
        self._app, self._state, self._controller = app, state, controller

    @property
    def offered(self) -> frozenset[str]:
        """The kinds of rows that work on the selected process now."""
        kinds = frozenset(_kind(row) for row in self._state.actions if can_press(row))
        return kinds | ({"free-all"} if self._state.snapshot.workers else set())

    def do_kind(self, kind: str) -> None:
        row = next((row for row in self._state.actions if _kind(row) == kind), None)
        if row is not None:
            self.do(row, self._state.selected_name)

    def do_key(self, key: str) -> None:
        """Does what the row of the menu with this key stands for."""
        row = self._find(key)
        if row is not None:
            self.do(row)

    def do(self, row: Row, name: str = "") -> None:
        self._controller.open_children(row)
        title = f"{name}: {row.text}" if name else row.text
        if any(can_press(child) for child in row.children):
            self.choose(title, row.children)
        elif row.children or row.opens:
            self._app.push_screen(TextScreen(title, partial(self._render_children, row.key)))
        else:
            self._controller.click(row)

    def choose(self, title: str, children: tuple[Row, ...]) -> None:
        """Let the person choose one of them."""
        rows = [row for row in children if can_press(row)]
        is_choice = not any(row.children or row.opens for row in rows)
        checked = (n for n, row in enumerate(rows) if row.is_checked and is_choice)
        choices = [("✓ " if row.is_checked else "") + row.text for row in rows]

        def take(number: int | None) -> None:
            if number is not None:
                self.do(rows[number], "" if is_choice else self._state.selected_name)

        self._app.push_screen(ChoiceScreen(title, choices, next(checked, 0)), take)

    def list_commands(self) -> Iterator[SystemCommand]:
        """Lists the commands for the palette: every action that works now."""
        name = self._state.selected_name
        for row in self._state.actions:
            if can_press(row):
                yield SystemCommand(row.text, name, partial(self.do, row, name))
        for row in filter(None, map(self._find, _COMMANDS)):
            yield SystemCommand(row.text, row.tooltip, partial(self.do, row))

    def _find(self, key: str) -> Row | None:
        menu = build_menu(self._state.snapshot, self._state.ui_state)
        row = _find(menu.rows, key)
        return row if row is not None and can_press(row) else None

    def _render_children(self, key: str) -> Text:
        """Renders the rows of a submenu as they are now: tensors may have been counted since."""
        row = next((row for row in self._state.actions if row.key == key), None)
        lines = [child.text for child in row.children] if row is not None else [_("ended")]
        return Text("\n").join(make_text(line) for line in lines)


def can_press(row: Row) -> bool:
    return bool(row.actions or row.opens or row.children)


def _kind(row: Row) -> str:
    """Returns the kind of a process's row: its key without the pid."""
    return row.key.rpartition("-")[0]


def _find(rows: tuple[Row, ...], key: str) -> Row | None:
    """Finds the row with this key, also in submenus."""
    for row in rows:
        found = row if row.key == key else _find(row.children, key)
        if found is not None:
            return found
    return None
