"""`mpsbar top --host`: several computers on one screen, each as a row, and all their processes."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Footer, Input, Static

from mpsbar.core.host_readings import HostReading
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.columns import translate
from mpsbar.ui.process_table import FittedColumn, TableRow, build_rows, choose_columns
from mpsbar.ui.terminal.drawing import draw_load, make_text
from mpsbar.ui.terminal.driver import choose_driver
from mpsbar.ui.terminal.order import arrange, matches
from mpsbar.ui.terminal.screens import TextScreen
from mpsbar.ui.terminal.state import SORTS
from mpsbar.ui.terminal.table import Heads, SteadyTable
from mpsbar.ui.terminal.themes import DEFAULTS, THEMES, Palette, make_palette, theme_name
from mpsbar.ui.text import cells, wording
from mpsbar.ui.text.hosts import say_answering, say_condition, say_silence, say_since

_REFRESH_SECONDS = 0.5
_MOST_HOST_NAME = 24
_BAR = 10
_MEMORY, _GPU, _HELD, _COUNT = 15, 5, 9, 5
_LEAST_NOTE = 12
_OWN_ACTIONS = ("free", "free_all", "filter", "keep_filter", "sort", "show_all", "help")

# Of a host, one process by its pid and start, or with None all; returns what became of it.
Free = Callable[[str, int | None, float | None], str]


class HostTable(SteadyTable):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", _("Only this host"), key_display="⏎"),
    ]


class HostsApp(App[None]):
    """`run` returns when the person has quit. Nothing here waits for a host."""

    TITLE = "mpsbar"
    CSS = """
    Screen { background: $background; color: $foreground; }
    Static, DataTable { background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    #head { height: 1; padding: 0 1; }
    #hosts-box, #processes-box { border: round $border; border-title-color: $accent; border-title-style: bold; }
    #hosts-box { height: auto; max-height: 50%; min-height: 4; }
    #processes-box { height: 1fr; min-height: 4; }
    DataTable { height: auto; max-height: 100%; overflow-x: hidden; }
    DataTable:focus { background-tint: $foreground 0%; }
    DataTable > .datatable--header { background: $background; color: $quiet; text-style: bold; }
    DataTable > .datatable--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    DataTable > .datatable--hover { background: $panel; }
    DataTable:nocolor > .datatable--cursor { text-style: reverse; }
    DataTable:nocolor > .datatable--header { text-style: bold underline; }
    #filter { dock: bottom; height: 1; margin: 0 0 1 0; background: $panel; display: none; }
    ModalScreen { align: center middle; background: $background 60%; }
    .box { width: auto; max-width: 90%; min-width: 30; height: auto; max-height: 90%; border: round $accent; padding: 0 1; background: $background; }
    .box > Static, .box VerticalScroll, .box VerticalScroll > Static { width: auto; max-width: 100%; height: auto; }
    """  # noqa: E501
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "free", _("Free")),
        Binding("F", "free_all", _("Free all of this host")),
        Binding("slash", "filter", _("Filter"), key_display="/", priority=True),
        # Before the field gets it, or of "/text⏎f" typed fast the f would reach the field.
        Binding("enter", "keep_filter", show=False, priority=True),
        Binding("o", "sort", _("Sort")),
        Binding("escape", "show_all", _("All"), key_display="Esc"),
        Binding("question_mark", "help", _("Help"), key_display="?"),
        Binding("q", "quit", _("Quit")),
        Binding("ctrl+c", "quit", show=False, priority=True, system=True),
        Binding("ctrl+z", "suspend_process", show=False, system=True),
    ]

    def __init__(
        self, read: Callable[[], list[HostReading]], free: Free, settings: Settings
    ) -> None:
        no_colour = True if os.environ.get("NO_COLOR") else None
        super().__init__(driver_class=choose_driver(), ansi_color=no_colour)
        self._read, self._free = read, free
        self._readings: list[HostReading] = []
        self._rows: tuple[TableRow, ...] = ()
        self._only = ""  # a host; "": the processes of all
        self._selected = ""  # the key of a process's row
        self._sort = ""
        self._filter = ""
        self._palette: Palette | None = None
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = theme_name(settings.theme)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return DEFAULTS

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Vertical(id="hosts-box"):
            yield HostTable(id="hosts")
        with Vertical(id="processes-box"):
            yield HostTable(id="processes")
        yield Input(id="filter", placeholder=_("filter: Enter keeps it, Esc shows all"))
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):  # not on the main thread: a test
            loop.add_signal_handler(signal.SIGTERM, self.exit)
        self.query_one("#hosts-box").border_title = _("hosts")
        self.query_one("#processes", SteadyTable).focus()
        self.theme_changed_signal.subscribe(self, self._forget_palette)
        self.set_interval(_REFRESH_SECONDS, self._take)
        self.call_after_refresh(self._take)

    def on_resize(self, _event: events.Resize) -> None:
        self.call_after_refresh(self._show)

    # --- what a person does

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.data_table.id == "processes" and event.row_key.value:
            self._selected = event.row_key.value

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        self.action_only()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._filter = event.value
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Behind the help nothing is done.
        if action in _OWN_ACTIONS and len(self.screen_stack) > 1:
            return False
        if action == "keep_filter":
            return self.focused is not None and self.focused.id == "filter"
        return super().check_action(action, parameters)

    def action_keep_filter(self) -> None:
        """At once: what was typed so far may still be on its way to the field."""
        self.screen.set_focus(self.query_one("#processes", SteadyTable))

    def action_only(self) -> None:
        """Show the processes of the host under the cursor alone; once more: of all."""
        host = self._find_host()
        self._only = "" if self._only == host else host
        self._show()

    def action_show_all(self) -> None:
        self.query_one("#filter", Input).value = ""
        self._leave_filter()
        self._only = ""
        self._show()

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        self.screen.set_focus(field)

    def action_sort(self) -> None:
        """By the next of the main columns, and after the last by host."""
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self._show()

    def action_free(self) -> None:
        row = next((row for row in self._rows if row.key == self._selected), None)
        if row is not None and row.process is not None:
            process = row.process
            self._start_free(row.cells["HOST"], process.pid, process.started or None)

    def action_free_all(self) -> None:
        if host := self._find_host():
            self._start_free(host, None, None)

    def action_help(self) -> None:
        lines = (
            _("f     free the selected process's cache, on its host"),
            _("F     free all caches of that host"),
            _("⏎     only that host's processes; again: of all hosts"),
            _("/     show only rows with some text; Esc shows all"),
            _("o     sort by the next column"),
            _("Tab   from the processes to the hosts, and back"),
            _("^p    find a command, or a theme, by its name"),
            _("q     quit"),
        )
        text = Text("\n").join(make_text(line) for line in lines)
        self.push_screen(TextScreen(_("mpsbar top"), lambda: text))

    def _find_host(self) -> str:
        """Of the table that has the focus, the host under its cursor."""
        table = self.focused if isinstance(self.focused, SteadyTable) else None
        if table is not None and table.id == "hosts":
            return table.cursor_key
        return self._selected.partition("/")[0]

    def _leave_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = bool(field.value)
        self.screen.set_focus(self.query_one("#processes", SteadyTable))

    def _start_free(self, host: str, pid: int | None, started: float | None) -> None:
        silent = [each for each in self._read() if each.host == host and each.problem is not None]
        if silent:  # its rows are old: the pid may be another process's by now
            text = f"{host}: {say_silence(silent[0])}"
            self.notify(text, severity="warning", markup=False)
            return

        def run() -> None:
            text = self._free(host, pid, started)
            with contextlib.suppress(RuntimeError):  # it has ended
                self.call_from_thread(self.notify, text, markup=False)

        self.notify(_("{host}: freeing…").format(host=host), timeout=2, markup=False)
        # `mpsbar top` does not wait for threads of this name when it ends.
        threading.Thread(target=run, name="mpsbar-action-free", daemon=True).start()

    # --- drawing

    def _forget_palette(self, _theme: object) -> None:
        self._palette = None
        self._show()

    def _take(self) -> None:
        readings = self._read()
        if readings != self._readings:
            self._readings = readings
            self._show()

    def _show(self) -> None:
        if not self.is_running or not self.size.width or len(self.screen_stack) > 1:
            return
        if self._palette is None:
            self._palette = make_palette(self.theme_variables, not self.no_color)
        head = make_text(say_answering(self._readings), self._palette.style("quiet"))
        title = make_text("mpsbar  ", self._palette.style("accent", bold=True))
        self.query_one("#head", Static).update(Text.assemble(title, head))
        self._show_hosts(self._palette)
        self._show_processes(self._palette)

    def _show_hosts(self, palette: Palette) -> None:
        table = self.query_one("#hosts", SteadyTable)
        width = self.query_one("#hosts-box").content_size.width - 2
        name = self._name_width
        fixed = name + _BAR + _MEMORY + _GPU + _HELD + _COUNT + 6
        heads: Heads = [
            ("HOST", translate("HOST"), name), ("BAR", "", _BAR),
            ("MEMORY", translate("MEMORY"), _MEMORY),
            ("GPU", "GPU".rjust(_GPU), _GPU),
            ("HELD", cells.fit(translate("HELD"), _HELD, to_right=True), _HELD),
            ("RUNS", cells.fit(translate("RUNS"), _COUNT, to_right=True), _COUNT),
            ("NOTE", translate("NOTE"), max(width - fixed, _LEAST_NOTE)),
        ]  # fmt: skip
        drawn = {reading.host: _draw_host(reading, heads, palette) for reading in self._readings}
        if width > 0:
            table.show_cells(heads, drawn, table.cursor_key or next(iter(drawn), ""))

    def _show_processes(self, palette: Palette) -> None:
        table = self.query_one("#processes", SteadyTable)
        box = self.query_one("#processes-box")
        box.border_title = _("processes of {host}").format(host=self._only or _("all hosts"))
        rows = [row for reading in self._readings for row in self._build_rows(reading)]
        rows = [row for row in rows if _fits(row, self._filter)]
        self._rows = arrange(rows, self._sort, self._sort != "NAME")
        keys = [row.key for row in self._rows]
        if self._selected not in keys:
            self._selected = keys[0] if keys else ""
        width = box.content_size.width - self._name_width - 3
        if width <= 0:
            return
        columns = choose_columns(self._rows, Snapshot(0.0), width, "status", gap=1, is_steady=True)
        heads: Heads = [("HOST", translate("HOST"), self._name_width)]
        heads += [(column.key, _head(column, self._sort), column.width) for column in columns]
        silent = {reading.host for reading in self._readings if reading.problem is not None}
        drawn = {
            row.key: _draw_process(row, heads[0][2], columns, row.cells["HOST"] in silent, palette)
            for row in self._rows
        }
        table.show_cells(heads, drawn, self._selected)

    def _build_rows(self, reading: HostReading) -> Sequence[TableRow]:
        """Its processes; of a host that is silent the last that are known, and since when."""
        if reading.status is None or (self._only and reading.host != self._only):
            return ()
        rows = []
        for row in build_rows(reading.status.snapshot):
            words = row.cells | {"HOST": reading.host}
            if reading.problem is not None:
                words["NOTE"] = say_since(reading)
            rows.append(replace(row, key=f"{reading.host}/{row.key}", cells=words))
        return rows

    @property
    def _name_width(self) -> int:
        names = [cells.width(reading.host) for reading in self._readings]
        return min(max([4, *names]), _MOST_HOST_NAME)


def _fits(row: TableRow, text: str) -> bool:
    return matches(row, text) or text.lower() in row.cells["HOST"].lower()


def _head(column: FittedColumn, sort: str) -> str:
    mark = ("▲" if sort == "NAME" else "▼") if column.key == sort else ""
    return column.mark_head(mark)


def _draw_host(reading: HostReading, heads: Heads, palette: Palette) -> list[Text]:
    name, note = heads[0][2], heads[-1][2]
    condition = say_condition(reading)
    level = "warning" if reading.problem is not None else "quiet"
    if reading.status is not None and reading.status.level == "critical":
        level = "error"
    elif reading.status is not None and reading.status.level == "warning":
        level = "warning"
    words = make_text(cells.fit(condition, note), palette.style(level))
    title = make_text(cells.fit(reading.host, name), "bold")
    if reading.status is None:
        empty = [make_text("") for _head in heads[1:-1]]
        return [title, *empty, words]
    snapshot = reading.status.snapshot
    machine = snapshot.machine
    total, available = machine.memory_total, machine.memory_available
    used = None if total is None or available is None else max(total - available, 0)
    style = palette.style("quiet") if reading.problem is not None else ""
    bar = make_text("░" * _BAR, palette.style("footprint"))
    if used is not None and total and reading.problem is None:
        bar = draw_load(used / total, _BAR, palette)
    memory = wording.UNKNOWN if used is None else wording.part(used, total)
    count = len(snapshot.workers) + len(snapshot.unconnected)
    return [
        title,
        bar,
        make_text(cells.fit(memory, _MEMORY), style),
        make_text(cells.fit(wording.percent(machine.gpu.utilization), _GPU, True), style),
        make_text(cells.fit(wording.size(snapshot.held), _HELD, True), style),
        make_text(cells.fit(str(count), _COUNT, True), style),
        words,
    ]


def _draw_process(
    row: TableRow, width: int, columns: Sequence[FittedColumn], is_silent: bool, palette: Palette
) -> list[Text]:
    style = palette.style("quiet") if is_silent or row.process is None else ""
    host = make_text(cells.fit(row.cells["HOST"], width), palette.style("accent"))
    drawn = [make_text(column.fit(row.cells.get(column.key, "")), style) for column in columns]
    if is_silent and columns and columns[-1].key == "NOTE":
        drawn[-1].stylize(palette.style("warning"))
    return [host, *drawn]
