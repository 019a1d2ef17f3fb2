"""A table whose rows stay under the cursor, and that of processes (columns: ui/columns.py)."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import DataTable
from textual.widgets.data_table import ColumnKey, RowKey

from mpsbar.core.health import find_budget
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.language import _
from mpsbar.ui.process_table import FittedColumn, TableRow, choose_columns
from mpsbar.ui.terminal.drawing import (
    draw_history,
    draw_memory,
    is_same_text,
    make_segments,
    make_text,
)
from mpsbar.ui.terminal.lines_view import group_lines
from mpsbar.ui.terminal.order import TableOrder
from mpsbar.ui.terminal.state import TerminalState
from mpsbar.ui.terminal.themes import Palette
from mpsbar.ui.text import wording

Headers = list[tuple[str, str, int]]  # of each column its key, its text and its width


class SteadyTable(DataTable[Text]):
    """`show_cells` draws only what has changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("home,g", "scroll_top", show=False),
        Binding("end,G", "scroll_bottom", show=False),
    ]

    def __init__(self, **more: Any) -> None:
        super().__init__(
            cursor_type="row", cell_padding=0, cursor_foreground_priority="renderable", **more
        )
        self._fitted: Headers = []
        self._drawn: dict[str, list[Text]] = {}
        self._height = 1  # of each row
        # Of each row that was seen, what its cells depend on, and each with its segments.
        self._painted: dict[str, tuple[object, list[tuple[Text, list[Segment]]]]] = {}
        self._selected = ""  # the key of the row where we put the cursor

    def show_cells(
        self, headers: Headers, drawn: dict[str, list[Text]], selected: str, height: int = 1
    ) -> None:
        """Draw the rows, by their keys; cells that have not changed are not touched."""
        with self.prevent(DataTable.RowHighlighted):
            is_same = height == self._height and list(drawn) == list(self._drawn)
            if headers != self._fitted or not is_same:
                self._rebuild(headers, drawn, height)
            else:
                self._update(headers, drawn)
            self._fitted, self._drawn, self._height = headers, drawn, height
            self.show_cursor, self._selected = bool(selected), selected
            place = next((number for number, key in enumerate(drawn) if key == selected), None)
            if place is not None and place != self.cursor_row:
                self.move_cursor(row=place, animate=False)

    @property
    def moved_to(self) -> str:
        """The key of the row to which a person moved the cursor, "" if it was not moved. textual's
        message comes later, and until then nothing may move the cursor back."""
        key = self.cursor_key if self.show_cursor else ""
        return key if self._selected in self._drawn and key != self._selected else ""

    @property
    def cursor_key(self) -> str:
        """The key of the row under the cursor; "": there is none."""
        keys = list(self._drawn)
        return keys[self.cursor_row] if self.cursor_row < len(keys) else ""

    def _rebuild(self, headers: Headers, drawn: dict[str, list[Text]], height: int) -> None:
        place = self.scroll_y
        self._painted = {}
        self.clear(columns=True)
        for key, header, width in headers:
            self.add_column(Text(header, no_wrap=True), width=width + 1, key=key)
        for key, cells in drawn.items():
            self.add_row(*cells, key=key, height=height)
        self.scroll_to(y=place, animate=False, force=True)

    def _update(self, headers: Headers, drawn: dict[str, list[Text]]) -> None:
        """Change the cells that differ, and forget only these from textual's cache: `update_cell`
        would render every cell again and keep thousands of old ones."""
        changed: set[tuple[str | None, str | None]] = set()  # keys of rows and columns
        positions: list[int] = []
        for position, (key, cells) in enumerate(drawn.items()):
            if cells is self._drawn[key]:
                continue
            pairs = enumerate(zip(cells, self._drawn[key], strict=True))
            for number, (cell, before) in pairs:
                if is_same_text(cell, before):
                    cells[number] = before  # so that it is known to be painted
                    continue
                column = headers[number][0]
                self._data[RowKey(key)][ColumnKey(column)] = cell
                changed.add((key, column))
                if position not in positions[-1:]:
                    positions.append(position)
        if changed:
            self._forget_rendered(changed)
        for first, lines in group_lines(positions):
            top = self.header_height + first * self._height
            self._refresh_region(Region(0, top, self.size.width, lines * self._height))

    def _render_line(self, y: int, x1: int, x2: int, base_style: Style) -> Strip:
        """Joins the cells of a row of one line itself: through Rich's console, as textual does it,
        each cell takes 0.2 ms."""
        place = y - self.header_height
        if self._height != 1 or x1 or not 0 <= place < len(self._drawn):
            return super()._render_line(y, x1, x2, base_style)
        cursor, hover = place == self.cursor_row, place == self.hover_row
        component, post = self._get_styles_to_render_cell(
            False, False, False, hover, cursor, self.show_cursor, self._show_hover_cursor,
            self.cursor_foreground_priority == "css", self.cursor_background_priority == "css",
        )  # fmt: skip
        key, cells = next(islice(self._drawn.items(), place, None))
        layout = (place, base_style, component, post)
        before = self._painted.get(key)
        painted: list[tuple[Text, list[Segment]]] = []
        known = before[1] if before is not None and before[0] == layout else ()
        for number, cell in enumerate(cells):
            if number < len(known) and known[number][0] is cell:
                painted.append(known[number])
            else:
                style = base_style + _locate(place, number) + component
                painted.append((cell, self._paint(cell, self._fitted[number][2] + 1, style, post)))
        self._painted[key] = (layout, painted)
        rest = base_style + component + _locate(place, 0, is_outside=True)
        line = Strip(segment for _cell, segments in painted for segment in segments)
        return line.adjust_cell_length(self.size.width, rest)

    def _paint(self, cell: Text, width: int, style: Style, post: Style) -> list[Segment]:
        drawn = (
            Segment(text, style + own + post if own else style + post)
            for text, own, _control in make_segments(cell, self.app.console)
        )
        return list(Segment.simplify(Segment.adjust_line_length([*drawn], width, style + post)))

    def _forget_rendered(self, changed: set[tuple[str | None, str | None]]) -> None:
        rows = {row for row, _column in changed}
        for cell_key in list(self._cell_render_cache.keys()):
            if (cell_key[0].value, cell_key[1].value) in changed:
                self._cell_render_cache.discard(cell_key)
        for row_key in list(self._row_render_cache.keys()):
            if row_key[0].value in rows:
                self._row_render_cache.discard(row_key)
        self._row_renderable_cache.clear()
        self._line_cache.clear()


