"""What a chart shows, and the same values for its script and as a table. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from mpsbar.model.past import Course
from mpsbar.views import wording
from mpsbar.views.html import Markup, tag, text
from mpsbar.views.language import _

_TABLE_ROWS = 12


@dataclass(frozen=True, slots=True)
class Line:
    key: str  # of the course's column, and of its colour
    name: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened."""

    time: float
    kind: str  # "free", "alert"
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    key: str  # of its parts, within the page
    title: str
    note: str  # beside the title
    course: Course
    lines: tuple[Line, ...]
    since: float
    until: float
    budget: int | None = None
    last: float | None = None  # until when the last values hold
    marks: tuple[Mark, ...] = ()


def say_time(when: float, zone: tzinfo | None, is_long: bool) -> str:
    told = datetime.fromtimestamp(when, zone)
    return told.strftime("%a %d %b %H:%M" if is_long else "%H:%M:%S")


def build_data(chart: Chart, lines: list[Line]) -> Markup:
    """What the script reads out: seconds since the first, and MB."""
    times = chart.course.times
    start = times[0] if times else chart.since
    told = {
        "since": chart.since, "until": chart.until, "start": round(start, 1),
        "times": [round(time - start) for time in times],
        "lines": [
            {"name": line.name, "values": [_short(v) for v in chart.course.columns[line.key]]}
            for line in lines
        ],
    }  # fmt: skip
    # In a script nothing is escaped as elsewhere; without < and & none can end or begin.
    words = json.dumps(told, separators=(",", ":"))
    safe = words.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(f'<script type="application/json">{safe}</script>')


def _short(value: int | None) -> float | None:
    if value is None:
        return None
    size = value / (1 << 20)
    return round(size) if size >= 1000 else round(size, 1)


def build_values(chart: Chart, lines: list[Line], zone: tzinfo | None) -> Markup:
    """A dozen of the values, evenly apart, and the last."""
    number = len(chart.course.times)
    if not number or not lines:
        return Markup("")
    picked = sorted({round(i * (number - 1) / _TABLE_ROWS) for i in range(_TABLE_ROWS + 1)})
    is_long = chart.until - chart.since > 20 * 3600
    head = tag("tr", *(tag("th", word, scope="col") for word in _heads(lines)))
    rows = [
        tag(
            "tr",
            tag("th", say_time(chart.course.times[at], zone, is_long), scope="row"),
            *(tag("td", wording.size(chart.course.columns[line.key][at])) for line in lines),
        )
        for at in picked
    ]
    caption = tag("caption", _("Some of the values: {title}").format(title=chart.title))
    table = tag("table", caption, tag("thead", head), tag("tbody", *rows), class_="numbers")
    return tag("details", tag("summary", _("As a table"), _hidden(chart.title)), _scroll(table))


def _heads(lines: Sequence[Line]) -> list[str]:
    return [_("Time"), *(line.name for line in lines)]


def _hidden(words: str) -> Markup:
    return tag("span", text(f", {words}"), class_="unseen")


def _scroll(table: Markup) -> Markup:
    return tag("div", table, class_="scroll", tabindex="0", role="group", aria_label=_("Table"))
