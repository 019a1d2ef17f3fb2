"""Renders the report: one page that needs neither the network nor mpsbar. Pure."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from mpsbar.core.advice import advise
from mpsbar.core.dtype_results import Probe
from mpsbar.core.events import EndedProcess
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.dtypes.deep_results import DeepProbe
from mpsbar.dtypes.verdicts import count_failures
from mpsbar.history.period import Period
from mpsbar.history.report.charts import build_charts
from mpsbar.history.report.dtypes import build_dtypes
from mpsbar.history.report.html import Markup, build_table, tag, text, void
from mpsbar.history.report.operations import build_operations
from mpsbar.history.report.runs import build_ends, build_runs
from mpsbar.language import _, get_code
from mpsbar.ui.columns import REPORTED, translate
from mpsbar.ui.text import wording
from mpsbar.ui.text.advice import say_advice
from mpsbar.ui.text.alerts import is_unknown, say_health
from mpsbar.ui.text.machine import describe_gpu, describe_machine


@dataclass(frozen=True, slots=True)
class Report:
    """The content of the page."""

    version: str
    snapshot: Snapshot
    periods: tuple[Period, ...] = ()  # the shortest first; none: nothing was recorded
    probe: Probe | None = None  # the last; None: there is none, or of another torch
    deep: DeepProbe | None = None  # the last of mpsbar probe --deep
    home: str = ""  # shown as ~
    diagnostics: str = ""  # to paste into a bug report
    ends: tuple[EndedProcess, ...] = ()  # newest first
    native: NativeOperations | None = None  # for what ran on the CPU in those
    history_problem: str | None = None  # why the history can't be read, if it is there


Section = tuple[str, str, Markup]  # its id, its title and the element


@dataclass(frozen=True, slots=True)
class Frame:
    """What surrounds the sections of a report."""

    version: str
    time: datetime
    links: str  # what the links at the top lead to


def render_report(report: Report, style: str, script: str, zone: tzinfo | None = None) -> str:
    """Renders the page with `style` and `script` in it; its policy allows no others."""
    snapshot, periods, home = report.snapshot, report.periods, report.home
    sections = (
        build_section(
            "ends", _("How runs ended"), build_ends(report.ends, zone, home, report.native)
        ),
        build_section(
            "memory",
            _("Memory over time"),
            build_charts(periods, zone, home, report.history_problem),
        ),
        build_section("workers", _("Connected now"), build_workers(snapshot)),
        build_section("unconnected", _("Not connected"), build_unconnected(snapshot, report.home)),
        build_section("runs", _("All runs"), build_runs(periods, zone)),
        build_section("dtypes", _("dtypes"), build_dtypes(report.probe, report.home, zone)),
        build_section(
            "operations", _("Every operation"), build_operations(report.deep, home, zone)
        ),
        build_section("advice", _("Next steps"), _advice(report)),
        build_section("diagnostics", _("Diagnostics"), _diagnostics(report)),
    )
    frame = Frame(report.version, datetime.fromtimestamp(snapshot.time, zone), _("Sections"))
    shown = [section for section in sections if section is not None]
    return render_document(frame, _describe_now(snapshot), shown, style, script)


def render_document(
    frame: Frame, above: Iterable[Markup], sections: Sequence[Section], style: str, script: str
) -> str:
    """Renders the whole page: `above` stands above the links to the sections."""
    links = (tag("li", tag("a", title, href=f"#{key}")) for key, title, _part in sections)
    when = _("As of {time:%A, %d %B %Y, %H:%M}").format(time=frame.time)
    created = _("Created by mpsbar {version}").format(version=frame.version)
    body = tag(
        "body",
        tag(
            "header",
            tag("h1", _("mpsbar report")),
            tag("p", when, class_="note"),
            *above,
            tag("nav", tag("ul", *links), aria_label=frame.links),
        ),
        tag("main", *(part for _key, _title, part in sections)),
        tag("footer", tag("p", created)),
        tag("script", Markup(script)),
    )
    meta = (
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        void("meta", name="referrer", content="no-referrer"),
    )
    head = tag("head", *meta, tag("title", _("mpsbar report")), tag("style", Markup(style)))
    return f"<!doctype html>\n{tag('html', head, body, lang=get_code())}\n"


def _policy(style: str, script: str) -> str:
    """Returns a policy by which nothing is loaded or sent, and only this style and script are
    used."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)};"
        " base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def build_section(key: str, title: str, content: Markup | None) -> Section | None:
    if content is None:
        return None
    heading = tag("h2", title, id=f"{key}-title")
    part = tag("section", heading, content, id=key, aria_labelledby=f"{key}-title")
    return key, title, part


def _describe_now(snapshot: Snapshot) -> list[Markup]:
    health = snapshot.health
    level = "unknown" if is_unknown(health) and health.level == "ok" else health.level
    lines = [describe_machine(snapshot.machine), describe_gpu(snapshot.machine.gpu)]
    return [
        tag("p", say_health(health, snapshot.names), class_=f"health {level}"),
        *(tag("p", line) for line in lines if line),
    ]


def _advice(report: Report) -> Markup | None:
    snapshot = report.snapshot
    names = snapshot.names
    failed = None if report.probe is None else count_failures(report.probe)
    steps = [
        wording.shorten_home(say_advice(step, names.get(step.pid or 0)), report.home)
        for step in advise(snapshot, snapshot.health, failed)
    ]
    if not steps:
        return None
    return tag("ol", *(tag("li", step) for step in steps))


def _diagnostics(report: Report) -> Markup | None:
    if not report.diagnostics:
        return None
    hint = _("Ready to paste into a bug report: it contains no arguments and no private paths.")
    return tag(
        "div",
        tag("p", hint),
        tag(
            "p",
            tag("button", _("Copy Diagnostics"), type="button", id="copy", hidden=True),
            tag("span", "", role="status", id="copied"),
        ),
        tag(
            "pre", text(report.diagnostics), id="copy-text", tabindex="0", role="group",
            aria_label=_("Diagnostics"),
        ),
    )  # fmt: skip


_MAX_ROWS = 200


def build_workers(snapshot: Snapshot) -> Markup:
    workers = snapshot.workers
    if not workers:
        return tag("p", wording.found(snapshot) or wording.workers_connected(0))
    headers = [translate(column.title) for column in REPORTED]
    rows = [[column.cell(worker) for column in REPORTED] for worker in workers[:_MAX_ROWS]]
    return build_table(_("Connected processes"), headers, rows)


def build_unconnected(snapshot: Snapshot, home: str) -> Markup | None:
    processes = snapshot.unconnected
    if not processes:
        return None
    columns = [column for column in REPORTED if column.is_outside]
    titles = {"DEVICE": _("Loaded"), "NOTE": _("To see more")}
    headers = [titles.get(column.key, translate(column.title)) for column in columns]
    rows = []
    for process in processes[:_MAX_ROWS]:
        note = wording.shorten_home(wording.how_to_connect_process(process), home)
        cells = [note if c.key == "NOTE" else c.cell(process) for c in columns]
        rows.append(cells)
    return build_table(_("Processes that are not connected"), headers, rows)
