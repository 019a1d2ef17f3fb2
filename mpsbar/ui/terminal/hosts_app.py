"""`mpsbar top --host`: several computers on one screen, each as a row, and all their processes."""

import contextlib
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Static

from mpsbar.core.errors import UserError
from mpsbar.core.host_readings import HostReading
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.language import _
from mpsbar.system.settings_file import write_setting
from mpsbar.ui.columns import translate
from mpsbar.ui.process_table import TableRow, choose_columns
from mpsbar.ui.terminal.base_app import BaseApp, FilterField
from mpsbar.ui.terminal.detail import ChartView, build_chart, render_title
from mpsbar.ui.terminal.drawing import make_text, make_wrapped
from mpsbar.ui.terminal.hosts_state import HostsState
from mpsbar.ui.terminal.hosts_table import (
    HostTable,
    choose_height,
    draw_host,
    fit_columns,
    say_none,
)
from mpsbar.ui.terminal.keys import HOST_KEYS, KeyLine, build_bindings, find_actions, list_help
from mpsbar.ui.terminal.table import SteadyTable, build_headers, draw_row
from mpsbar.ui.text import cells
from mpsbar.ui.text.hosts import say_answering, say_silence

_Source = TypeVar("_Source", HostReading, TableRow)
_REFRESH_SECONDS = 0.5
_MAX_HOST_NAME = 24

# (host, pid, start): frees one process, or all if pid is None. Returns the outcome as text.
FreeOnHost = Callable[[str, int | None, float | None], str]
# Lets ssh ask on the terminal, which is free meanwhile; returns whether it connected.
Ask = Callable[[str], bool]


