"""What happened in a period of the report, in words: a table, and the text of each mark. Pure."""

from datetime import tzinfo

from mpsbar.core.events import Alert
from mpsbar.core.findings import Reason
from mpsbar.history.period import Period, RecordedEvent
from mpsbar.history.report.html import Markup, build_table, join, tag
from mpsbar.history.report.svg import say_time
from mpsbar.language import _
from mpsbar.ui.text import outcomes, wording
from mpsbar.ui.text.alerts import say_alert_in_a_line

_MAX_EVENTS = 100
_DAY = 20 * 3600.0


def build_events(period: Period, zone: tzinfo | None) -> Markup:
    is_long = period.until - period.since > _DAY
    headers = (_("Time"), _("Event"))
    rows = [
        (say_time(event.time, zone, is_long), say_event(event))
        for event in period.events[:_MAX_EVENTS]
    ]
    title = _("Events")
    return join([tag("h3", title), build_table(title, headers, rows)])


def say_event(event: RecordedEvent) -> str:
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
