"""The lower part of a terminal's screen: the chosen process's memory, and the log. Pure.

The plot is in Braille: two by four dots to a cell.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from math import ceil

from mpsbar.core.trends import Point, ProcessSeries, recent
from mpsbar.ui.terminal.frame import Line, Style, StyledSpan, line_of
from mpsbar.ui.terminal.table_rows import Entry
from mpsbar.ui.text import cells, wording
from mpsbar.ui.text.wording import _

# Seconds shown: the shortest with all points, so that a young process fills the plot.
SPANS = (60.0, 120.0, 300.0, 600.0)
# The plot moves in steps: between them only lines that changed are drawn.
_STEP_SECONDS = 4.0
_BLANK = 0x2800
# By column and row from the top: the bits of a Braille character.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_AXIS = 9
_Pair = tuple[tuple[int, int], tuple[int, int]]  # of two columns: held and allocated, in dots
_STEPS = (1, 1.5, 2, 3, 4, 6, 8)


def render_memory(
    chosen: Entry | None, track: ProcessSeries | None, now: float, width: int, height: int
) -> list[Line]:
    """A title, the command of the chosen process, and its plot."""
    if chosen is None:
        return [rule(_("memory"), width)]
    name = chosen.cells["NAME"].removeprefix("└ ")
    span = _("last {time}").format(time=wording.duration(choose_span(track, now)))
    title = " · ".join([wording.shorten(name, 28), *_legend(track), span])
    detail = line_of(cells.cut(chosen.row.tooltip, width), "dim")
    return [rule(title, width), detail, *render_plot(track, now, width, height - 2)]


def render_log(notes: Sequence[tuple[str, str, Style]], width: int, height: int) -> list[Line]:
    """A title and the newest lines, the last at the bottom."""
    lines: list[Line] = [rule(_("log"), width)]
    newest = notes[-(height - 1) :] if height > 1 else []
    if not newest:
        lines.append(line_of(_("Frees, alerts and other events appear here"), "dim"))
    for time, text, style in newest:
        lines.append((StyledSpan(f"{time} ", "dim"), StyledSpan(text, style)))
    return lines


def rule(title: str, width: int) -> Line:
    start = f"── {cells.cut(title, width - 6)} "
    return (StyledSpan(start + "─" * (width - cells.width(start)), "dim"),)


def _legend(track: ProcessSeries | None) -> list[str]:
    if track is None or not track.held:
        return [_("charged by the system")] if track is not None else []
    return [_("⣿ allocated"), _("⢕ held, not allocated")]


def choose_span(track: ProcessSeries | None, now: float) -> float:
    """How many seconds the plot shows: the shortest span with all known points."""
    series = [] if track is None else [track.held, track.allocated, track.footprint]
    oldest = min((points[0].time for points in series if points), default=now)
    return next((span for span in SPANS if now - oldest <= span), SPANS[-1])


def render_plot(track: ProcessSeries | None, now: float, width: int, height: int) -> list[Line]:
    """Draws allocated memory dense and the rest of what is held sparse; else the footprint."""
    plot_width = width - _AXIS - 1
    if track is None or height < 2 or plot_width < 4:
        return [line_of(_("no data yet"), "dim")] if height > 0 else []
    span = choose_span(track, now)
    upper, lower = (track.held, track.allocated) if track.held else (track.footprint, ())
    columns = plot_width * 2
    step = max(span / columns, _STEP_SECONDS)
    now = ceil(now / step) * step
    tops = _sample(recent(upper, now, span), now, span, columns)
    solids = _sample(recent(lower, now, span), now, span, columns)
    highest = max((value for value in tops if value is not None), default=None)
    if highest is None:
        return [line_of(_("no data yet"), "dim")]
    ceiling = round_up(highest)
    heights = [(_dots(top, ceiling, height * 4), _dots(solid, ceiling, height * 4))
               for top, solid in zip(tops, solids, strict=True)]  # fmt: skip
    # Equal neighbours are drawn together: memory is flat most of the time.
    pairs = zip(heights[::2], heights[1::2], strict=True)
    runs = [(pair, len(list(same))) for pair, same in groupby(pairs)]
    return [_row(runs, y, height, ceiling) for y in range(height)]


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


def _sample(points: Sequence[Point], now: float, span: float, columns: int) -> list[int | None]:
    """The value at each column's time: the last one known, none before the first."""
    times = [point.time for point in points]
    sampled: list[int | None] = []
    for column in range(columns):
        index = bisect_right(times, now - span + span * (column + 1) / columns)
        sampled.append(points[index - 1].value if index else None)
    return sampled


def _dots(value: int | None, ceiling: int, rows: int) -> int:
    """At least one dot for any value but 0."""
    return 0 if not value else max(1, round(value * rows / ceiling))


def _row(runs: list[tuple[_Pair, int]], y: int, height: int, ceiling: int) -> Line:
    spans = [StyledSpan(_axis(y, height, ceiling), "dim")]
    for pair, number in runs:
        char, style = _cell(pair, (height - y) * 4)
        text = char * number
        if len(spans) > 1 and spans[-1].style == style:
            spans[-1] = StyledSpan(spans[-1].text + text, style)
        else:
            spans.append(StyledSpan(text, style))
    return tuple(spans)


def _axis(y: int, height: int, ceiling: int) -> str:
    middle = (height - 1) // 2
    words = {0: wording.size(ceiling), height - 1: "0"}
    if height > 5 and (height - 1) % 2 == 0:
        words[middle] = wording.size(ceiling // 2)
    return cells.fit(words.get(y, ""), _AXIS - 1, to_right=True) + (" ┤" if y in words else " │")


def _cell(pair: _Pair, highest: int) -> tuple[str, Style]:
    """One character: all dots up to `solid`, every other dot up to `top`, counted from below."""
    bits, is_solid = 0, False
    for column, (top, solid) in enumerate(pair):
        for row in range(4):
            level = highest - row
            if level <= solid:
                bits, is_solid = bits | _DOTS[column][row], True
            elif level <= top and (level == top or (level + column) % 2):
                bits |= _DOTS[column][row]
    if not bits:
        return " ", ""
    return chr(_BLANK + bits), "allocated" if is_solid else "cached"