class HostsApp(BaseApp):
    """The app of `top --host`. Nothing in it waits for a host."""

    CSS_PATH = ["common.tcss", "hosts.tcss"]  # noqa: RUF012 - as textual declares it
    BINDINGS: ClassVar[list[BindingType]] = build_bindings(HOST_KEYS)
    KEY_ACTIONS = find_actions(HOST_KEYS)

    def __init__(
        self,
        read: Callable[[], list[HostReading]],
        free: FreeOnHost,
        settings: Settings,
        ask: Ask = lambda _host: False,
    ) -> None:
        super().__init__(settings)
        self._read, self._free, self._ask = read, free, ask
        self.state: HostsState = HostsState()
        self._announced: set[str] = set()  # hosts whose question of ssh was announced
        self._drawn: dict[str, tuple[object, object, list[Text]]] = {}  # of each row
        self._empty: dict[int, list[Text]] = {}  # the cells of a row that is not to be seen
        self._none = ""  # why there are no processes, as it is shown
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="mpsbar-write")

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Vertical(id="hosts-box"):
            yield HostTable(id="hosts")
        with Vertical(id="processes-box"):
            yield HostTable(id="processes")
            yield Static(id="empty")
        with Vertical(id="memory"):
            yield ChartView(id="chart")
        yield FilterField()
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#hosts-box").border_title = _("hosts")
        self.main_screen.set_focus(self.main_table)
        self.watch(self.main_table, "scroll_y", self._show_scrolled, init=False)
        self.set_interval(_REFRESH_SECONDS, self._take)
        self.call_after_refresh(self._take)

    def on_resize(self, _event: events.Resize) -> None:
        self.refresh_bindings()  # the last line shows those that fit
        self.call_after_refresh(self._show)

    @property
    def main_table(self) -> HostTable:
        return self.main_screen.query_one("#processes", HostTable)

    @property
    def _host_table(self) -> HostTable:
        return self.main_screen.query_one("#hosts", HostTable)

    def set_filter(self, text: str) -> None:
        self.state.set_filter(text)
        self._show()
        self.refresh_bindings()

    def save_theme(self, name: str) -> None:
        self._writer.submit(self._write_theme, name)

    def _write_theme(self, name: str) -> None:
        """Runs on a thread of its own, as in `top`: the disk may be slow."""
        try:
            write_setting("theme", name)
        except UserError as problem:
            with contextlib.suppress(RuntimeError):  # it has ended
                self.notify(str(problem), severity="warning", markup=False)

    def on_unmount(self) -> None:
        self._writer.shutdown(wait=True)  # so that a theme chosen just before the end is saved

    # --- what a person does

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.data_table.id == "processes" and event.row_key.value:
            self.state.selected = event.row_key.value
            self._show_chart()
        self.refresh_bindings()

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        self.action_one_host()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        key = event.column_key.value
        if event.data_table.id == "processes" and key and key != "HOST":
            self.state.sort_by(key)
            self._show()

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Returns whether a key is offered: what works here, and nothing behind the help."""
        if not super().check_action(action, parameters):
            return False
        if action == "free":
            return isinstance(self.state.process, Worker)
        if action == "show_all":
            return bool(self.state.only or self.state.filter)
        if action == "connect":
            reading = self.state.find_reading(self._find_host())
            return reading is not None and reading.needs_person
        return True

    def action_one_host(self) -> None:
        """Shows only the processes of the host under the cursor; called again, those of all
        hosts."""
        host = self._find_host()
        self.state.show_only("" if self.state.only == host else host)
        self._show()
        self.refresh_bindings()

    def action_show_all(self) -> None:
        """Clear the filter, and show the processes of all hosts."""
        self.filter_field.close()
        self.state.filter = ""
        self.state.show_only("")
        self._show()
        self.refresh_bindings()

    def action_free(self) -> None:
        self._sync_selection()
        process = self.state.process
        if isinstance(process, Worker):
            self._start_free(self.state.host, process.pid, process.started or None)

    def action_free_all(self) -> None:
        self._sync_selection()
        if host := self._find_host():
            self._start_free(host, None, None)

    def action_connect(self) -> None:
        """Leaves the terminal to ssh, which asks there itself, and takes it back."""
        host = self._find_host()
        # Ctrl-C ends ssh, not us; not ignored, for ssh would inherit that.
        before = signal.signal(signal.SIGINT, lambda *_signal: None)
        failures: list[Exception] = []
        try:
            with self.suspend():
                try:
                    self._ask(host)
                except (OSError, UserError) as problem:  # or textual would not take the screen back
                    failures.append(problem)
        except SuspendNotSupported:
            self.notify(_("ssh can't use this terminal"), severity="warning")
        finally:
            signal.signal(signal.SIGINT, before)
        for failure in failures:  # ssh could not be started
            self.notify(f"{host}: {failure}", severity="warning", markup=False)
        self._announced.discard(host)
        self._take()

    def action_help(self) -> None:
        self.show_help(list_help(HOST_KEYS))

    def _find_host(self) -> str:
        """The host under the cursor of the table that has the focus."""
        if isinstance(self.focused, SteadyTable) and self.focused.id == "hosts":
            return self.focused.cursor_key
        return self.state.host or self._host_table.cursor_key

    def _sync_selection(self) -> None:
        if key := self.main_table.moved_to:
            self.state.selected = key

    def _start_free(self, host: str, pid: int | None, started: float | None) -> None:
        reading = next((r for r in self._read() if r.host == host), None)
        if reading is not None and reading.problem is not None:
            # Its rows are old: the pid may be another process's by now.
            text = f"{host}: {say_silence(reading)}"
            self.notify(text, severity="warning", markup=False)
            return

        def run() -> None:
            try:
                text = self._free(host, pid, started)
            except (OSError, UserError) as problem:  # ssh could not be started
                text = f"{host}: {problem}"
            with contextlib.suppress(RuntimeError):  # it has ended
                self.call_from_thread(self.notify, text, markup=False)

        self.notify(_("{host}: freeing…").format(host=host), timeout=2, markup=False)
        # `mpsbar top` does not wait for threads of this name when it ends.
        threading.Thread(target=run, name="mpsbar-action-free", daemon=True).start()

    # --- drawing

    def _take(self) -> None:
        if self.state.update(self._read()):
            self._show()
            self._announce_questions()
            self.refresh_bindings()

    def _announce_questions(self) -> None:
        """Announces once each host whose ssh wants to ask a person something."""
        asking = [reading.host for reading in self.state.readings if reading.needs_person]
        new = [host for host in asking if host not in self._announced]
        if new:
            words = _("{hosts}: ssh has a question; select the host and press c").format(
                hosts=", ".join(new)
            )
            self.notify(words, markup=False)
        self._announced = set(asking)

    def _show(self) -> None:
        if not self.is_running or not self.size.width or not self.main_screen.is_mounted:
            return
        head = make_text(say_answering(self.state.readings), self.palette.style("quiet"))
        title = make_text("mpsbar  ", self.palette.style("accent", bold=True))
        self.main_screen.query_one("#head", Static).update(Text.assemble(title, head))
        self._show_hosts()
        self._show_processes()
        self._show_chart()

    def _show_hosts(self) -> None:
        state, table = self.state, self._host_table
        height = choose_height(len(state.readings), self.size.height)
        room = self.main_screen.query_one("#hosts-box").content_size.width
        width = room - (2 if table.show_vertical_scrollbar else 1)
        if width <= 0:
            return
        columns = fit_columns(state.readings, width, height)

        def draw(reading: HostReading) -> list[Text]:
            snapshot = state.snapshots.get(reading.host)
            return draw_host(reading, snapshot, columns, height, self.palette)

        layout = (columns, height, self.palette)
        drawn = {r.host: self._keep(r.host, r, layout, draw) for r in state.readings}
        selected = table.cursor_key or next(iter(drawn), "")
        table.show_cells(columns.headers, drawn, selected, height)

    def _show_processes(self) -> None:
        self._sync_selection()
        box, state = self.main_screen.query_one("#processes-box"), self.state
        if state.only:
            box.border_title = _("processes of {host}").format(host=state.only)
        else:
            box.border_title = _("processes of all hosts")
        names = [cells.width(reading.host) for reading in state.readings]
        name = min(max([4, *names]), _MAX_HOST_NAME)
        width = box.content_size.width - name - 3
        if width <= 0:
            return
        columns = choose_columns(state.rows, self._sample(), width, "top", gap=1, is_steady=True)
        headers = [("HOST", translate("HOST"), name), *build_headers(columns, state)]
        silent = {reading.host for reading in state.readings if reading.problem is not None}

        def draw(row: TableRow) -> list[Text]:
            host = row.cells["HOST"]
            first = make_text(cells.fit(host, name), self.palette.style("accent"))
            if state.filter:
                style = self.palette.style("match")
                first.highlight_words([state.filter], style, case_sensitive=False)
            snapshot, is_old = state.snapshots[host], host in silent
            drawn = draw_row(row, columns, snapshot, self.palette, state.filter, is_old=is_old)
            return [first, *drawn]

        layout = (name, tuple(columns), state.filter, self.palette)
        seen, empty = (
            self._find_seen(),
            self._empty.setdefault(len(headers), [Text("")] * len(headers)),
        )
        drawn = {}
        for place, row in enumerate(state.rows):
            if place in seen:
                drawn[row.key] = self._keep(row.key, row, layout, draw)
            else:  # as it was; drawn when a person scrolls there
                kept = self._drawn.get(row.key)
                drawn[row.key] = kept[2] if kept is not None and kept[1] == layout else empty
        hosts = {reading.host for reading in state.readings}
        for key in [key for key in self._drawn if key not in drawn and key not in hosts]:
            del self._drawn[key]
        self.main_table.show_cells(headers, drawn, state.selected)
        if (words := say_none(state)) != self._none:
            widget = self.main_screen.query_one("#empty", Static)
            self._none, widget.display = words, bool(words)
            widget.update(make_wrapped(words, "dim"))

    def _find_seen(self) -> set[int]:
        """Returns the places of the visible rows, with a window more above and below: a thousand
        would take too long to draw."""
        height, rows = self.size.height, self.state.rows
        selected = next((n for n, row in enumerate(rows) if row.key == self.state.selected), 0)
        middles = (int(self.main_table.scroll_y) + height // 2, selected)
        return {place for at in middles for place in range(at - 2 * height, at + 2 * height)}

    def _show_scrolled(self) -> None:
        if len(self.state.rows) > self.size.height:
            self._show_processes()

    def _keep(
        self, key: str, source: _Source, layout: object, draw: Callable[[_Source], list[Text]]
    ) -> list[Text]:
        """Returns the cells of a row, drawn again only if it or the layout has changed."""
        before = self._drawn.get(key)
        if before is not None and before[0] is source and before[1] == layout:
            return before[2]
        drawn = draw(source)
        self._drawn[key] = (source, layout, drawn)
        return drawn

    def _sample(self) -> Snapshot:
        """Returns one process of each kind of footprint: the header of that column depends on
        them."""
        by_kind = {
            process.footprint_kind: process
            for snapshot in self.state.snapshots.values()
            for process in snapshot.processes or ()
        }
        return Snapshot(0.0, processes=tuple(by_kind.values()))

    def _show_chart(self) -> None:
        chart = self.main_screen.query_one("#chart", ChartView)
        if not chart.size.height:
            return
        self.main_screen.query_one("#memory").border_title = self.state.host or _("memory")
        built = build_chart(self.state) if self.state.row is not None else None
        chart.show(render_title(self.state, self.palette), built, self.palette)
