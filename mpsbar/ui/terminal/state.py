"""What the terminal shows beside the snapshot: order, selection, filter, log. No textual."""

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from mpsbar.core.actions import Freed, Limited
from mpsbar.core.events import Alert, EndedProcess, Event
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import ProcessSeries
from mpsbar.ui.process_rows import build_actions
from mpsbar.ui.process_table import INDENT, TableRow, build_rows
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.terminal.chart import ChartMark
from mpsbar.ui.terminal.order import TableOrder, arrange, matches
from mpsbar.ui.text import endings, outcomes, wording
from mpsbar.ui.text.alerts import say_alert_in_a_line, say_ended

_EVERY_ROW = 10_000  # a terminal scrolls
_LOG_LINES = 200
_MAX_ENDED = 5
# Processes whose chart is kept after their end.
_MAX_SERIES = 60
_MAX_MARKS = 50


@dataclass(frozen=True, slots=True)
class Note:
    """One line of the log."""

    time: str
    text: str
    level: str = ""  # "ok", "warning", "critical"


class TerminalState(TableOrder):
    """Used on the main thread only."""

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        super().__init__()
        self.ui_state = UiState(
            is_clickable=True, settings=settings, most=_EVERY_ROW,
            home=str(Path.home()),
        )  # fmt: skip
        self.snapshot = snapshot
        self.total = 0  # of the rows, with those that the filter hides
        self.wants_selection = True  # False: none selected, to see the machine
        self.as_tree = True
        self.notes: deque[Note] = deque(maxlen=_LOG_LINES)
        self.note_count = 0  # of all notes, also those that are no longer kept
        self.bells = 0  # to ring for processes that ended and were watched
        self._all_rows: tuple[TableRow, ...] = ()
        self._ended: dict[str, EndedProcess] = {}  # by the key of the row
        self._taken: Snapshot | None = None
        self._last_event = 0  # the number of the last that was shown
        self._series: dict[tuple[int, float | None], ProcessSeries] = {}
        self._marks: dict[int | None, deque[ChartMark]] = {}  # by pid; None: of the machine

    def update(self, snapshot: Snapshot) -> None:
        """Show another snapshot; its events are noted once."""
        if snapshot is not self._taken:
            self.snapshot = self._taken = snapshot
            self._keep_series(snapshot)
            for event in snapshot.events_after(self._last_event):
                self._last_event = event.number
                self._mark(event)
                self._note_event(event)
        self.arrange()

    def arrange(self) -> None:
        """Build the rows anew: after a snapshot, or another order, filter or selection."""
        before = [row.key for row in self._all_rows]
        running = build_rows(self.snapshot, self.as_tree)
        ordered = arrange(running, self.sort, self.descending, before)
        self._all_rows = (*ordered, *self._build_ended())
        positions = {row.key: position for position, row in enumerate(self.rows)}
        self.rows = tuple(row for row in self._all_rows if matches(row, self.filter))
        self.total = len(self._all_rows)
        self._keep_selection(positions.get(self.selected, 0))

    # --- what is selected

    @property
    def selected_name(self) -> str:
        return "" if self.row is None else self.row.cells["NAME"].removeprefix(INDENT)

    @property
    def ended(self) -> EndedProcess | None:
        return self._ended.get(self.selected)

    @property
    def actions(self) -> tuple[Row, ...]:
        """What can be done with the selected process now."""
        process = self.process
        return () if process is None else build_actions(process, self.snapshot, self.ui_state)

    @property
    def series(self) -> ProcessSeries | None:
        """The last minutes of the selected process, also after its end."""
        process, ended = self.process, self.ended
        if process is not None:
            return self.snapshot.process_series.get(process.pid)
        if ended is None:
            return None
        return self._series.get((ended.pid, ended.started)) or self._series.get((ended.pid, None))

    @property
    def marks(self) -> tuple[ChartMark, ...]:
        who = self.process or self.ended
        return tuple(self._marks.get(None if who is None else who.pid, ()))

    # --- what a person does

    def select(self, key: str) -> None:
        self.selected, self.wants_selection = key, bool(key)

    def toggle_tree(self) -> None:
        self.as_tree = not self.as_tree
        self.arrange()

    def note(self, text: str, level: str = "") -> None:
        self.note_count += 1
        self.notes.append(Note(wording.clock(time.time(), seconds=True), text, level))

    # --- inside

    def forget_order(self) -> None:
        self._all_rows = ()
        self.arrange()

    def _keep_selection(self, place: int) -> None:
        """Keep the selected process, also after its end; when its row has gone, take the one in its
        place."""
        keys = [row.key for row in self.rows]
        if self.selected in keys or not self.wants_selection:
            return
        pid = self.selected.removeprefix("process-")
        ended = [key for key, end in self._ended.items() if str(end.pid) == pid and key in keys]
        in_place = keys[min(place, len(keys) - 1)] if keys else ""
        self.selected = ended[0] if ended else in_place

    def _build_ended(self) -> list[TableRow]:
        rows, self._ended = [], {}
        for end in self.snapshot.ended[:_MAX_ENDED]:
            key = f"ended-{end.pid}-{int(end.started or end.ended)}"
            note = endings.describe_end(end, self.snapshot.time)
            cells = {"PID": str(end.pid), "NAME": end.name, "NOTE": note}
            self._ended[key] = end
            rows.append(TableRow(key, None, cells, {}))
        return rows

    def _keep_series(self, snapshot: Snapshot) -> None:
        for pid, series in snapshot.process_series.items():
            self._series.pop((pid, series.started), None)
            self._series[pid, series.started] = series
        while len(self._series) > max(_MAX_SERIES, len(snapshot.process_series)):
            del self._series[next(iter(self._series))]

    def _mark(self, event: Event) -> None:
        what = event.what
        if isinstance(what, Freed) and what.state == "done":
            self._add_mark(what.pid, ChartMark(event.time, "▲"))
        elif isinstance(what, Alert) and what.kind in ("raised", "worse"):
            self._add_mark(what.pid, ChartMark(event.time, "!"))

    def _add_mark(self, pid: int | None, mark: ChartMark) -> None:
        self._marks.setdefault(pid, deque(maxlen=_MAX_MARKS)).append(mark)

    def _note_event(self, event: Event) -> None:
        """Adds a line to the log for an alert, and for the end of every connected worker."""
        what = event.what
        if isinstance(what, EndedProcess):
            title, text = say_ended(what.name, what.pid, what.held, what.peak, what.verdict)
            is_bad = what.verdict is not None and not what.verdict.is_normal
            self.note(f"{title}: {text}", "warning" if is_bad else "")
        elif isinstance(what, Freed):
            if not what.asked_here or what.cause is not None:  # the controller notes our own
                name = self.snapshot.names.get(what.pid, what.name)
                level = "ok" if what.state == "done" else "warning"
                self.note(f"{name}: {outcomes.say_freed(what)}", level)
        elif isinstance(what, Limited):
            pass  # noted by the controller
        elif isinstance(what, Alert) and what.kind == "ended":
            self.bells += 1  # the end itself is noted already
        elif isinstance(what, Alert):
            self.note(say_alert_in_a_line(what), what.level)
