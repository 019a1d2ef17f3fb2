"""The report's section "Memory over time": a chart of the computer and of each run. Pure."""

from collections.abc import Iterable, Sequence
from datetime import tzinfo

from mpsbar.core.counters import COUNTERS
from mpsbar.core.naming import printable
from mpsbar.history.period import Period, RecordedEvent, Run
from mpsbar.history.report.events import build_events, say_event
from mpsbar.history.report.html import Markup, join, tag, void
from mpsbar.history.report.svg import Chart, Line, Mark, draw_chart
from mpsbar.language import _, ngettext
from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import shorten_home

_MAX_CHARTS = 20
_MAX_MARKS = 60


def build_charts(
    periods: Sequence[Period], zone: tzinfo | None, home: str, problem: str | None = None
) -> Markup:
    """Renders the charts, or says why there are none; `problem` is why the history can't be
    read."""
    recorded = [period for period in periods if not period.is_empty]
    if not recorded and problem is not None:
        text = _("The history can't be read: {problem}")
        return tag("p", text.format(problem=shorten_home(printable(problem), home)))
    if not recorded:
        return tag(
            "p",
            _(
                "Nothing has been recorded yet. The menu bar app, mpsbar top and mpsbar status "
                "--watch record while they run."
            ),
        )
    if len(recorded) == 1:
        return _draw_period(recorded[0], 0, zone)
    choices = [_choice(number, period) for number, period in enumerate(recorded)]
    legend = tag("legend", _("Show"))
    parts = [_draw_period(period, number, zone) for number, period in enumerate(recorded)]
    return join([tag("fieldset", legend, *choices, class_="choice"), *parts])


def _choice(number: int, period: Period) -> Markup:
    box = void(
        "input", type="radio", name="span", id=f"span-{number}", value=number, checked=not number
    )
    return tag("label", box, " ", _say_length(period))


def _say_length(period: Period) -> str:
    seconds = period.until - period.since
    if seconds < 4000:
        return _("Last hour")
    hours = round(seconds / 3600)
    if hours < 48:
        return ngettext("Last {n} hour", "Last {n} hours", hours).format(n=hours)
    days = round(seconds / 86400)
    return ngettext("Last {n} day", "Last {n} days", days).format(n=days)


def _draw_period(period: Period, number: int, zone: tzinfo | None) -> Markup:
    runs = [run for run in period.runs if run.series.times]
    charts = [_machine_chart(period, number)]
    for at, run in enumerate(runs[:_MAX_CHARTS]):
        charts.append(_run_chart(period, run, f"chart-{number}-{at}"))
        if run.series.most("speed") is not None:
            charts.append(_speed_chart(period, run, f"chart-{number}-{at}-speed"))
    drawn = [draw_chart(chart, zone) for chart in charts if chart.series.times]
    parts: list[Markup] = [
        tag("h3", _say_length(period)),
        tag("div", *drawn, class_="charts"),
    ]
    if len(runs) > _MAX_CHARTS:
        parts.append(
            tag(
                "p",
                _("Only the {n} largest are shown here; All runs lists the others.").format(
                    n=_MAX_CHARTS
                ),
            )
        )
    if period.events:
        parts.append(build_events(period, zone))
    return tag("div", *parts, class_="span", id=f"part-{number}")


def _machine_chart(period: Period, number: int) -> Chart:
    lines = (
        Line("used", _("memory in use")), Line("gpu", _("GPU memory")), Line("swap", _("swap")),
    )  # fmt: skip
    total = period.machine.most("total")
    note = "" if total is None else _("of {size}").format(size=wording.size(total))
    marks = _marks(period.events)
    return Chart(
        f"chart-{number}-machine", _("This computer"), note, period.machine, lines, period.since,
        period.until, period.machine.most("budget"), marks=marks,
    )  # fmt: skip


def _run_chart(period: Period, run: Run, key: str) -> Chart:
    lines = (
        *(Line(c.name, _(c.label or c.name)) for c in COUNTERS if c.recorded),
        Line("footprint", _("footprint")),
    )
    events = (e for e in period.events if e.pid == run.pid and e.name in (None, run.name))
    notes = [str(run.pid), run.device, "" if run.ended is None else _("ended")]
    if not run.is_connected:
        notes.append(_("not connected"))
    return Chart(
        key, run.name, " · ".join(note for note in notes if note), run.series, lines, period.since,
        period.until, period.machine.most("budget") if run.is_connected else None, run.last,
        _marks(events),
    )  # fmt: skip


def _speed_chart(period: Period, run: Run, key: str) -> Chart:
    title, lines = _("{name}: speed").format(name=run.name), (Line("speed", _("speed")),)
    return Chart(
        key, title, str(run.pid), run.series, lines, period.since, period.until, last=run.last,
        measure="speed",
    )  # fmt: skip


def _marks(events: Iterable[RecordedEvent]) -> tuple[Mark, ...]:
    """Returns the marks of a chart; limits and a Free that failed are in the table only."""
    shown = [
        event
        for event in events
        if event.kind == "alert" or (event.kind == "free" and event.code == "done")
    ]
    return tuple(Mark(event.time, event.kind, say_event(event)) for event in shown[:_MAX_MARKS])
