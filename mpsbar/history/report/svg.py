"""Draws values over time as inline SVG, with a cursor and a table of the same values. Pure."""

import json
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal

from mpsbar.history.period import SeriesColumn, TimeSeries
from mpsbar.history.report.html import Markup, join, scrolling, tag, text, void
from mpsbar.language import _
from mpsbar.ui.text import wording

_WIDTH, _HEIGHT = 1000, 160
_QUARTERS = 4
# Where the scale may end, in its unit.
_NICE = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 200, 256, 320, 400,
         512, 640, 800, 1024)  # fmt: skip
# While mpsbar runs there is a row a minute at least: in a longer gap it did not run.
_GAP_SECONDS = 150.0
# A budget above this many times the largest value would flatten the lines.
_MAX_BUDGET = 3
_TABLE_ROWS = 12


@dataclass(frozen=True, slots=True)
class Line:
    key: str  # of the column in the series, and of the colour
    name: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An event on the time line."""

    time: float
    kind: str  # "free", "alert"
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    key: str  # of its element in the page
    title: str
    note: str  # beside the title
    series: TimeSeries
    lines: tuple[Line, ...]
    since: float
    until: float
    budget: int | None = None
    last: float | None = None  # until when the last values are valid
    marks: tuple[Mark, ...] = ()
    measure: Literal["size", "speed"] = "size"  # bytes, or millionths a second

    def say(self, value: int | None) -> str:
        if self.measure == "size" or value is None:
            return wording.size(value)
        speed = value / 1e6
        return f"{speed:,.0f}/s" if speed >= 100 else f"{speed:.3g}/s"


def draw_chart(chart: Chart, zone: tzinfo | None = None) -> Markup:
    known = [line for line in chart.lines if chart.series.most(line.key) is not None]
    tops = [chart.series.most(line.key) or 0 for line in known]
    most = max(tops, default=0)
    budget = chart.budget if chart.budget and chart.budget <= most * _MAX_BUDGET else None
    top = find_top_speed(most) if chart.measure == "speed" else find_top(max(most, budget or 0))
    plot = tag(
        "div",
        _scale(chart, top),
        _draw(chart, known, budget, top),
        _axis(chart.since, chart.until, zone),
        class_="plot",
    )
    return tag(
        "figure",
        tag("figcaption", tag("h4", chart.title), tag("span", chart.note, class_="note")),
        plot,
        _cursor(chart),
        _legend(chart, known, budget),
        build_data(chart, known),
        build_values(chart, known, zone),
        class_="chart" if chart.measure == "size" else "chart low",
        id=chart.key,
    )


def find_top(most: int) -> int:
    """Returns the end of the scale: a round number above all values."""
    unit = 1 << 20
    while most > 1000 * unit:
        unit <<= 10
    return next((nice * unit for nice in _NICE if nice * unit >= most), 2 * _NICE[-1] * unit)


def find_top_speed(most: int) -> int:
    """Returns the end of the scale of speeds: 1, 2, 4 or 8 and zeros."""
    unit = 10
    while most > 8 * unit:
        unit *= 10
    return next(nice * unit for nice in (1, 2, 4, 8) if nice * unit >= most)


def _draw(chart: Chart, lines: list[Line], budget: int | None, top: int) -> Markup:
    paths = [
        void("path", class_=f"line {line.key}", d=_path(chart, chart.series.columns[line.key], top))
        for line in lines
    ]
    grid = "".join(f"M0 {_HEIGHT * n // _QUARTERS}H{_WIDTH}" for n in range(_QUARTERS + 1))
    if budget is not None:
        y = _HEIGHT * (1 - budget / top)
        paths.append(void("path", class_="line budget", d=f"M0 {y:.1f}H{_WIDTH}"))
    inner = tag(
        "svg", void("path", class_="grid", d=grid), *paths, class_="lines", width="100%",
        height="100%", viewBox=f"0 0 {_WIDTH} {_HEIGHT}", preserveAspectRatio="none",
    )  # fmt: skip
    cursor = void("line", class_="cursor", x1="0", x2="0", y1="0", y2="100%", visibility="hidden")
    marks = join(_mark(chart, mark) for mark in chart.marks)
    return tag(
        "svg", inner, marks, cursor, class_="drawing", role="img", aria_label=_summary(chart, lines)
    )


def _path(chart: Chart, column: SeriesColumn, top: int) -> str:
    """Returns a path of steps: a value is valid until the next reading, but not over a gap."""
    parts: list[str] = []
    before: tuple[float, float] | None = None  # time and height
    for time, value in zip(chart.series.times, column, strict=True):
        if value is None:
            before = None
            continue
        x, y = _x(chart, time), round(_HEIGHT * (1 - value / top), 1)
        if before is None or time - before[0] > _find_gap(chart):
            parts.append(f"M{x:g} {y:g}")
        elif y != before[1]:
            parts.append(f"H{x:g}V{y:g}")
        before = (time, y)
        end = x
    if before is not None:
        last = before[0] if chart.last is None else max(chart.last, before[0])
        near = last - before[0] <= _find_gap(chart)
        parts.append(f"H{max(end + 1, _x(chart, last) if near else end):g}")
    return "".join(parts) or "M0 0"


def _find_gap(chart: Chart) -> float:
    step = (chart.until - chart.since) / 250
    return max(_GAP_SECONDS, 2.5 * step)


def _x(chart: Chart, time: float) -> float:
    return round(_WIDTH * (time - chart.since) / max(1e-9, chart.until - chart.since), 1)


def _mark(chart: Chart, mark: Mark) -> Markup:
    """Marks differ by shape, not only by colour: a triangle for a Free, a diamond for an alert."""
    place = f"{_x(chart, mark.time) / _WIDTH * 100:.2f}%"
    shape = "M-5 0H5L0 9Z" if mark.kind == "free" else "M0 0L5 6L0 12L-5 6Z"
    return tag(
        "svg",
        tag("title", mark.words),
        void("path", d=f"M0 0V{_HEIGHT}", class_="stem"),
        void("path", d=shape),
        x=place, overflow="visible", class_=f"mark {mark.kind}",
    )  # fmt: skip


def _scale(chart: Chart, top: int) -> Markup:
    steps = [top * n // _QUARTERS for n in range(_QUARTERS, -1, -1)]
    words = [chart.say(step) if step else "0" for step in steps]
    return tag("div", *(tag("span", word) for word in words), class_="scale", aria_hidden="true")


def _axis(since: float, until: float, zone: tzinfo | None) -> Markup:
    is_long = until - since > 20 * 3600
    times = [since + (until - since) * n / _QUARTERS for n in range(_QUARTERS + 1)]
    form = _("{time:%a %H:%M}") if is_long else "{time:%H:%M}"
    words = [form.format(time=datetime.fromtimestamp(time, zone)) for time in times]
    return tag("div", *(tag("span", word) for word in words), class_="axis", aria_hidden="true")


def _summary(chart: Chart, lines: list[Line]) -> str:
    """Describes the chart in words, for a screen reader."""
    words = []
    for line in lines:
        known = [value for value in chart.series.columns[line.key] if value is not None]
        words.append(
            _("{name} {low} to {high}, last {last}").format(
                name=line.name,
                low=chart.say(min(known)),
                high=chart.say(max(known)),
                last=chart.say(known[-1]),
            )
        )
    summary = "; ".join(words) or _("nothing was recorded")
    return f"{chart.title}: {summary}"


def _cursor(chart: Chart) -> Markup:
    """Renders the cursor, hidden until the page's script runs."""
    number = len(chart.series.times)
    label = _("Point in time, {title}").format(title=chart.title)
    slider = void(
        "input", type="range", min="0", max=max(0, number - 1), value=max(0, number - 1),
        aria_label=label,
    )  # fmt: skip
    return tag("div", slider, tag("p", "", class_="values"), class_="reader", hidden=True)


