"""Sections of the report on what was recorded: charts, events and a table of all runs. Pure."""

from collections.abc import Iterable, Sequence
from datetime import tzinfo

from mpsbar.core.counters import COUNTERS
from mpsbar.core.events import Alert, EndedProcess
from mpsbar.core.fallbacks import Fallbacks
from mpsbar.core.findings import Reason
from mpsbar.core.naming import printable
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.history.reader import Period, RecordedEvent, Run
from mpsbar.history.report.chart import Chart, Line, Mark, draw_chart, say_time
from mpsbar.history.report.html import Markup, build_table, join, tag, void
from mpsbar.language import _, ngettext
from mpsbar.ui.text import outcomes, wording
from mpsbar.ui.text.alerts import say_alert_in_a_line
from mpsbar.ui.text.endings import say_basis, say_briefly, say_next_steps, say_verdict
from mpsbar.ui.text.fallbacks import say_limits, say_remedy, say_times, shorten_place
from mpsbar.ui.text.wording import shorten_home

_MAX_CHARTS = 20
_MAX_MARKS = 60
_MAX_EVENTS = 100
_MAX_ENDS = 20
_DAY = 20 * 3600.0


def build_past(
    periods: Sequence[Period], zone: tzinfo | None, home: str, problem: str | None = None
) -> Markup:
    """The charts; without any, why: `problem` is why the history can't be read."""
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


def build_runs(periods: Sequence[Period], zone: tzinfo | None) -> Markup | None:
    if not periods or not periods[-1].runs:
        return None
    headers = (
        _("Name"), _("PID"), _("Device"), _("First seen"), _("Last seen"), _("Peak"),
        _("Last held"), _("Peak footprint"), _("Status"),
    )  # fmt: skip
    runs = sorted(periods[-1].runs, key=lambda run: -run.last)
    return build_table(_("All runs"), headers, [_build_row(run, zone) for run in runs])


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
        parts.append(_list_events(period, zone))
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
    """The marks of a chart; limits and a Free that failed are in the table only."""
    shown = [
        event
        for event in events
        if event.kind == "alert" or (event.kind == "free" and event.code == "done")
    ]
    return tuple(Mark(event.time, event.kind, _say_event(event)) for event in shown[:_MAX_MARKS])


def _list_events(period: Period, zone: tzinfo | None) -> Markup:
    is_long = period.until - period.since > _DAY
    headers = (_("Time"), _("Event"))
    rows = [
        (say_time(event.time, zone, is_long), _say_event(event))
        for event in period.events[:_MAX_EVENTS]
    ]
    title = _("Events")
    return join([tag("h3", title), build_table(title, headers, rows)])


def _say_event(event: RecordedEvent) -> str:
    name = event.name or (_("process {pid}").format(pid=event.pid) if event.pid else "")
    if event.kind == "free":
        return f"{name}: {_say_free(event)}"
    if event.kind == "limit":
        limit = _("off") if event.size is None else wording.size(event.size)
        words = _("{name}: memory limit {limit}")
        if event.code != "done":
            words = _("{name}: memory limit {limit} not set ({why})")
        return words.format(name=name, limit=limit, why=outcomes.say_not_done(event.code))
    reason = Reason(event.code, event.level, event.values, event.pid)
    phase = event.phase if event.phase in ("raised", "worse", "recovered", "ended") else "raised"
    alert = Alert(event.code, event.level, event.pid, None, reason, phase, "", event.name)  # type: ignore[arg-type]
    return say_alert_in_a_line(alert)


def _say_free(event: RecordedEvent) -> str:
    cause = outcomes.say_free_cause(str(event.values.get("cause", "")))
    if event.code == "refilled":
        return outcomes.say_left_alone(event.size)
    words = _("freed {size}") if event.code == "done" else _("not freed ({why})")
    words = words.format(size=wording.size(event.size), why=outcomes.say_not_done(event.code))
    return f"{words} ({cause})" if cause else words


def _build_row(run: Run, zone: tzinfo | None) -> tuple[object, ...]:
    end = _("Running") if run.ended is None else _say_end(run)
    return (
        run.name, run.pid, run.device or "–", say_time(run.first, zone, True),
        say_time(run.last, zone, True), wording.size(run.peak), wording.size(run.known.get("held")),
        wording.size(run.footprint_peak), end,
    )  # fmt: skip


def _say_end(run: Run) -> str:
    if run.how == "unseen" and (run.verdict is None or run.verdict.code == "unknown"):
        return _("Ended while mpsbar was not running")
    return _("Ended: {how}").format(how=say_briefly(run.verdict, run.how))


def build_ends(
    ends: Sequence[EndedProcess], zone: tzinfo | None, home: str, native: NativeOperations | None
) -> Markup | None:
    """How runs ended, newest first: the sentence, its evidence and what to do next; and what of
    them ran on the CPU."""
    ended = [end for end in ends if end.verdict is not None][:_MAX_ENDS]
    if not ended:
        return None
    headers = (_("Name"), _("PID"), _("Ended"), _("What happened"), _("Evidence"), _("Next steps"))
    rows = []
    for end in ended:
        assert end.verdict is not None
        lists = (say_basis(end.verdict), say_next_steps(end.verdict, end.name, end.pid))
        cells = [_list(lines, home) for lines in lists]
        sentence = shorten_home(say_verdict(end.verdict, end.name), home)
        rows.append((end.name, end.pid, say_time(end.ended, zone, True), sentence, *cells))
    tables = [tag("div", build_table(_("How runs ended"), headers, rows), class_="ends")]
    if native and any(end.verdict is not None and end.verdict.fallbacks for end in ended):
        found = [(end.name, end.pid, end.verdict.fallbacks) for end in ended if end.verdict]
        tables.append(build_fallbacks(found, home, native))
    return join(tables)


def build_fallbacks(
    ended: Iterable[tuple[str, int, Fallbacks | None]], home: str, native: NativeOperations
) -> Markup:
    """What ran on the CPU because MPS lacks it, as `mpsbar run --explain` lists it: of each run its
    name, its pid and what is known."""
    headers = (
        _("Name"), _("PID"), _("Operation"), _("Times"), _("Duration"), _("Copied"),
        _("First at"), _("What to do"),
    )  # fmt: skip
    rows, notes = [], []
    for name, pid, found in ended:
        if found is None:
            continue
        for operation in found.operations:
            times = say_times(operation.count) if found.is_counted else _("at least once")
            rows.append(
                (
                    name, pid, operation.name, times,
                    "–" if operation.seconds is None else wording.duration(operation.seconds),
                    "–" if operation.copied is None else wording.size(operation.copied),
                    shorten_place(operation.where, "", home) or "–",
                    say_remedy(operation.name, found.torch, native),
                )
            )  # fmt: skip
        notes += say_limits(found)
    table = build_table(_("CPU fallbacks"), headers, rows)
    said = (tag("p", note) for note in dict.fromkeys(notes))
    return join([tag("h3", _("CPU fallbacks")), table, *said])


def _list(lines: Sequence[str], home: str) -> Markup | str:
    items = [tag("li", shorten_home(line, home)) for line in lines]
    return tag("ul", *items) if items else "–"
