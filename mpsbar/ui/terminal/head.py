"""The upper part of `mpsbar top`: the machine, whether all is well, and gauges with history."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from mpsbar.core.machine import PRESSURE_LEVELS
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import MachineSeries, Point
from mpsbar.dtypes.summary import say_headline, say_progress
from mpsbar.language import _
from mpsbar.ui.bar import DOTS, build_bar
from mpsbar.ui.terminal.drawing import draw_history, draw_load, make_text
from mpsbar.ui.terminal.themes import LEVEL_STYLES, Palette
from mpsbar.ui.text import cells, wording
from mpsbar.ui.text.alerts import say_health
from mpsbar.ui.text.machine import describe_machine_briefly

_HISTORY = 8
_LABEL = 9


class Gauge(NamedTuple):
    label: str
    text: str
    part: float | None  # 0 to 1; None: not known
    points: Sequence[Point] = ()
    most: int = 0  # of the points


def render_head(snapshot: Snapshot, width: int, height: int, palette: Palette) -> list[Text]:
    """Renders two lines, the machine and its health; where there is one line, its health."""
    health = _render_health(snapshot, width, palette)
    if height < 2:
        return [health]
    left = Text.assemble(
        make_text("mpsbar", palette.style("accent", bold=True)),
        make_text("  " + describe_machine_briefly(snapshot.machine)),
    )
    words = []
    if snapshot.held is not None:
        words.append(_("{size} held").format(size=wording.size(snapshot.held)))
    if snapshot.cached is not None:
        words.append(_("{size} cached").format(size=wording.size(snapshot.cached)))
    first = _spread(left, make_text(", ".join(words), palette.style("quiet")), width)
    return [first, health]


def _render_health(snapshot: Snapshot, width: int, palette: Palette) -> Text:
    shape = build_bar(snapshot).shape
    words = say_health(snapshot.health, snapshot.names)
    style = palette.style(LEVEL_STYLES.get(shape, "quiet"), bold=shape in ("warning", "critical"))
    left = make_text(f"{DOTS[shape]} {words}", style)
    notes = [wording.problems(len(snapshot.problems))] if snapshot.problems else []
    dtypes = _("dtypes: {headline}").format(headline=say_headline(snapshot.dtypes))
    notes.append(say_progress(snapshot.probing) if snapshot.probing is not None else dtypes)
    return _spread(left, make_text(" · ".join(notes), palette.style("quiet")), width)


def _spread(left: Text, right: Text, width: int) -> Text:
    """Places one at each edge; the right one only where both fit."""
    used = left.cell_len + right.cell_len
    if used + 2 > width:
        left.truncate(width, overflow="ellipsis")
        return left
    return Text.assemble(left, " " * (width - used), right)


def build_gauges(snapshot: Snapshot) -> Iterator[Gauge]:
    machine = snapshot.machine
    series = snapshot.machine_series or MachineSeries()
    total, available = machine.memory_total, machine.memory_available
    used = None if total is None or available is None else max(total - available, 0)
    history = [Point(p.time, max((total or 0) - p.value, 0)) for p in series.memory_available]
    part = used / total if used is not None and total else None
    text = wording.part(used, total) if used is not None else wording.UNKNOWN
    yield Gauge(_("memory"), text, part, history, total or 0)
    gpu = machine.gpu
    text = wording.percent(gpu.utilization)
    if gpu.memory_in_use is not None:
        text += " · " + wording.part(gpu.memory_in_use, gpu.memory_budget)
    part = None if gpu.utilization is None else gpu.utilization / 100
    yield Gauge(_("GPU"), text, part, series.utilization, 100)
    swap = machine.swap_used
    part = None if swap is None or not total else swap / total
    yield Gauge(_("swap"), wording.size(swap), part, series.swap_used, total or 0)
    level = PRESSURE_LEVELS.get(machine.pressure or "")
    text = {0: _("normal"), 1: _("warning"), 2: _("critical")}.get(
        -1 if level is None else level, wording.UNKNOWN
    )
    points = [Point(point.time, point.value + 1) for point in series.pressure]
    yield Gauge(_("pressure"), text, None if level is None else (level + 1) / 3, points, 3)


def render_gauges(gauges: Sequence[Gauge], width: int, height: int, palette: Palette) -> list[Text]:
    """Renders gauges side by side with three lines each; where that is too much, two in a line."""
    if height >= 3:
        return _render_tall(gauges, width, palette)
    columns = 2 if width >= 72 else 1
    wide = (width - 2 * (columns - 1)) // columns
    drawn = [_render_line(gauge, wide, palette) for gauge in gauges]
    return [
        Text("  ").join(drawn[number : number + columns])
        for number in range(0, min(len(drawn), columns * max(height, 1)), columns)
    ]


def _render_line(gauge: Gauge, width: int, palette: Palette) -> Text:
    value = cells.cut(gauge.text, max(width - _LABEL, 1))
    label = make_text(cells.fit(gauge.label, _LABEL), palette.style("quiet"))
    room = width - _LABEL - _VALUE - _HISTORY - 2
    if room < 4:
        return Text.assemble(label, make_text(cells.fit(value, width - _LABEL)))
    bar = _draw_bar(gauge, room, palette)
    history = draw_history(gauge.points, _HISTORY, palette, gauge.most)
    if cells.width(value) > _VALUE:  # the GPU's share and its memory
        value = value.split(" · ")[-1]
    return Text.assemble(label, bar, " ", make_text(cells.fit(value, _VALUE)), " ", history)


_VALUE = len("24.0 of 36.0 GB")


def _render_tall(gauges: Sequence[Gauge], width: int, palette: Palette) -> list[Text]:
    wide = (width - 3 * (len(gauges) - 1)) // len(gauges)
    rows: list[list[Text]] = [[], [], []]
    for gauge in gauges:
        label = make_text(gauge.label, palette.style("quiet"))
        value = make_text(cells.cut(gauge.text, wide - cells.width(gauge.label) - 1), "bold")
        rows[0].append(_spread_exactly(label, value, wide))
        rows[1].append(_draw_bar(gauge, wide, palette))
        rows[2].append(draw_history(gauge.points, wide, palette, gauge.most))
    return [Text("   ").join(row) for row in rows]


def _spread_exactly(left: Text, right: Text, width: int) -> Text:
    room = max(width - left.cell_len - right.cell_len, 0)
    return Text.assemble(left, " " * room, right)


def _draw_bar(gauge: Gauge, width: int, palette: Palette) -> Text:
    if gauge.part is None:
        return make_text("░" * width, palette.style("footprint"))
    return draw_load(gauge.part, width, palette)