def _legend(chart: Chart, lines: list[Line], budget: int | None) -> Markup:
    items = [_item(line.key, line.name) for line in lines]
    if budget is not None:
        items.append(_item("budget", _("budget {size}").format(size=wording.size(budget))))
    elif chart.budget:
        words = _("budget {size}, above this chart").format(size=wording.size(chart.budget))
        items.append(tag("li", words))
    kinds = {mark.kind for mark in chart.marks}
    items += [
        tag("li", _shape(kind), name)
        for kind, name in (("free", _("cache freed")), ("alert", _("alert")))
        if kind in kinds
    ]
    return tag("ul", *items, class_="legend")


def _item(key: str, name: str) -> Markup:
    line = void("path", class_=f"line {key}", d="M0 5H24")
    return tag("li", tag("svg", line, width="24", height="10", aria_hidden="true"), name)


def _shape(kind: str) -> Markup:
    shape = "M1 1H11L6 10Z" if kind == "free" else "M6 0L11 6L6 12L1 6Z"
    path = void("path", d=shape)
    drawn = tag("svg", path, width="12", height="12", class_=f"mark {kind}", aria_hidden="true")
    return Markup(drawn)


def say_time(when: float, zone: tzinfo | None, is_long: bool) -> str:
    time = datetime.fromtimestamp(when, zone)
    return (_("{time:%a %d %b %H:%M}") if is_long else "{time:%H:%M:%S}").format(time=time)


def build_data(chart: Chart, lines: list[Line]) -> Markup:
    """Renders the data for the page's script: seconds since the first reading, and MB or units per
    second."""
    series, times = chart.series, chart.series.times
    start = times[0] if times else chart.since
    data = {
        "since": chart.since, "until": chart.until, "start": round(start, 1),
        "measure": chart.measure,
        "times": [round(time - start) for time in times],
        "lines": [
            {"name": line.name, "values": [_short(chart, v) for v in series.columns[line.key]]}
            for line in lines
        ],
    }  # fmt: skip
    # HTML escapes do not work in a script element; without < and & none can end or begin.
    words = json.dumps(data, separators=(",", ":"))
    safe = words.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(f'<script type="application/json">{safe}</script>')


def _short(chart: Chart, value: int | None) -> float | None:
    if value is None:
        return None
    if chart.measure == "speed":
        return value / 1e6
    size = value / (1 << 20)
    return round(size) if size >= 1000 else round(size, 1)


def build_values(chart: Chart, lines: list[Line], zone: tzinfo | None) -> Markup:
    """Renders a table of a dozen values, evenly spaced, and the last."""
    number = len(chart.series.times)
    if not number or not lines:
        return Markup("")
    picked = sorted({round(i * (number - 1) / _TABLE_ROWS) for i in range(_TABLE_ROWS + 1)})
    is_long = chart.until - chart.since > 20 * 3600
    headers = [_("Time"), *(line.name for line in lines)]
    head = tag("tr", *(tag("th", word, scope="col") for word in headers))
    rows = [
        tag(
            "tr",
            tag("th", say_time(chart.series.times[at], zone, is_long), scope="row"),
            *(tag("td", chart.say(chart.series.columns[line.key][at])) for line in lines),
        )
        for at in picked
    ]
    caption = tag("caption", _("Selected values: {title}").format(title=chart.title))
    table = tag("table", caption, tag("thead", head), tag("tbody", *rows), class_="numbers")
    title = tag("span", text(f", {chart.title}"), class_="unseen")
    return tag("details", tag("summary", _("Show as a table"), title), scrolling(table, _("Table")))
