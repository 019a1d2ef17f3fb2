"""The terminal app: shows each snapshot, and hands keys and clicks on. Never waits for a worker."""

import contextlib
import gc
from collections.abc import Callable, Iterable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Static

from mpsbar.core.actions import ChangeSetting
from mpsbar.core.settings import LoadedSettings
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.summary import build_rows as build_dtype_rows
from mpsbar.dtypes.summary import say_headline
from mpsbar.language import _
from mpsbar.monitor import Monitor
from mpsbar.ui.columns import explain_counters
from mpsbar.ui.controller import Controller
from mpsbar.ui.terminal.base_app import BaseApp, FilterField
from mpsbar.ui.terminal.detail import (
    ChartView,
    build_chart,
    build_machine_chart,
    render_facts,
    render_title,
)
from mpsbar.ui.terminal.drawing import make_text, make_wrapped
from mpsbar.ui.terminal.front_end import NoteLog, TerminalFrontEnd
from mpsbar.ui.terminal.head import build_gauges, render_gauges, render_head
from mpsbar.ui.terminal.keys import KEYS, KeyLine, build_bindings, find_actions, list_help
from mpsbar.ui.terminal.lines_view import LinesView
from mpsbar.ui.terminal.row_actions import RowActions
from mpsbar.ui.terminal.screens import DetailScreen, LiveScreen, TableScreen, TextScreen
from mpsbar.ui.terminal.state import TerminalState
from mpsbar.ui.terminal.table import ProcessTable, say_why_empty

_WIDE = 110
_SETTLED_SECONDS = 1.0
_COLLECT_AFTER = 10_000  # objects; a refresh makes some thousand, nearly all without cycles


