"""Memory over time as stacked areas with a time axis: cells of characters and layers. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from mpsbar.core.trends import MachineSeries, Point, ProcessSeries
from mpsbar.ui.text import cells, wording

# Seconds shown: the shortest with all points, so that a young process fills the chart.
SPANS = (60.0, 120.0, 300.0, 600.0)
_STEPS = (1, 1.5, 2, 3, 4, 6, 8)
_TICKS = (5, 10, 15, 30, 60, 120, 300, 600)
_TICK_CELLS = 12
_AXIS = 9
_MIN_WITH_AXIS = 4  # lines
_EIGHTHS = " ▁▂▃▄▅▆▇█"
LAYERS = ("allocated", "cached", "other", "footprint")  # from the lowest to the highest
# The same without colour.
_SHADES = "█▓▒░"


class Layer(NamedTuple):
    """An area up to `points`, above the one before it; `name` is its colour."""

    name: str
    points: Sequence[Point]


class ChartMark(NamedTuple):
    """Something that happened: a free or an alert."""

    time: float
    char: str


class CellRun(NamedTuple):
    """Neighbouring cells of the same look; layers by name, "" for none."""

    text: str
    layer: str = ""
    behind: str = ""


@dataclass(frozen=True, slots=True)
class MemoryChart:
    layers: tuple[Layer, ...]
    now: float
    marks: tuple[ChartMark, ...] = ()
    most: int | None = None  # the end of the axis, where it is fixed


def chart_process(
    series: ProcessSeries, now: float, marks: Iterable[ChartMark] = ()
) -> MemoryChart:
    """Charts one process: memory allocated, cached, other memory, and its footprint."""
    cached = _add(series.allocated, series.cached)
    layers = (
        Layer("allocated", series.allocated),
        Layer("cached", cached),
        Layer("other", series.held),
        Layer("footprint", series.footprint),
    )
    return MemoryChart(tuple(layer for layer in layers if layer.points), now, tuple(marks))


def chart_machine(series: MachineSeries, total: int | None, now: float) -> MemoryChart:
    """Charts the GPU's memory, below all that is used."""
    used = tuple(
        Point(point.time, max(total - point.value, 0))
        for point in series.memory_available
        if total is not None
    )
    layers = (Layer("allocated", series.gpu_memory), Layer("footprint", used))
    return MemoryChart(tuple(layer for layer in layers if layer.points), now, (), total)


def _add(first: Sequence[Point], second: Sequence[Point]) -> tuple[Point, ...]:
    sizes = {point.time: point.value for point in second}
    return tuple(
        Point(point.time, point.value + sizes[point.time])
        for point in first
        if point.time in sizes
    )  # fmt: skip


def choose_span(chart: MemoryChart) -> float:
    oldest = min((layer.points[0].time for layer in chart.layers), default=chart.now)
    return next((span for span in SPANS if chart.now - oldest <= span), SPANS[-1])


def round_up(size: int) -> int:
    """The next size that reads well on an axis; never 0."""
    unit = 1 << 10
    while size >= unit * 1000:
        unit <<= 10
    for power in (1, 10, 100, 1000):
        for step in _STEPS:
            if size <= step * power * unit:
                return int(step * power * unit)
    return size


