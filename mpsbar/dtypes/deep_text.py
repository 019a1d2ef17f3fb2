"""Renders `mpsbar probe --deep`: what is news first, a table of counts, CSV. Pure."""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import get_args

from mpsbar.core.dtype_results import CellState
from mpsbar.dtypes.deep_results import (
    DEEP_STATES,
    DeepCell,
    DeepChange,
    DeepProbe,
    find_deep_changes,
)
from mpsbar.dtypes.headlines import say_change
from mpsbar.dtypes.table import TableStyle
from mpsbar.dtypes.text import (
    say_count,
    say_early_end,
    say_more,
    say_saved,
    say_subject,
    states,
)
from mpsbar.dtypes.verdicts import Change
from mpsbar.language import _, ngettext
from mpsbar.ui.text import wording
from mpsbar.ui.text.cells import align

_MAX_LINES = 30


def render_deep(
    probe: DeepProbe,
    style: TableStyle,
    path: str | None = None,
    before: DeepProbe | None = None,
) -> str:
    """Renders the whole page; `before` is the result it is compared with."""
    parts = [
        "" if before is None else "\n".join(_render_changes(before, probe)),
        "\n".join([*_headlines(probe, style), style.paint(say_subject(probe), "dim")]),
        "\n".join(_table(probe, style)),
        "\n".join(_list_news(probe)),
        "\n".join(style.paint(line, "dim") for line in _footer(probe, path)),
    ]
    return "\n\n".join(part for part in parts if part)


def say_deep_headline(probe: DeepProbe) -> str:
    """Says what is worse than torch expects, in one line."""
    worse = probe.find_news("worse")
    if not worse:
        if probe.expectation_known:
            return _("Nothing is worse than torch itself expects.")
        return _(
            "This torch has no expectations for this device, so there is nothing to compare with."
        )
    words = ngettext(
        "{n} result is worse than torch itself expects: {states}",
        "{n} results are worse than torch itself expects: {states}",
        len(worse),
    )
    return words.format(n=len(worse), states=", ".join(_count_states(worse)))


def _headlines(probe: DeepProbe, style: TableStyle) -> list[str]:
    worst = {"inaccurate", "crashed", "hung"} & {cell.state for cell in probe.find_news("worse")}
    level = "critical" if worst else "warning" if probe.find_news("worse") else "ok"
    lines = [style.paint(say_deep_headline(probe), level)]
    if better := probe.find_news("better"):
        lines.append(_say_better(len(better)))
    if probe.ended != "ok":
        text = say_early_end(probe, len(probe.cells), probe.total)
        lines.append(style.paint(text, "warning"))
    return lines


def _say_better(number: int) -> str:
    """Says "perhaps" because torch's tests run many samples, the probe only the first."""
    text = ngettext(
        "{n} result is better than torch's tests expect (perhaps not with other samples)",
        "{n} results are better than torch's tests expect (perhaps not with other samples)",
        number,
    )
    return text.format(n=number)


def _count_states(cells: Iterable[DeepCell]) -> list[str]:
    counts = Counter(cell.state for cell in cells)
    words = states() | {
        "inaccurate": _("wrong"), "crashed": _("crashed"), "hung": _("hung"),
        "fallback": _("fell back to the CPU"),
    }  # fmt: skip
    return [say_count(counts[state], words[state]) for state in DEEP_STATES if counts[state]]


def _table(probe: DeepProbe, style: TableStyle) -> list[str]:
    occurring = {cell.state for cell in probe.cells}
    columns = [state for state in get_args(CellState) if state in occurring]
    words = states() | {"no_memory": _("out of memory")}
    headers = [_("DTYPE"), *(words[state].upper() for state in columns), _("UNEXPECTED")]
    rows = [headers]
    for dtype in probe.dtypes:
        cells = [cell for cell in probe.cells if cell.dtype == dtype]
        counts = Counter(cell.state for cell in cells)
        news = sum(cell.news == "worse" for cell in cells)
        numbers = [str(counts[state] or "–") for state in columns]
        rows.append([dtype, *numbers, str(news or "–")])
    head, *lines = align(rows, to_right=True)
    return [style.paint(head, "head"), *lines]


def _list_news(probe: DeepProbe) -> list[str]:
    """Lists what is worse than torch expects: an operation, its dtypes, and why."""
    groups: dict[tuple[str, str], list[DeepCell]] = {}
    for cell in probe.find_news("worse"):
        groups.setdefault((cell.operation, cell.state), []).append(cell)
    lines = []
    for (operation, state), cells in list(groups.items())[:_MAX_LINES]:
        dtypes = ", ".join(cell.dtype for cell in cells)
        text = next((cell.text for cell in cells if cell.text), None)
        lines.append(f"{operation} ({dtypes}): {states()[state]}" + (f": {text}" if text else ""))
    if len(groups) > _MAX_LINES:
        lines.append(_("… and {n} more; --csv lists all").format(n=len(groups) - _MAX_LINES))
    return lines


def _render_changes(before: DeepProbe, probe: DeepProbe) -> list[str]:
    """Renders torch, device and system where they differ, then the operations."""
    subjects = [
        "  " + say_change(Change("subject", name, old or wording.UNKNOWN, new or wording.UNKNOWN))
        for (name, old), new in zip(before.subject.items(), probe.subject.values(), strict=True)
        if old != new
    ]
    return [_("What changed:"), *subjects, *_list_changes(find_deep_changes(before, probe))]


def _list_changes(changes: Sequence[DeepChange]) -> list[str]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        key = (change.cell.operation, change.before, change.cell.state)
        groups.setdefault(key, []).append(change.cell.dtype)
    words = states()
    lines = [
        f"  {operation} ({', '.join(dtypes)}): {words[before]} → {words[after]}"
        for (operation, before, after), dtypes in list(groups.items())[:_MAX_LINES]
    ]
    if len(groups) > _MAX_LINES:
        lines.append("  " + say_more(len(groups) - _MAX_LINES))
    return lines or ["  " + _("no operation changed")]


def _footer(probe: DeepProbe, path: str | None) -> list[str]:
    operations = len({cell.operation for cell in probe.cells})
    done = ngettext(
        "{operations} operation × {dtypes} dtypes, one sample each",
        "{operations} operations × {dtypes} dtypes, one sample each",
        operations,
    ).format(operations=operations, dtypes=len(probe.dtypes))
    if probe.device == "cpu":
        done += _("; on the CPU they are only run, there is nothing to compare them with")
    lines = [done, _("took {seconds}").format(seconds=wording.duration(probe.seconds))]
    if path is not None:
        lines.append(say_saved(path))
    return lines


def render_csv(probe: DeepProbe) -> str:
    """Renders a line for each operation and dtype."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("operation", "dtype", "state", "expected", "news", "error", "text"))
    expected = {True: "works", False: "fails", None: ""}
    for cell in probe.cells:
        error = "" if cell.error is None else f"{cell.error:.6g}"
        writer.writerow(
            (cell.operation, cell.dtype, cell.state, expected[cell.expected], cell.news or "",
             error, cell.text or "")
        )  # fmt: skip
    return text.getvalue()


def say_deep_progress(done: int, total: int | None, seconds_left: float | None) -> str:
    """Says how far it is, such as "Probing… 42% (3536 of 8364), about 12 s left"."""
    if not total:
        return _("Probing… (importing torch and its samples)")
    text = _("Probing… {percent} ({done} of {total})").format(
        percent=wording.percent(100 * done / total), done=done, total=total
    )
    if seconds_left is None:
        return text
    return _("{text}, about {time} left").format(text=text, time=wording.duration(seconds_left))
