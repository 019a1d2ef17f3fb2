"""The recorded part of the report: memory over time, events, and every run. Pure."""

from collections.abc import Iterable
from datetime import tzinfo

from mpsbar.core.counters import COUNTERS
from mpsbar.core.events import Alert
from mpsbar.core.findings import Reason
from mpsbar.history.records import Event, Period, Run
from mpsbar.history.report.chart import Chart, Line, Mark, draw_chart, say_time
from mpsbar.history.report.content import Report
from mpsbar.history.report.html import Markup, build_table, join, tag, void
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import say_alert_in_a_line
from mpsbar.ui.text.wording import _

_MOST_CHARTS = 20
_MOST_MARKS = 60
_MOST_HAPPENINGS = 100
_DAY = 20 * 3600.0


def build_past(report: Report, zone: tzinfo | None) -> Markup:
    spans = [span for span in report.spans if not span.is_empty]
    if not spans:
        return tag(
            "p",
            _(
                "Nothing has been recorded yet. The menu bar app, mpsbar top and mpsbar status "
                "--watch record while they run."
            ),
        )
    if len(spans) == 1:
        return _span(spans[0], 0, zone)
    chosen = [_choice(number, span) for number, span in enumerate(spans)]
    legend = tag("legend", _("Show"))
    parts = [_span(span, number, zone) for number, span in enumerate(spans)]
    return join([tag("fieldset", legend, *chosen, class_="choice"), *parts])


def build_runs(report: Report, zone: tzinfo | None) -> Markup | None:
    if not report.spans or not report.spans[-1].runs:
        return None
    heads = (
        _("Name"), _("PID"), _("Device"), _("First seen"), _("Last seen"), _("Peak"),
        _("Last held"), _("Peak footprint"), _("Terminate"),
    )  # fmt: skip
    runs = sorted(report.spans[-1].runs, key=lambda run: -run.last)
    return build_table(_("All runs"), heads, [_run(run, zone) for run in runs])


def _choice(number: int, span: Period) -> Markup:
    box = void(
        "input", type="radio", name="span", id=f"span-{number}", value=number, checked=not number
    )
    return tag("label", box, " ", _say_length(span))


def _say_length(span: Period) -> str:
    seconds = span.until - span.since
    if seconds < 4000:
        return _("Last hour")
    hours = round(seconds / 3600)
    if hours < 48:
        return _("Last {n} hours").format(n=hours)
    return _("Last {n} days").format(n=round(seconds / 86400))


def _span(span: Period, number: int, zone: tzinfo | None) -> Markup:
    runs = [run for run in span.runs if run.course.times]
    charts = [_machine_chart(span, number), *(
        _run_chart(span, run, f"chart-{number}-{at}") for at, run in enumerate(runs[:_MOST_CHARTS])
    )]  # fmt: skip
    drawn = [draw_chart(chart, zone) for chart in charts if chart.course.times]
    parts: list[Markup] = [
        tag("h3", _say_length(span)),
        tag("div", *drawn, class_="charts"),
    ]
    if len(runs) > _MOST_CHARTS:
        parts.append(
            tag(
                "p",
                _("Only the {n} largest are shown here; All runs lists the others.").format(
                    n=_MOST_CHARTS
                ),
            )
        )
    if span.happenings:
        parts.append(_happenings(span, zone))
    return tag("div", *parts, class_="span", id=f"part-{number}")


def _machine_chart(span: Period, number: int) -> Chart:
    lines = (
        Line("used", _("memory in use")), Line("gpu", _("GPU memory")), Line("swap", _("swap")),
    )  # fmt: skip
    total = span.machine.most("total")
    note = "" if total is None else _("of {size}").format(size=wording.size(total))
    marks = _marks(span.happenings)
    return Chart(
        f"chart-{number}-machine", _("This computer"), note, span.machine, lines, span.since,
        span.until, span.machine.most("budget"), marks=marks,
    )  # fmt: skip


def _run_chart(span: Period, run: Run, key: str) -> Chart:
    lines = (
        *(Line(one.name, _(one.label or one.name)) for one in COUNTERS if one.recorded),
        Line("footprint", _("footprint")),
    )
    mine = (one for one in span.happenings if one.pid == run.pid and one.name in (None, run.name))
    notes = [str(run.pid), run.device, "" if run.ended is None else _("ended")]
    if not run.is_connected:
        notes.append(_("not connected"))
    return Chart(
        key, run.name, " · ".join(note for note in notes if note), run.course, lines, span.since,
        span.until, span.machine.most("budget") if run.is_connected else None, run.last,
        _marks(mine),
    )  # fmt: skip


def _marks(happenings: Iterable[Event]) -> tuple[Mark, ...]:
    """Alerts and successful frees; a failed free is only in the table of events."""
    shown = [one for one in happenings if one.kind == "alert" or one.code == "done"]
    return tuple(Mark(one.time, one.kind, _say(one)) for one in shown[:_MOST_MARKS])


def _happenings(span: Period, zone: tzinfo | None) -> Markup:
    is_long = span.until - span.since > _DAY
    heads = (_("Time"), _("Event"))
    rows = [
        (say_time(one.time, zone, is_long), _say(one)) for one in span.happenings[:_MOST_HAPPENINGS]
    ]
    title = _("Events")
    return join([tag("h3", title), build_table(title, heads, rows)])


def _say(one: Event) -> str:
    name = one.name or (_("process {pid}").format(pid=one.pid) if one.pid else "")
    if one.kind == "free":
        words = _("{name}: freed {size}") if one.code == "done" else _("{name}: not freed ({code})")
        return words.format(name=name, size=wording.size(one.size), code=one.code)
    reason = Reason(one.code, one.level, one.values, one.pid)
    phase = one.phase if one.phase in ("raised", "worse", "recovered", "ended") else "raised"
    alert = Alert(one.code, one.level, one.pid, None, reason, phase, "", one.name)  # type: ignore[arg-type]
    return say_alert_in_a_line(alert)


def _run(run: Run, zone: tzinfo | None) -> tuple[object, ...]:
    end = _("Running") if run.ended is None else _say_end(run)
    return (
        run.name, run.pid, run.device or "–", say_time(run.first, zone, True),
        say_time(run.last, zone, True), wording.size(run.peak), wording.size(run.known.get("held")),
        wording.size(run.footprint_peak), end,
    )  # fmt: skip


def _say_end(run: Run) -> str:
    if run.how == "unseen":
        return _("Ended while mpsbar was not running")
    return _("Ended: {how}").format(how=wording.how_it_ended(run.how))
