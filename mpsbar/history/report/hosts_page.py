"""Renders the report of several hosts: one page, from what each of them answered. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from mpsbar.core.host_readings import EndInWords, HostProblem, HostReading
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.history.report.html import Markup, build_table, join, tag
from mpsbar.history.report.page import (
    Frame,
    Section,
    build_section,
    build_unconnected,
    build_workers,
    render_document,
)
from mpsbar.history.report.runs import build_fallbacks
from mpsbar.history.retention import KEEP_DAYS
from mpsbar.language import _
from mpsbar.ui.text import endings, wording
from mpsbar.ui.text import hosts as host_text
from mpsbar.ui.text.machine import describe_gpu, describe_machine

Ends = Mapping[str, "list[EndInWords] | HostProblem"]


def render_hosts_report(
    version: str,
    readings: Sequence[HostReading],
    ends: Ends,
    native: NativeOperations,
    now: float,
    style: str,
    script: str,
) -> str:
    parts = [_build_host(number, reading, ends, native) for number, reading in enumerate(readings)]
    frame = Frame(version, datetime.fromtimestamp(now).astimezone(), _("Hosts"))
    return render_document(frame, (), parts, style, script)


def _build_host(number: int, reading: HostReading, ends: Ends, native: NativeOperations) -> Section:
    """Renders one host. Its id in the page has a number: a name may have forbidden characters."""
    parts = [*_build_now(reading), _build_ends(ends, reading, native)]
    section = build_section(f"host-{number}", reading.host, join(parts))
    assert section is not None
    return section


def _build_now(reading: HostReading) -> list[Markup]:
    if reading.status is None:
        return [tag("p", host_text.say_silence(reading), class_="health warning")]
    snapshot = reading.status.snapshot
    level = reading.status.level
    words = "; ".join(reading.status.reasons) or level or wording.UNKNOWN
    lines = [describe_machine(snapshot.machine), describe_gpu(snapshot.machine.gpu)]
    unconnected = build_unconnected(snapshot, "")
    return [
        tag("p", words, class_=f"health {level or 'unknown'}"),
        *(tag("p", line) for line in lines if line),
        build_workers(snapshot),
        *([] if unconnected is None else [unconnected]),
    ]


def _build_ends(ends: Ends, reading: HostReading, native: NativeOperations) -> Markup:
    ended = ends.get(reading.host)
    if isinstance(ended, HostProblem):
        text = _("How runs ended there is not known: no answer ({reason}).")
        return tag("p", text.format(reason=ended.text))
    if ended is None:
        return Markup("")
    if not ended:
        text = _("mpsbar knows of no run that ended there in the last {n} days.")
        return tag("p", text.format(n=KEEP_DAYS))
    headers = (_("Name"), _("PID"), _("Ended"), _("How"), _("Evidence"), _("Next steps"))
    rows = [
        (
            end.name,
            end.pid,
            wording.UNKNOWN if end.ended is None else endings.say_moment(end.ended),
            end.sentence,
            "; ".join(end.evidence),
            "; ".join(end.next_steps),
        )
        for end in ended
    ]
    table = build_table(_("How runs ended"), headers, rows)
    if all(end.fallbacks is None for end in ended):
        return table
    fallbacks = [(end.name, end.pid, end.fallbacks) for end in ended]
    return join([table, build_fallbacks(fallbacks, "", native)])
