"""The whole screen of a terminal: machine, processes, the chosen one's memory, log, keys. Pure."""

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
from mpsbar.ui.terminal.table import Shown, choose_columns, render_table
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
class View:
    """How the person looks at it."""

    shown: Shown = field(default_factory=Shown)
    filter: str = ""
    is_typing: bool = False  # the filter
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is on the screen, before anyone knows how large that is."""

    snapshot: Snapshot
    menu: Menu
    entries: tuple[Entry, ...]  # in their order, those that the filter leaves
    everyone: int  # how many there are without the filter
    track: ProcessSeries | None = None  # of the chosen one
    log: tuple[Note, ...] = ()
    view: View = field(default_factory=View)

    @property
    def chosen(self) -> Entry | None:
        wanted = self.view.shown.chosen
        return next((entry for entry in self.entries if entry.key == wanted), None)


@dataclass(frozen=True, slots=True)
class Heights:
    head: int
    table: int  # with its own head
    panel: int  # the plot and, where it stands beside it, the log
    log: int  # under the plot


def share_out(width: int, height: int, head: int, everyone: int) -> Heights:
    """What the table does not need goes to the plot; in steps, so that not all moves each time."""
    left = height - head - 1
    wanted = -(-everyone // _STEP) * _STEP + 1
    panel = min(max(left * 9 // 20, left - wanted, 8), max(left * 2 // 3, 8))
    if left - panel < _STEP:
        panel = left - _STEP if left - _STEP >= _LEAST_PANEL else 0
    log = 0
    if width < _WIDE and panel >= 8:
        log = max(3, panel // 4)
    return Heights(head, max(left - panel, 0), panel - log, log)


def table_rows(scene: Scene, width: int, height: int) -> int:
    """How many processes are seen at once."""
    head = len(render_head(scene.snapshot, scene.menu, width))
    return max(share_out(width, height, head, scene.everyone).table - 1, 1)


def build_frame(scene: Scene, width: int, height: int) -> Frame:
    head = render_head(scene.snapshot, scene.menu, width)[: max(height - 2, 1)]
    heights = share_out(width, height, len(head), scene.everyone)
    table = _table(scene, width, heights.table)
    keys = _last_line(scene, width)
    below = len(head) + heights.table
    lines = [
        *fill(head, width, heights.head),
        *fill(table.lines, width, heights.table),
        *_panel(scene, width, heights),
        *fill(keys.lines, width, 1),
    ]
    hits = [*_shift(table.hits, len(head)), *_shift(keys.hits, below + heights.panel + heights.log)]
    frame = Frame(tuple(lines[:height]), tuple(hits))
    return lay_over(frame, scene.view.box, width, height) if scene.view.box else frame


def _table(scene: Scene, width: int, height: int) -> Frame:
    if not scene.entries:
        return Frame((_nothing(scene),))
    columns = choose_columns(width, scene.entries, scene.snapshot)
    return render_table(scene.entries, columns, scene.view.shown, width, height)


def _nothing(scene: Scene) -> Line:
    if scene.everyone:
        words = _("Nothing contains “{text}” (Esc shows all)").format(text=scene.view.filter)
        return line_of(words, "dim")
    return ()


def _panel(scene: Scene, width: int, heights: Heights) -> list[Line]:
    if not heights.panel:
        return []
    if heights.log or width < _WIDE:
        memory = _memory(scene, width, heights.panel)
        return memory + fill(render_log(_log(scene), width, heights.log), width, heights.log)
    left = width * 3 // 5
    right = width - left - 1
    memory = _memory(scene, left, heights.panel)
    log = fill(render_log(_log(scene), right, heights.panel), right, heights.panel)
    return [(*a, StyledSpan(" "), *b) for a, b in zip(memory, log, strict=True)]


def _memory(scene: Scene, width: int, height: int) -> list[Line]:
    drawn = render_memory(scene.chosen, scene.track, scene.snapshot.time, width, height)
    return fill(drawn, width, height)


def _log(scene: Scene) -> list[tuple[str, str, Style]]:
    return [(note.time, note.text, note.style) for note in scene.log]


def _last_line(scene: Scene, width: int) -> Frame:
    view = scene.view
    if view.is_typing:
        hint = line_of(_("Enter keeps it, Esc shows all"), "dim")
        typed = (
            StyledSpan("/", "key"),
            StyledSpan(cells.cut(view.filter[-60:], width - 2)),
            StyledSpan("▏"),
        )
        return Frame((spread(typed, hint, width),))
    keys = build_keys(scene.menu, scene.chosen, width >= _WIDE)
    if not view.filter:
        return render_keys(keys, width)
    count = _("“{text}”: {n} of {all}").format(
        text=cells.cut(view.filter, 20), n=len(scene.entries), all=scene.everyone
    )
    # First, whatever else there is room for: rows that are missing must not be missed.
    used = cells.width(count) + 2
    rest = render_keys([Key("esc", _("All")), *keys], width - used)
    line = (StyledSpan(f"{count}  ", "warning"), *rest.lines[0])
    hits = [hit._replace(left=hit.left + used, right=hit.right + used) for hit in rest.hits]
    return Frame((line,), tuple(hits))


def _shift(hits: Sequence[Hit], down: int) -> list[Hit]:
    return [hit._replace(y=hit.y + down) for hit in hits]
