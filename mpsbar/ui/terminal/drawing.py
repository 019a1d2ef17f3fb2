"""Bars, small histories and styled text of the terminal, as Rich texts. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from mpsbar.core.naming import printable
from mpsbar.core.snapshot import Worker
from mpsbar.core.trends import Point
from mpsbar.ui.terminal.themes import Palette

_PARTS = " ▏▎▍▌▋▊▉█"
_PARTS_UP = " ▁▂▃▄▅▆▇█"
_HISTORY_SECONDS = 10
# Without colour: allocated, cached and other memory.
_SHADES = "█▓▒"
_LAYERS = ("allocated", "cached", "other")


def make_text(words: str, style: object = "") -> Text:
    """Returns a Rich text of any words, without their markup and control characters."""
    return Text(printable(words, most=2000), style or "", no_wrap=True, end="")  # type: ignore[arg-type]


def is_same_text(first: Text, second: Text) -> bool:
    """Returns whether they look the same: Rich's `==` ignores the style of the whole text."""
    return first is second or (
        first == second and first.spans == second.spans and first.style == second.style
    )


def make_segments(text: Text, console: Console) -> list[Segment]:
    """Returns one line as textual paints it. `render` of Rich forgets the style of a text without
    spans."""
    if text.spans:
        return list(text.render(console))
    style = console.get_style(text.style) if text.style else None
    return [Segment(text.plain, style)] if text.plain else []


def make_wrapped(words: str, style: str = "") -> Text:
    """Returns the same over several lines, which may be broken between words."""
    text = Text("\n").join(make_text(line, style) for line in words.split("\n"))
    text.no_wrap = False
    return text


def draw_load(part: float, width: int, palette: Palette) -> Text:
    """Draws a bar in eighths of a cell, with a colour for its length: slow growth is visible."""
    eighths = round(min(max(part, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    drawn = [("█", palette.load((cell + 1) / width)) for cell in range(full)]
    if rest:
        drawn.append((_PARTS[rest], palette.load((full + 1) / width)))
    drawn.append(("░" * (width - full - bool(rest)), palette.style("footprint")))
    return _join(drawn)


def _join(drawn: Iterable[tuple[str, Style | str]]) -> Text:
    """Joins neighbours of one style into one span: textual's work grows with their number."""
    text = Text(no_wrap=True, end="")
    for style, parts in groupby(drawn, key=itemgetter(1)):
        text.append("".join(part for part, _style in parts), style)
    return text


def draw_progress(part: float, width: int, palette: Palette) -> Text:
    """Draws a thin bar for progress, which is neither good nor bad."""
    full = round(min(max(part, 0.0), 1.0) * width)
    done = Text("━" * full, palette.style("accent"), no_wrap=True, end="")
    return done.append("─" * (width - full), palette.style("footprint"))


def draw_memory(worker: Worker, budget: int | None, width: int, palette: Palette) -> Text:
    """Draws a bar of allocated, cached and other memory, relative to the budget if it is known."""
    held, allocated, cached = worker.held, worker.total(lambda b: b.allocated), worker.cached
    if held is None:
        return _join([("?".ljust(width), palette.style("quiet"))])
    whole = max(budget or held, held, 1)
    sizes = (allocated or 0, cached or 0, max(held - (allocated or 0) - (cached or 0), 0))
    # In eighths of a cell; whatever is held is at least one.
    ends = [round(sum(sizes[: n + 1]) * width * 8 / whole) for n in range(3)]
    ends[-1] = max(ends[-1], 1 if held else 0)
    drawn = (_draw_cell(ends, cell * 8, palette.has_colour) for cell in range(width))
    return _join((char, palette.style(layer, behind)) for char, layer, behind in drawn)


def _draw_cell(ends: Sequence[int], left: int, has_colour: bool) -> tuple[str, str, str]:
    """Draws the layer at the left of a cell, and the next one behind it."""
    for number, (name, end) in enumerate(zip(_LAYERS, ends, strict=True)):
        if end >= left + 8 or (not has_colour and end > left + 3):
            return ("█" if has_colour else _SHADES[number]), name, ""
        if end > left and has_colour:
            above = [other for other, top in zip(_LAYERS, ends, strict=True) if top > end]
            return _PARTS[end - left], name, above[0] if above else ""
    return "░", "footprint", ""


def draw_history(
    points: Sequence[Point],
    width: int,
    palette: Palette,
    most: int = 0,
    lines: int = 1,
    seconds: int = _HISTORY_SECONDS,
) -> Text:
    """Draws the largest value of each ten seconds, from 0 to the largest of all, or to `most`; the
    newest is at the right. Only whole tens of seconds: so it moves and is drawn seldom."""
    highest_by_time: dict[int, int] = {}
    newest = int(points[-1].time // seconds) if points else 0
    oldest = (newest - width + 1) * seconds
    for time, value in points[bisect_left(points, (oldest,)) :]:
        bucket = int(time // seconds)
        if value >= highest_by_time.get(bucket, 0):
            highest_by_time[bucket] = value
    picked = [highest_by_time.get(newest - back) for back in range(width - 1, -1, -1)]
    highest = max([most, 1, *(value for value in picked if value is not None)])
    parts = [None if value is None else min(value / highest, 1.0) for value in picked]
    drawn = [_draw_line(parts, line, lines, palette, bool(most)) for line in range(lines)]
    return Text("\n", no_wrap=True, end="").join(reversed(drawn))


def _draw_line(
    parts: Sequence[float | None], line: int, lines: int, palette: Palette, is_load: bool
) -> Text:
    """Draws one of the lines of a history, counted from the lowest; its colour shows the height."""
    drawn: list[tuple[str, Style | str]] = []
    for part in parts:
        eighths = 0 if part is None else min(int(part * lines * 8) + 1, lines * 8) - line * 8
        if part is None or eighths <= 0:
            drawn.append((" ", ""))
            continue
        height = min(part, (line + 1) / lines) if is_load else 0.0
        drawn.append((_PARTS_UP[min(eighths, 8)], palette.load(height)))
    return _join(drawn)
