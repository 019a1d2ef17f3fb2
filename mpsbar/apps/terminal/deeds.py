"""What a key or a click leads to: asked of the monitor, told in the log when it has ended."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from mpsbar.apps.terminal.stage import Stage
from mpsbar.model.action import (
    Action,
    Connect,
    Connected,
    Copy,
    Free,
    Freed,
    Stop,
    Stopped,
    Tensors,
    WatchEnd,
)
from mpsbar.model.text import printable
from mpsbar.monitor import Monitor
from mpsbar.views import dialog_words as words
from mpsbar.views import outcome_words
from mpsbar.views.frame import Style
from mpsbar.views.row import Row
from mpsbar.views.terminal_box import Box
from mpsbar.views.terminal_keys import can_press, find_row, help_lines, help_title, say_copied

Follow = Callable[["Future[Any]", Callable[[Any], None]], None]


class Deeds:
    """On the main thread; `follow` calls back there when a future has ended."""

    def __init__(
        self, stage: Stage, monitor: Monitor, follow: Follow, copy: Callable[[str], None]
    ) -> None:
        self._stage, self._monitor, self._follow = stage, monitor, follow
        self._to_clipboard = copy
        self._answer: Callable[[int], None] = lambda _: None
        self._opened: str | None = None  # the key of the row whose children the box shows
        # Every action that a row of the menu can carry here. To come with their rows: the dtype
        # probe (key p) and the report (key r).
        self._doers: dict[type, Callable[[Any], object]] = {
            Free: self._free,
            Stop: self._stop,
            Connect: self._connect,
            Copy: self._copy,
            WatchEnd: stage.watch_end,
        }

    def press(self, char: str) -> None:
        chosen = self._stage.chosen
        row = find_row(char, self._stage.menu, chosen.row if chosen else None)
        if row is not None and can_press(row):
            self.do(row)

    def do(self, row: Row) -> None:
        if row.opens is not None:
            self._follow(self._monitor.perform(row.opens), self._show_tensors)
        if row.children:
            self._opened = row.key
            self.refresh_box()
            return
        self._do_all(row.actions)

    def show_menu(self) -> None:
        """All that can be done with the chosen process."""
        chosen = self._stage.chosen
        if chosen is None or not chosen.row.children:
            return
        rows = [row for row in chosen.row.children if can_press(row)]
        marked = [("✓ " if row.is_checked else "") + row.text for row in rows]
        self._ask(
            Box("menu", chosen.cells["NAME"], (), tuple(marked)),
            lambda number: self.do(rows[number]),
        )

    def show_help(self) -> None:
        self._opened = None
        self._stage.open(Box("help", help_title(), tuple(help_lines())))

    def answer(self, number: int) -> None:
        """Of the open box; what it asks next may open another."""
        self._stage.open(None)
        self._answer(number)

    def close_box(self) -> None:
        self._opened = None
        self._stage.open(None)

    def refresh_box(self) -> None:
        """What is counted meanwhile is shown in the open box."""
        if self._opened is None:
            return
        for entry in self._stage.entries:
            for row in entry.row.children:
                if row.key == self._opened:
                    title = f"{entry.cells['NAME']}: {row.text}"
                    lines = tuple(child.text for child in row.children)
                    self._stage.open(Box("text", title, lines))

    def _do_all(self, actions: tuple[Action, ...]) -> None:
        """Many frees, one sum."""
        frees = [action for action in actions if isinstance(action, Free)]
        ended: list[Freed] = []

        def add(outcome: Freed) -> None:
            self._show_freed(outcome)
            ended.append(outcome)
            if len(ended) == len(frees):
                self._stage.note(words.tell_all_freed(ended).title)

        if len(frees) > 1:
            for free in frees:
                self._follow(self._monitor.perform(free), add)
            return
        for action in actions:
            if doer := self._doers.get(type(action)):
                doer(action)

    def _ask(self, box: Box, answer: Callable[[int], None]) -> None:
        self._opened = None
        self._answer = answer
        self._stage.open(box)

    def _ask_first(self, dialog: words.Dialog, deed: Callable[[], None]) -> None:
        """The careful answer is the one that Enter takes."""
        box = Box("ask", dialog.title, tuple(dialog.text.split("\n")), dialog.buttons)
        last = len(dialog.buttons) - 1
        self._ask(replace(box, at=last), lambda number: deed() if number == 0 else None)

    def _copy(self, asked: Copy) -> None:
        self._to_clipboard(asked.text)
        self._stage.note(say_copied(asked.text))

    def _free(self, action: Free) -> None:
        self._follow(self._monitor.perform(action), self._show_freed)

    def _show_freed(self, outcome: Freed) -> None:
        name = self._stage.snapshot.names.get(outcome.pid, outcome.name)
        style: Style = "ok" if outcome.state == "done" else "warning"
        self._stage.note(f"{printable(name)}: {outcome_words.freed(outcome)}", style)

    def _stop(self, action: Stop) -> None:
        def stop() -> None:
            self._follow(self._monitor.perform(action), self._show_stopped)

        self._ask_first(words.ask_stop(action), stop)

    def _show_stopped(self, outcome: Stopped) -> None:
        self._stage.note(f"{printable(outcome.name)}: {outcome_words.stopped(outcome)}")

    def _connect(self, action: Connect) -> None:
        def connect() -> None:
            self._follow(self._monitor.perform(action), self._show_connected)

        self._ask_first(words.ask_connect(action), connect)

    def _show_connected(self, outcome: Connected) -> None:
        self._stage.note(f"{printable(outcome.python)}: {outcome_words.connected(outcome)}")

    def _show_tensors(self, outcome: Tensors) -> None:
        """They are in the box by now, unless it was closed."""
        if outcome.state != "done":
            self._stage.note(f"{outcome.pid}: {outcome_words.tensors_refused(outcome)}", "warning")
