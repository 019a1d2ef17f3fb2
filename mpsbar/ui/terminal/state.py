"""What the terminal knows beside the snapshot: order, choice, filter, log. No textual in it."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from mpsbar.core.actions import Freed
from mpsbar.core.events import Alert, EndedProcess, Event
from mpsbar.core.naming import printable
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.columns import COLUMNS
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Menu
from mpsbar.ui.terminal.frame import Style
from mpsbar.ui.terminal.overlays import Box
from mpsbar.ui.terminal.screen import Note, Scene, View, table_rows
from mpsbar.ui.terminal.sort_order import arrange
from mpsbar.ui.terminal.table_rows import Entry, build_entries
from mpsbar.ui.text import outcomes
from mpsbar.ui.text.alerts import say_alert, say_ended
from mpsbar.ui.ui_state import UiState

_EVERY_ROW = 10_000  # a terminal scrolls
_LOG_LINES = 200
_FILTER_LENGTH = 60


class TerminalState:
    """On the main thread alone. `scene` is what there is to draw."""

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        self.ui_state = UiState(is_app=True, settings=settings, most=_EVERY_ROW)
        self.view = View()
        self._answer: Callable[[int], None] | None = None  # of the open box
        self.snapshot = snapshot
        self._taken: Snapshot | None = None
        self.bells = 0  # for those whose end was asked to be told
        self._last_event = 0  # the number of the last that was shown
        self._log: deque[Note] = deque(maxlen=_LOG_LINES)
        self._everyone: tuple[Entry, ...] = ()
        self.entries: tuple[Entry, ...] = ()
        self.menu: Menu = build_menu(snapshot, self.ui_state)

    def take(self, snapshot: Snapshot) -> None:
        """A new look; the same one again tells nothing new."""
        if snapshot is not self._taken:
            self.snapshot = self._taken = snapshot
            for event in snapshot.events_after(self._last_event):
                self._last_event = event.number
                self._tell(event)
        self.arrange()

    def arrange(self) -> None:
        """After a look, or after someone chose another order, filter or row."""
        self.menu = build_menu(self.snapshot, self.ui_state)
        rows = build_entries(self.menu.sections[1], self.snapshot)
        shown = self.view.shown
        before = [entry.key for entry in self._everyone]
        self._everyone = arrange(rows, shown.sort, shown.descending, before)
        wanted = self.view.filter
        places = {entry.key: place for place, entry in enumerate(self.entries)}
        self.entries = tuple(entry for entry in self._everyone if entry.matches(wanted))
        self._keep_choice(places.get(shown.chosen, 0))

    def scene(self) -> Scene:
        chosen = self.chosen
        track = self.snapshot.process_series.get(chosen.pid or 0) if chosen is not None else None
        return Scene(
            self.snapshot, self.menu, self.entries, len(self._everyone), track,
            tuple(self._log), self.view,
        )  # fmt: skip

    @property
    def chosen(self) -> Entry | None:
        wanted = self.view.shown.chosen
        return next((entry for entry in self.entries if entry.key == wanted), None)

    def note(self, text: str, style: Style = "") -> None:
        self._log.append(Note(time.strftime("%H:%M:%S"), text, style))

    def note_freed(self, outcome: Freed) -> None:
        name = self.snapshot.names.get(outcome.pid, outcome.name)
        style: Style = "ok" if outcome.state == "done" else "warning"
        self.note(f"{printable(name)}: {outcomes.freed(outcome)}", style)

    # --- what a person does

    def choose(self, key: str) -> None:
        self._show(chosen=key)

    def move(self, by: int) -> None:
        keys = [entry.key for entry in self.entries]
        if not keys:
            return
        at = keys.index(self.view.shown.chosen) if self.view.shown.chosen in keys else 0
        self.choose(keys[min(max(at + by, 0), len(keys) - 1)])

    def scroll(self, width: int, height: int) -> None:
        """So far that the chosen row is seen."""
        rows = table_rows(self.scene(), width, height)
        keys = [entry.key for entry in self.entries]
        at = keys.index(self.view.shown.chosen) if self.view.shown.chosen in keys else 0
        offset = min(max(self.view.shown.offset, at - rows + 1), at)
        self._show(offset=max(min(offset, len(keys) - rows), 0))

    def sort_by(self, name: str) -> None:
        """The same column once more turns it round."""
        shown = self.view.shown
        column = next(one for one in COLUMNS if one.key == name)
        is_word = column.number is None or name == "PID"
        turned = not shown.descending if name == shown.sort else not is_word
        self._show(sort=name, descending=turned)
        self._forget_order()

    def sort_next(self) -> None:
        """Through the columns, and back to the order of the menu."""
        names = ("", "HELD", "CACHED", "FOOTPRINT", "NAME")
        now = self.view.shown.sort
        name = names[(names.index(now) + 1) % len(names)] if now in names else ""
        self._show(sort=name, descending=name != "NAME")
        self._forget_order()

    def reverse_order(self) -> None:
        self._show(descending=not self.view.shown.descending)
        self._forget_order()

    def filter(self, text: str, is_typing: bool) -> None:
        self.view = replace(self.view, filter=text[:_FILTER_LENGTH], is_typing=is_typing)
        self.arrange()

    def open(self, box: Box | None, answer: Callable[[int], None] | None = None) -> None:
        """Lay a box over the screen, or take it away; `answer` gets the number of the choice."""
        self.view = replace(self.view, box=box)
        self._answer = answer

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

    def _show(self, **changes: object) -> None:
        shown = replace(self.view.shown, **changes)  # type: ignore[arg-type]
        self.view = replace(self.view, shown=shown)

    def _forget_order(self) -> None:
        """What was asked anew is sorted anew, to the last byte."""
        self._everyone = ()
        self.arrange()

    def _keep_choice(self, place: int) -> None:
        """The same process; when it has gone, the one in its place."""
        keys = [entry.key for entry in self.entries]
        if keys and self.view.shown.chosen not in keys:
            self._show(chosen=keys[min(place, len(keys) - 1)])

    def _tell(self, event: Event) -> None:
        """An alert is a line of the log, and so is the end of every connected worker."""
        what = event.what
        if isinstance(what, EndedProcess):
            title, text = say_ended(what.name, what.pid, what.held, what.peak)
            self.note(f"{title}: {text}")
        elif isinstance(what, Freed):
            if not what.asked_here:  # of our own the action has told
                self.note_freed(what)
        elif isinstance(what, Alert) and what.kind == "ended":
            self.bells += 1  # its line is that of the end itself
        elif isinstance(what, Alert):
            styles: dict[str, Style] = {"warning": "warning", "critical": "critical"}
            self.note(": ".join(say_alert(what)), styles.get(what.level, ""))


def complain(state: TerminalState, complaints: Sequence[str]) -> None:
    for complaint in complaints:
        state.note(complaint, "warning")
