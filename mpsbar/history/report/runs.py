"""The report's tables of runs: all of them, how they ended, and what ran on the CPU. Pure."""

from collections.abc import Iterable, Sequence
from datetime import tzinfo

from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import Fallbacks
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.history.period import Period, Run
from mpsbar.history.report.html import Markup, build_table, join, tag
from mpsbar.history.report.svg import say_time
from mpsbar.language import _
from mpsbar.ui.text import wording
from mpsbar.ui.text.endings import say_basis, say_briefly, say_next_steps, say_verdict
from mpsbar.ui.text.fallbacks import say_limits, say_remedy, say_times, shorten_place
from mpsbar.ui.text.wording import shorten_home

_MAX_ENDS = 20


def build_runs(periods: Sequence[Period], zone: tzinfo | None) -> Markup | None:
    if not periods or not periods[-1].runs:
        return None
    headers = (
        _("Name"), _("PID"), _("Device"), _("First seen"), _("Last seen"), _("Peak"),
        _("Last held"), _("Peak footprint"), _("Status"),
    )  # fmt: skip
    runs = sorted(periods[-1].runs, key=lambda run: -run.last)
    return build_table(_("All runs"), headers, [_build_row(run, zone) for run in runs])


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
    """Renders how runs ended, newest first, and what of them ran on the CPU."""
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
        fallbacks = [(end.name, end.pid, end.verdict.fallbacks) for end in ended if end.verdict]
        tables.append(build_fallbacks(fallbacks, home, native))
    return join(tables)


def build_fallbacks(
    ended: Iterable[tuple[str, int, Fallbacks | None]], home: str, native: NativeOperations
) -> Markup:
    """Renders what ran on the CPU because MPS lacks it, as `mpsbar run --explain` lists it;
    `ended`: name, pid and fallbacks of each run."""
    headers = (
        _("Name"), _("PID"), _("Operation"), _("Times"), _("Duration"), _("Copied"),
        _("First at"), _("What to do"),
    )  # fmt: skip
    rows, notes = [], []
    for name, pid, fallbacks in ended:
        if fallbacks is None:
            continue
        for operation in fallbacks.operations:
            times = say_times(operation.count) if fallbacks.is_counted else _("at least once")
            rows.append(
                (
                    name, pid, operation.name, times,
                    "–" if operation.seconds is None else wording.duration(operation.seconds),
                    "–" if operation.copied is None else wording.size(operation.copied),
                    shorten_place(operation.where, "", home) or "–",
                    say_remedy(operation.name, fallbacks.torch, native),
                )
            )  # fmt: skip
        notes += say_limits(fallbacks)
    table = build_table(_("CPU fallbacks"), headers, rows)
    said = (tag("p", note) for note in dict.fromkeys(notes))
    return join([tag("h3", _("CPU fallbacks")), table, *said])


def _list(lines: Sequence[str], home: str) -> Markup | str:
    items = [tag("li", shorten_home(line, home)) for line in lines]
    return tag("ul", *items) if items else "–"