def render_chart(
    chart: MemoryChart, width: int, height: int, has_colour: bool = True
) -> list[list[CellRun]]:
    """Renders `height` lines: the areas, the axis with its marks, and the times; in less than four
    lines only the areas."""
    has_axis = height >= _MIN_WITH_AXIS
    columns, rows = width - _AXIS - 1, height - 2 if has_axis else height
    if columns < 8 or rows < 1 or not chart.layers:
        return []
    span = choose_span(chart)
    step = span / columns
    now = -(-chart.now // step) * step  # so that it moves by whole cells
    sampled = [_sample(layer.points, now, span, columns) for layer in chart.layers]
    highest = max((value for values in sampled for value in values if value), default=None)
    if highest is None:
        return []
    ceiling = chart.most if chart.most and chart.most >= highest else round_up(highest)
    names = tuple(layer.name for layer in chart.layers)
    stacks = [_stack(values, ceiling, rows * 8) for values in zip(*sampled, strict=True)]
    drawn = zip(*(_draw_column(ends, names, rows, has_colour) for ends in stacks), strict=True)
    lines = [
        [CellRun(_label(row, rows, ceiling), "quiet"), *_join_alike(row_cells)]
        for row, row_cells in zip(range(rows - 1, -1, -1), drawn, strict=True)
    ]
    return [*lines, *_draw_axis(chart.marks, now, span, columns)] if has_axis else lines


def _sample(points: Sequence[Point], now: float, span: float, columns: int) -> list[int | None]:
    """The value at each column's time: the last one known; none before the first or after a gap."""
    times = [point.time for point in points]
    values: list[int | None] = []
    for column in range(columns):
        at = now - span + span * (column + 1) / columns
        index = bisect_right(times, at)
        values.append(points[index - 1].value if index else None)
    return values


def _stack(values: Sequence[int | None], ceiling: int, eighths: int) -> tuple[int, ...]:
    """How high each layer ends, in eighths of a cell; none ends below the one before it."""
    ends: list[int] = []
    for value in values:
        end = max(1, round(value * eighths / ceiling)) if value else 0
        ends.append(max(end, ends[-1]) if ends else end)
    return tuple(ends)


@lru_cache(2048)  # neighbours are often alike, and most columns are those of the last chart
def _draw_column(
    ends: tuple[int, ...], names: tuple[str, ...], rows: int, has_colour: bool
) -> list[CellRun]:
    """The cells from the highest to the lowest."""
    draw = _draw_cell if has_colour else _shade_cell
    return [draw(ends, names, row * 8) for row in range(rows - 1, -1, -1)]


def _join_alike(drawn: Iterable[CellRun]) -> Iterator[CellRun]:
    for (char, layer, behind), alike in groupby(drawn):
        yield CellRun(char * len(list(alike)), layer, behind)


def _draw_cell(ends: Sequence[int], names: Sequence[str], bottom: int) -> CellRun:
    """The layer at the bottom of the cell, in eighths, and the next one behind it."""
    for number, end in enumerate(ends):
        if end >= bottom + 8:
            return CellRun(" ", "", names[number])  # of its background: no gaps between lines
        if end > bottom:
            above = [name for name, top in zip(names, ends, strict=True) if top > end]
            return CellRun(_EIGHTHS[end - bottom], names[number], above[0] if above else "")
    return CellRun(" ")


def _shade_cell(ends: Sequence[int], names: Sequence[str], bottom: int) -> CellRun:
    for number, end in enumerate(ends):
        if end >= bottom + 5 or (end > bottom == 0 and number == len(ends) - 1):
            return CellRun(_SHADES[LAYERS.index(names[number])], names[number])
    return CellRun(" ")


def _label(row: int, rows: int, ceiling: int) -> str:
    """Round sizes at the top, in the middle and at the bottom."""
    words = {0: "0", rows - 1: wording.size(ceiling)}
    if rows >= 6:
        words[rows // 2 - 1 + rows % 2] = wording.size(ceiling // 2)
    return cells.fit(words.get(row, ""), _AXIS - 1, to_right=True) + (
        " ┤" if row in words else " │"
    )


def _draw_axis(
    marks: Iterable[ChartMark], now: float, span: float, columns: int
) -> tuple[list[CellRun], list[CellRun]]:
    """Round times of the clock, and marks at what happened."""
    line, labels = ["─"] * columns, [" "] * columns
    step = next((s for s in _TICKS if s * columns / span >= _TICK_CELLS), _TICKS[-1])
    tick = (now - span) // step * step + step
    while tick <= now:
        column = round((tick - now + span) * columns / span) - 1
        text = wording.clock(tick, seconds=step < 60)
        start = column - len(text) // 2
        if start >= 0 and start + len(text) <= columns:
            line[column] = "┬"
            labels[start : start + len(text)] = text
        tick += step
    marked = {}
    for mark in marks:
        column = round((mark.time - now + span) * columns / span) - 1
        if 0 <= column < columns:
            marked[column] = mark.char
    edge = CellRun(" " * _AXIS + "└", "quiet")
    axis = [edge]
    for column, char in enumerate(line):
        axis.append(CellRun(marked.get(column, char), "warning" if column in marked else "quiet"))
    return axis, [CellRun(" " * (_AXIS + 1) + "".join(labels), "quiet")]