class TerminalApp(BaseApp):
    """The app of `mpsbar top`; `run` returns when the person has quit."""

    CSS_PATH = ["common.tcss", "top.tcss"]  # noqa: RUF012 - as textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        *build_bindings(KEYS),
        # Replaces textual's own binding, whose word is always English.
        Binding("ctrl+p", "command_palette", _("palette"), show=False, system=True, priority=True),
    ]

    KEY_ACTIONS = find_actions(KEYS)

    class Ticked(Message):
        pass

    class Called(Message):
        """A function that another thread wants to be called here."""

        def __init__(self, function: Callable[[], None]) -> None:
            super().__init__()
            self.function = function

    def __init__(self, monitor: Monitor, loaded: LoadedSettings) -> None:
        super().__init__(loaded.settings)
        self._monitor = monitor
        self.state: TerminalState = TerminalState(monitor.latest, loaded.settings)
        self._controller = Controller(monitor, TerminalFrontEnd(self), self.state.ui_state)
        self._row_actions = RowActions(self, self.state, self._controller)
        self._offered: frozenset[str] = frozenset()  # actions that work on the selected row
        self._shown_reason = ""  # why there are no processes, as it is shown
        for complaint in loaded.complaints:
            self.state.note(complaint, "warning")

    def compose(self) -> ComposeResult:
        yield LinesView(id="head")
        yield LinesView(id="gauges")
        with Vertical(id="processes"):
            yield ProcessTable(id="table")
            yield Static(id="empty")
        with Container(id="panels"):
            with Vertical(id="left"):
                with Vertical(id="memory"):
                    yield ChartView(id="chart")
                with Vertical(id="machine"):
                    yield ChartView(id="machine-chart")
            with Vertical(id="right"):
                with VerticalScroll(id="about", can_focus=False):
                    yield LinesView(id="facts", is_selectable=True)
                yield NoteLog(id="log")
        yield FilterField()
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#processes").border_title = _("processes")
        self.query_one("#memory").border_title = _("memory")
        self.query_one("#machine").border_title = _("machine")
        self.query_one("#about").border_title = _("about")
        self.query_one("#log").border_title = _("events")
        self.main_screen.set_focus(self.main_table)
        self.call_after_refresh(self._take)
        if not self.is_headless:  # a test
            self.set_timer(_SETTLED_SECONDS, _collect_less)

    # --- from other threads

    def on_tick(self, _snapshot: Snapshot) -> None:
        """`Monitor.start` has it called on the ticking thread."""
        self._post(self.Ticked())

    def call_soon(self, function: Callable[[], None]) -> None:
        self._post(self.Called(function))

    def _post(self, message: Message) -> None:
        with contextlib.suppress(RuntimeError):  # it has not started, or has ended
            self.post_message(message)

    # --- what happens

    def on_terminal_app_ticked(self, _message: Ticked) -> None:
        self._controller.follow_settings()
        self._take()

    def on_terminal_app_called(self, message: Called) -> None:
        message.function()
        self._take()

    def on_unmount(self) -> None:
        self._controller.close()

    def on_resize(self, event: events.Resize) -> None:
        # `self.size` is still the one before.
        key_line = self.main_screen.query_one(KeyLine)
        key_line.show_command_palette = event.size.width >= _WIDE
        self.refresh_bindings()
        self.call_after_refresh(self._rewrite_log)
        self.call_after_refresh(self._show)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.data_table.id == "table" and event.row_key.value:
            self.state.select(event.row_key.value)
            self._show()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.data_table.id == "table":
            self.action_detail()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        if event.data_table.id == "table" and event.column_key.value:
            self.state.sort_by(event.column_key.value)
            self._show()

    def on_key(self, event: events.Key) -> None:
        """Lets the arrows select again where nothing is selected."""
        if self.is_filtering:
            return
        if event.key in ("up", "down", "j", "k") and not self.state.selected:
            self.state.wants_selection = True
            self.state.arrange()
            self._show()

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Returns whether a key is offered: only what works on the selected row is."""
        if not super().check_action(action, parameters):
            return False
        if action == "row":
            return str(parameters[0]) in self._offered
        if action == "menu" and parameters[0] == "free-all":
            return bool(self.state.snapshot.workers)
        if action == "actions":
            return bool(self._offered - {"free-all"})  # which needs no selected row
        return True

    def action_row(self, name: str) -> None:
        """Do what a row of the selected process's menu stands for."""
        self._sync_selection()
        self._row_actions.do_kind(name)

    def action_menu(self, key: str) -> None:
        """Do what a row of the menu stands for."""
        self._row_actions.do_key(key)

    def action_actions(self) -> None:
        self._sync_selection()
        self._row_actions.choose(self.state.selected_name, self.state.actions)

    def action_detail(self) -> None:
        self._sync_selection()
        self.push_screen(DetailScreen(self._draw_detail))

    def action_dtypes(self) -> None:
        probe = self.state.snapshot.dtypes
        title = _("dtypes: {headline}").format(headline=say_headline(probe))
        if probe is None or not probe.cells:
            text = make_text(_("p runs the probe, which usually takes less than a minute."))
            self.push_screen(TextScreen(title, lambda: text))
            return
        rows = [
            (row.dtype, row.text.removeprefix(row.dtype).strip(), row.why)
            for row in build_dtype_rows(probe)
        ]
        about = f"{title} (torch {probe.torch} · {probe.device})"
        self.push_screen(TableScreen(about, (_("dtype"), _("verdict"), _("why")), rows))

    @property
    def main_table(self) -> ProcessTable:
        return self.main_screen.query_one(ProcessTable)

    def set_filter(self, text: str) -> None:
        self.state.set_filter(text)
        self._show()

    def action_deselect(self) -> None:
        """Esc clears the filter, or else the selection; with neither it selects the first row."""
        if self.filter_field.display:
            self.filter_field.close()
        else:
            first = self.state.rows[0].key if self.state.rows else ""
            self.state.select("" if self.state.selected else first)
            self._show()

    def action_tree(self) -> None:
        self.state.toggle_tree()
        self._show()

    def action_help(self) -> None:
        self.show_help([*list_help(KEYS), "", *explain_counters(), _("?: unknown")])

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette: what textual has, and every action that works now."""
        yield from super().get_system_commands(screen)
        yield from self._row_actions.list_commands()

    def _sync_selection(self) -> None:
        if key := self.main_table.moved_to:
            self.state.select(key)

    # --- drawing

    def note(self, text: str, level: str = "") -> None:
        """Add a line to the log; where it would be cut off, show it as a notification too."""
        self.state.note(text, level)
        if self.main_screen.query_one(NoteLog).is_too_small_for(text) and self.is_running:
            severity = "warning" if level in ("warning", "critical") else "information"
            self.notify(text, severity=severity, markup=False)  # type: ignore[arg-type]

    def take_ui_state(self) -> None:
        self._monitor.apply(self._controller.ui_state.settings)
        self.state.ui_state = self._controller.ui_state
        self.state.arrange()
        self._show()

    def take_theme(self, theme: object) -> None:
        super().take_theme(theme)
        self._rewrite_log()

    def save_theme(self, name: str) -> None:
        self._controller.perform(ChangeSetting("theme", name))

    def _take(self) -> None:
        self.state.update(self._monitor.latest)
        if self.state.bells:
            self.state.bells = 0
            self.bell()
        self._show()

    def _show(self) -> None:
        """Brings every widget up to date; what has not changed is not drawn."""
        if not self.is_running or not self.size.width or not self.main_screen.is_mounted:
            return
        self._sync_selection()
        state, palette, main = self.state, self.palette, self.main_screen
        snapshot = state.snapshot
        head, gauges = main.query_one("#head", LinesView), main.query_one("#gauges", LinesView)
        head.show_lines(render_head(snapshot, *head.size, palette))
        if gauges.size.height:
            gauges.show_lines(render_gauges([*build_gauges(snapshot)], *gauges.size, palette))
        table, empty = main.query_one(ProcessTable), main.query_one("#empty", Static)
        words = say_why_empty(state)
        empty.display, table.display = bool(words), bool(state.rows)
        if words != self._shown_reason:
            self._shown_reason = words
            empty.update(make_wrapped(words))
        room = main.query_one("#processes").content_size.width
        if state.rows and room:
            scrolls = table.max_scroll_y > 0 and table.show_vertical_scrollbar
            table.show(state, palette, room - (1 if scrolls else 0) - 1)
        self._show_detail(main)
        main.query_one(NoteLog).show(state, palette)
        self._refresh_keys()
        if isinstance(self.screen, LiveScreen):
            self.screen.show()

    def _show_detail(self, main: Screen[object]) -> None:
        if main.query_one("#panels").size.height:
            chart, facts = main.query_one("#chart", ChartView), main.query_one("#facts", LinesView)
            chart.show(
                render_title(self.state, self.palette), build_chart(self.state), self.palette
            )
            machine = main.query_one("#machine-chart", ChartView)
            if machine.size.height:
                title = render_title(self.state, self.palette, of_machine=True)
                machine.show(title, build_machine_chart(self.state), self.palette)
            if facts.size.width:
                facts.show_lines(render_facts(self.state, self.palette, facts.size.width))

    def _draw_detail(self, chart: ChartView, facts: LinesView) -> None:
        chart.show(render_title(self.state, self.palette), build_chart(self.state), self.palette)
        facts.show_lines(render_facts(self.state, self.palette, max(facts.size.width, 20)))

    def _rewrite_log(self) -> None:
        self.main_screen.query_one(NoteLog).rewrite(self.state, self.palette)

    def _refresh_keys(self) -> None:
        offered = self._row_actions.offered
        if offered != self._offered:
            self._offered = offered
            self.refresh_bindings()


def _collect_less() -> None:
    """Excludes all present objects from garbage collection: they stay until the end."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
