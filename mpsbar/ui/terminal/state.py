"""What the terminal shows beside the snapshot: order, choice, filter, log. Without textual."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from mpsbar.core.actions import Freed, Limited
from mpsbar.core.events import Alert, EndedProcess, Event
from mpsbar.core.naming import printable
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.columns import COLUMNS
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Menu, UiState
from mpsbar.ui.terminal.frame import Style
from mpsbar.ui.terminal.overlays import Box
from mpsbar.ui.terminal.screen import Note, ScreenContent, ScreenView, table_rows
from mpsbar.ui.terminal.table_rows import Entry, arrange, build_entries
from mpsbar.ui.text import outcomes
from mpsbar.ui.text.alerts import say_alert_in_a_line, say_ended

_EVERY_ROW = 10_000  # a terminal scrolls
_LOG_LINES = 200
_FILTER_LENGTH = 60
_FIELD_LENGTH = 40


class TerminalState:
    """Used on the main thread only. `content` is what there is to draw."""

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        self.ui_state = UiState(is_app=True, settings=settings, most=_EVERY_ROW)
        self.view = ScreenView()
        self._answer: Callable[[int], None] | None = None  # of the open box
        self._take_text: Callable[[str], None] | None = None  # of the open field
        self.snapshot = snapshot
        self._taken: Snapshot | None = None
        self.bells = 0  # to ring for processes that ended and were watched
        self._last_event = 0  # the number of the last that was shown
        self._log: deque[Note] = deque(maxlen=_LOG_LINES)
        self._all_entries: tuple[Entry, ...] = ()
        self.entries: tuple[Entry, ...] = ()
        self.menu: Menu = build_menu(snapshot, self.ui_state)

    def take(self, snapshot: Snapshot) -> None:
        """Show another snapshot; its events are noted once."""
        if snapshot is not self._taken:
            self.snapshot = self._taken = snapshot
            for event in snapshot.events_after(self._last_event):
                self._last_event = event.number
                self._note_event(event)
        self.arrange()

    def arrange(self) -> None:
        """Build the rows anew: after a snapshot, or another order, filter or choice."""
        self.menu = build_menu(self.snapshot, self.ui_state)
        rows = build_entries(self.menu.sections[1], self.snapshot)
        view = self.view.table
        before = [entry.key for entry in self._all_entries]
        self._all_entries = arrange(rows, view.sort, view.descending, before)
        wanted = self.view.filter
        places = {entry.key: place for place, entry in enumerate(self.entries)}
        self.entries = tuple(entry for entry in self._all_entries if entry.matches(wanted))
        self._keep_choice(places.get(view.chosen, 0))

    def content(self) -> ScreenContent:
        chosen = self.chosen
        track = self.snapshot.process_series.get(chosen.pid or 0) if chosen is not None else None
        return ScreenContent(
            self.snapshot, self.menu, self.entries, len(self._all_entries), track,
            tuple(self._log), self.view,
        )  # fmt: skip

    @property
    def chosen(self) -> Entry | None:
        wanted = self.view.table.chosen
        return next((entry for entry in self.entries if entry.key == wanted), None)

    def note(self, text: str, style: Style = "") -> None:
        self._log.append(Note(time.strftime("%H:%M:%S"), text, style))

    def note_freed(self, outcome: Freed) -> None:
        name = self.snapshot.names.get(outcome.pid, outcome.name)
        style: Style = "ok" if outcome.state == "done" else "warning"
        self.note(f"{printable(name)}: {outcomes.freed(outcome)}", style)

    # --- what a person does

    def choose(self, key: str) -> None:
        self._change_table(chosen=key)

    def move(self, by: int) -> None:
        keys = [entry.key for entry in self.entries]
        if not keys:
            return
        at = keys.index(self.view.table.chosen) if self.view.table.chosen in keys else 0
        self.choose(keys[min(max(at + by, 0), len(keys) - 1)])

    def scroll(self, width: int, height: int) -> None:
        """Scroll until the chosen row is visible."""
        rows = table_rows(self.content(), width, height)
        keys = [entry.key for entry in self.entries]
        at = keys.index(self.view.table.chosen) if self.view.table.chosen in keys else 0
        offset = min(max(self.view.table.offset, at - rows + 1), at)
        self._change_table(offset=max(min(offset, len(keys) - rows), 0))

    def sort_by(self, name: str) -> None:
        """The same column once more reverses the order."""
        view = self.view.table
        column = next(column for column in COLUMNS if column.key == name)
        is_word = column.number is None or name == "PID"
        descending = not view.descending if name == view.sort else not is_word
        self._change_table(sort=name, descending=descending)
        self._forget_order()

    def sort_next(self) -> None:
        """Sort by the next of the main columns, and after the last in the order of the menu."""
        names = ("", "HELD", "CACHED", "FOOTPRINT", "NAME")
        now = self.view.table.sort
        name = names[(names.index(now) + 1) % len(names)] if now in names else ""
        self._change_table(sort=name, descending=name != "NAME")
        self._forget_order()

    def reverse_order(self) -> None:
        self._change_table(descending=not self.view.table.descending)
        self._forget_order()

    def filter(self, text: str, is_typing: bool) -> None:
        self.view = replace(self.view, filter=text[:_FILTER_LENGTH], is_typing=is_typing)
        self.arrange()

    def open(self, box: Box | None, answer: Callable[[int], None] | None = None) -> None:
        """Lay a box over the screen, or take it away; `answer` gets the number of the choice."""
        self.view = replace(self.view, box=box)
        self._answer, self._take_text = answer, None

    def open_field(self, box: Box, take: Callable[[str], None]) -> None:
        """Lay a box with a field over the screen; `take` gets what was typed."""
        self.open(box)
        self._take_text = take

    def type_in_field(self, text: str) -> None:
        if self.view.box is not None:
            box = replace(self.view.box, text=text[:_FIELD_LENGTH])
            self.view = replace(self.view, box=box)

    def take_field(self) -> None:
        """What follows may open another box."""
        box, take = self.view.box, self._take_text
        self.open(None)
        if box is not None and take is not None:
            take(box.text)

    def move_in_box(self, by: int) -> None:
        if self.view.box is not None:
            self.view = replace(self.view, box=replace(self.view.box, at=self.view.box.move(by)))

    def answer(self, number: int) -> None:
        """Take a choice of the open box; what follows may open another."""
        answer = self._answer
        self.open(None)
        if answer is not None:
            answer(number)

    # --- inside

    def _change_table(self, **changes: object) -> None:
        table = replace(self.view.table, **changes)  # type: ignore[arg-type]
        self.view = replace(self.view, table=table)

    def _forget_order(self) -> None:
        """Sort exactly, without the margin that keeps rows from jumping."""
        self._all_entries = ()
        self.arrange()

    def _keep_choice(self, place: int) -> None:
        """Keep the chosen process; when it has gone, choose the one in its place."""
        keys = [entry.key for entry in self.entries]
        if keys and self.view.table.chosen not in keys:
            self._change_table(chosen=keys[min(place, len(keys) - 1)])

    def _note_event(self, event: Event) -> None:
        """An alert is a line of the log, and so is the end of every connected worker."""
        what = event.what
        if isinstance(what, EndedProcess):
            title, text = say_ended(what.name, what.pid, what.held, what.peak, what.verdict)
            is_bad = what.verdict is not None and not what.verdict.is_normal
            self.note(f"{title}: {text}", "warning" if is_bad else "")
        elif isinstance(what, Freed):
            if not what.asked_here or what.cause is not None:  # the controller notes our own
                self.note_freed(what)
        elif isinstance(what, Limited):
            pass  # noted by the controller
        elif isinstance(what, Alert) and what.kind == "ended":
            self.bells += 1  # the end itself is noted already
        elif isinstance(what, Alert):
            styles: dict[str, Style] = {"warning": "warning", "critical": "critical"}
            self.note(say_alert_in_a_line(what), styles.get(what.level, ""))
