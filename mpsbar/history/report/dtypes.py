"""The section of the report on the last dtype probe: a heat map, verdicts, known bugs. Pure."""

from datetime import datetime, tzinfo

from mpsbar.core.dtype_results import Cell, Probe
from mpsbar.dtypes.deep_results import DeepProbe
from mpsbar.dtypes.headlines import find_headlines
from mpsbar.dtypes.summary import say_speed
from mpsbar.dtypes.text import (
    check_title,
    say_known_bug,
    say_subject,
    say_why,
    states,
    support_levels,
)
from mpsbar.dtypes.verdicts import Verdict, judge_dtypes
from mpsbar.history.report.html import Markup, build_heat_map, build_table, join, tag
from mpsbar.language import _
from mpsbar.ui.text.wording import shorten_home

# A sign for each state, because colour alone is not enough for everybody.
SIGNS = {
    "works": "✓", "inaccurate": "✗", "fallback": "↓", "unsupported": "–", "crashed": "!",
    "hung": "∞", "meaningless": "·", "no_memory": "?", "unknown": "?",
}  # fmt: skip


def build_dtypes(probe: Probe | None, home: str, zone: tzinfo | None) -> Markup | None:
    if probe is None or not probe.cells:
        return None
    parts = [
        tag("p", "; ".join(h.text for h in find_headlines(probe)), class_="headline"),
        tag("p", say_dated_subject(probe, home, zone), class_="note"),
        _heat_map(probe),
        tag("p", _("Point to a cell, or move to it with Tab, to see the reason."), class_="reason"),
        build_legend({cell.state for cell in probe.cells}),
        _verdicts(probe),
        _checks(probe),
    ]
    return join(part for part in parts if part is not None)


def say_dated_subject(probe: Probe | DeepProbe, home: str, zone: tzinfo | None) -> str:
    """Returns which torch, device, Python and system were probed, and when."""
    text = shorten_home(say_subject(probe), home)
    if probe.time is None:
        return text
    when = datetime.fromtimestamp(probe.time, zone)
    return text + " · " + _("{time:%a %d %b %Y %H:%M}").format(time=when)


def _heat_map(probe: Probe) -> Markup:
    known = {(cell.operation, cell.dtype): cell for cell in probe.cells}
    rows = [
        (name, [tag("td", _cell_button(known.get((name, dtype)))) for dtype in probe.dtypes])
        for name in probe.operations
    ]
    return build_heat_map(_("Operations and dtypes"), "heat", probe.dtypes, rows)


def _cell_button(cell: Cell | None) -> Markup:
    """Renders one cell; one that does not work is a button that shows the reason."""
    if cell is None:
        return Markup("")
    sign, words = SIGNS.get(cell.state, "?"), states().get(cell.state, cell.state)
    if cell.state in ("works", "meaningless"):
        unseen = tag("span", words, class_="unseen")
        drawn = tag("span", sign, aria_hidden="true")
        return tag("span", drawn, unseen, class_=f"spot {cell.state}")
    label = _("{dtype}, {operation}: {state}").format(
        dtype=cell.dtype, operation=cell.operation, state=words
    )
    reason = f"{label}: {cell.text}" if cell.text else label
    return tag(
        "button", sign, type="button", class_=f"spot {cell.state}", aria_label=reason, title=reason
    )


def build_legend(shown: set[str]) -> Markup:
    """Explains the signs of these states."""
    items = [
        tag("li", tag("span", sign, class_=f"spot {state}", aria_hidden="true"), states()[state])
        for state, sign in SIGNS.items()
        if state in shown
    ]
    return tag("ul", *items, class_="legend signs")


def _verdicts(probe: Probe) -> Markup:
    headers = (_("dtype"), _("Here"), _("Guides say"), _("torch says"), _("Speed"), _("Why"))
    rows = [_verdict(verdict) for verdict in judge_dtypes(probe)]
    return join([tag("h3", _("Verdicts")), build_table(_("Verdicts"), headers, rows)])


def _verdict(verdict: Verdict) -> tuple[object, ...]:
    words = support_levels()
    says = {None: "–", True: _("yes"), False: _("no")}[verdict.torch_says]
    guides = "–" if verdict.guides is None else words[verdict.guides]
    here = words[verdict.support]
    return (verdict.dtype, here, guides, says, say_speed(verdict), say_why(verdict))


def _checks(probe: Probe) -> Markup | None:
    """Lists the known silent bugs that are present, or could not be checked for."""
    checks = [check for check in probe.checks if check.state != "right"]
    if not checks:
        return None
    rows = [
        (check_title(check.name), states().get(check.state, check.state), say_known_bug(check.name),
         check.text or "")
        for check in checks
    ]  # fmt: skip
    title = _("Known silent bugs")
    headers = (_("What"), _("Here"), _("Known issue"), _("Reason"))
    return join([tag("h3", title), build_table(title, headers, rows)])