@lru_cache(4096)
def _locate(row: int, column: int, is_outside: bool = False) -> Style:
    """Tells textual which cell the mouse is over."""
    place: dict[str, object] = {"row": row, "column": column}
    return Style.from_meta(place | {"out_of_bounds": True} if is_outside else place)


class ProcessTable(SteadyTable):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", _("Detail"), key_display="⏎"),
    ]

    def show(self, state: TerminalState, palette: Palette, width: int) -> None:
        columns = choose_columns(state.rows, state.snapshot, width, "top", gap=1, is_steady=True)
        snapshot, match = state.snapshot, state.filter
        drawn = {
            row.key: draw_row(row, columns, snapshot, palette, match, row.key == state.selected)
            for row in state.rows
        }
        self.show_cells(build_headers(columns, state), drawn, state.selected)


def build_headers(columns: Sequence[FittedColumn], order: TableOrder) -> Headers:
    return [(column.key, _write_header(column, order), column.width) for column in columns]


def _write_header(column: FittedColumn, order: TableOrder) -> str:
    mark = ("▼" if order.descending else "▲") if column.key == order.sort else ""
    return column.mark_header(mark)


def draw_row(
    row: TableRow,
    columns: Sequence[FittedColumn],
    snapshot: Snapshot,
    palette: Palette,
    match: str,
    is_selected: bool = False,
    is_old: bool = False,
) -> list[Text]:
    """Draws the cells of a row; `match` is highlighted; `is_old`: its computer is silent."""
    is_quiet = row.process is None or isinstance(row.process, Process) or is_old
    base = palette.style("quiet") if is_quiet else ""
    drawn = []
    for column in columns:
        if column.column.drawing is not None:
            drawn.append(_draw(row, column, snapshot, palette))
            continue
        over: Style | str = ""
        if column.key == "GPU" and (part := row.values.get("GPU")) is not None and not is_old:
            over = palette.load(part / 100)
        elif column.key == "NOTE" and row.cells["NOTE"] and (
            is_old or isinstance(row.process, Worker)
        ):  # fmt: skip
            over = palette.style("warning")
        elif column.key == "NAME" and is_selected:
            over = "bold"
        is_searched = match and column.key in ("NAME", "NOTE", "PID", "DEVICE")
        words = column.fit(row.cells.get(column.key, ""))
        drawn.append(
            _write(words, base, over, match if is_searched else "", palette.style("match"))
        )
    return drawn


@lru_cache(2048)  # most cells are as they were at the last reading
def _write(
    words: str, base: Style | str, over: Style | str, match: str, match_style: Style
) -> Text:
    text = make_text(words, base)
    if over:
        text.stylize(over)
    if match:
        text.highlight_words([match], match_style, case_sensitive=False)
    return text


def _draw(row: TableRow, column: FittedColumn, snapshot: Snapshot, palette: Palette) -> Text:
    process = row.process
    if not isinstance(process, Worker):
        return Text("")
    if column.column.drawing == "bar":
        return draw_memory(process, find_budget(snapshot, (process,)), column.width, palette)
    series = snapshot.process_series.get(process.pid)
    return draw_history(series.held if series else (), column.width, palette)


def say_why_empty(state: TerminalState) -> str:
    """Says why there are no processes in the table, and what to do; "": there are some."""
    snapshot = state.snapshot
    if state.total and not state.rows:
        return _("No rows contain “{text}” (Esc shows all)").format(text=state.filter)
    if snapshot.workers or (snapshot.processes == () and state.rows):
        return ""
    if snapshot.processes == ():
        hints = (
            wording.nothing_runs(), "", wording.how_to_start(),
            _("For everything in an environment: mpsbar enable"),
            _("In a notebook: %load_ext mpsbar"),
        )  # fmt: skip
        return "\n".join(hints)
    unconnected = next(iter(snapshot.unconnected), None)
    how = "" if unconnected is None else ": " + wording.how_to_connect_process(unconnected)
    return wording.found(snapshot) + how
