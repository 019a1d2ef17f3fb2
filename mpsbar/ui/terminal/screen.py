"""The whole screen of a terminal: machine, processes, memory of the chosen one, log, keys. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import ProcessSeries
from mpsbar.ui.rows import Menu
from mpsbar.ui.terminal.frame import Frame, Hit, Line, Style, StyledSpan, fill, line_of, spread
from mpsbar.ui.terminal.header import render_head
from mpsbar.ui.terminal.keys import Key, build_keys, render_keys
from mpsbar.ui.terminal.overlays import Box, lay_over
from mpsbar.ui.terminal.panels import render_log, render_memory
from mpsbar.ui.terminal.table import TableView, choose_columns, render_table
from mpsbar.ui.terminal.table_rows import Entry
from mpsbar.ui.text import cells
from mpsbar.ui.text.wording import _

# From this width on the log stands beside the plot.
_WIDE = 110
_STEP = 4  # rows
_LEAST_PANEL = 5


@dataclass(frozen=True, slots=True)
class Note:
    """One line of the log."""

    time: str
    text: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class ScreenView:
    """What the person has chosen to see."""

    table: TableView = field(default_factory=TableView)
    filter: str = ""
    is_typing: bool = False  # the filter
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class ScreenContent:
    """All that is on the screen, whatever its size."""

    snapshot: Snapshot
    menu: Menu
    entries: tuple[Entry, ...]  # sorted and filtered
    total: int  # entries without the filter
    track: ProcessSeries | None = None  # of the chosen process
    log: tuple[Note, ...] = ()
    view: ScreenView = field(default_factory=ScreenView)

    @property
    def chosen(self) -> Entry | None:
        wanted = self.view.table.chosen
        return next((entry for entry in self.entries if entry.key == wanted), None)


@dataclass(frozen=True, slots=True)
class Heights:
    head: int
    table: int  # with its own head
    panel: int  # the plot and, where it stands beside it, the log
    log: int  # under the plot


def share_out(width: int, height: int, head: int, total: int) -> Heights:
    """The plot gets what the table does not need; in steps, so that the layout rarely changes."""
    left = height - head - 1
    wanted = -(-total // _STEP) * _STEP + 1
    panel = min(max(left * 9 // 20, left - wanted, 8), max(left * 2 // 3, 8))
    if left - panel < _STEP:
        panel = left - _STEP if left - _STEP >= _LEAST_PANEL else 0
    log = 0
    if width < _WIDE and panel >= 8:
        log = max(3, panel // 4)
    return Heights(head, max(left - panel, 0), panel - log, log)


def table_rows(content: ScreenContent, width: int, height: int) -> int:
    """How many processes fit."""
    head = len(render_head(content.snapshot, content.menu, width))
    return max(share_out(width, height, head, content.total).table - 1, 1)


def build_frame(content: ScreenContent, width: int, height: int) -> Frame:
    head = render_head(content.snapshot, content.menu, width)[: max(height - 2, 1)]
    heights = share_out(width, height, len(head), content.total)
    table = _table(content, width, heights.table)
    keys = _last_line(content, width)
    below = len(head) + heights.table
    lines = [
        *fill(head, width, heights.head),
        *fill(table.lines, width, heights.table),
        *_panel(content, width, heights),
        *fill(keys.lines, width, 1),
    ]
    hits = [*_shift(table.hits, len(head)), *_shift(keys.hits, below + heights.panel + heights.log)]
    frame = Frame(tuple(lines[:height]), tuple(hits))
    return lay_over(frame, content.view.box, width, height) if content.view.box else frame


def _table(content: ScreenContent, width: int, height: int) -> Frame:
    if not content.entries:
        return Frame((_nothing(content),))
    columns = choose_columns(width, content.entries, content.snapshot)
    return render_table(content.entries, columns, content.view.table, width, height)


def _nothing(content: ScreenContent) -> Line:
    if content.total:
        words = _("No rows contain “{text}” (Esc shows all)").format(text=content.view.filter)
        return line_of(words, "dim")
    return ()


def _panel(content: ScreenContent, width: int, heights: Heights) -> list[Line]:
    if not heights.panel:
        return []
    if heights.log or width < _WIDE:
        memory = _memory(content, width, heights.panel)
        return memory + fill(render_log(_log(content), width, heights.log), width, heights.log)
    left = width * 3 // 5
    right = width - left - 1
    memory = _memory(content, left, heights.panel)
    log = fill(render_log(_log(content), right, heights.panel), right, heights.panel)
    return [(*a, StyledSpan(" "), *b) for a, b in zip(memory, log, strict=True)]


def _memory(content: ScreenContent, width: int, height: int) -> list[Line]:
    drawn = render_memory(content.chosen, content.track, content.snapshot.time, width, height)
    return fill(drawn, width, height)


def _log(content: ScreenContent) -> list[tuple[str, str, Style]]:
    return [(note.time, note.text, note.style) for note in content.log]


def _last_line(content: ScreenContent, width: int) -> Frame:
    view = content.view
    if view.is_typing:
        hint = line_of(_("Enter to keep, Esc to show all"), "dim")
        typed = (
            StyledSpan("/", "key"),
            StyledSpan(cells.cut(view.filter[-60:], width - 2)),
            StyledSpan("▏"),
        )
        return Frame((spread(typed, hint, width),))
    keys = build_keys(content.menu, content.chosen, width >= _WIDE)
    if not view.filter:
        return render_keys(keys, width)
    count = _("“{text}”: {n} of {all}").format(
        text=cells.cut(view.filter, 20), n=len(content.entries), all=content.total
    )
    # First, however narrow: nobody must overlook that rows are hidden.
    used = cells.width(count) + 2
    rest = render_keys([Key("esc", _("All")), *keys], width - used)
    line = (StyledSpan(f"{count}  ", "warning"), *rest.lines[0])
    hits = [hit._replace(left=hit.left + used, right=hit.right + used) for hit in rest.hits]
    return Frame((line,), tuple(hits))


def _shift(hits: Sequence[Hit], down: int) -> list[Hit]:
    return [hit._replace(y=hit.y + down) for hit in hits]
