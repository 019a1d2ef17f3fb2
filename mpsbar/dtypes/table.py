"""Renders the dtype probe as a table: with signs on a terminal, in words elsewhere. Pure."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mpsbar.core.dtype_results import Cell, Probe
from mpsbar.core.findings import Reason
from mpsbar.dtypes.summary import DASH, say_speed
from mpsbar.dtypes.text import check_title, say_known_bug, say_surprise, say_why, standings, states
from mpsbar.dtypes.verdicts import Change, Verdict, find_surprises, judge_dtypes
from mpsbar.ui.text import wording
from mpsbar.ui.text.cells import Paint, in_colour, plain
from mpsbar.ui.text.wording import _

# A sign for each state, and its style; the legend names those that occur.
_SIGNS = {
    "works": ("●", "ok"), "inaccurate": ("✗", "critical"), "fallback": ("◐", "warning"),
    "unsupported": ("○", "plain"), "crashed": ("!", "critical"), "hung": ("∞", "critical"),
    "meaningless": ("·", "dim"), "no_memory": ("?", "dim"), "unknown": ("?", "dim"),
}  # fmt: skip
_STANDING_SIGNS = {"supported": "✓", "limited": "~", "unsupported": "✗", "unknown": "?"}
_MOST_CHANGES = 40
_WHY_IN_WORDS, _WHY_LINES = 100, 3


@dataclass(frozen=True, slots=True)
class TableStyle:
    """How the table is shown: with signs on a terminal, or in words."""

    with_signs: bool = False
    is_coloured: bool = False
    width: int = 100

    @property
    def paint(self) -> Paint:
        return in_colour if self.is_coloured else plain


def render_probe(
    probe: Probe,
    style: TableStyle,
    path: str | None = None,
    changes: Sequence[Change] | None = None,
) -> str:
    """The whole probe; `path` is the file of the result, `changes` are those since another one."""
    verdicts = judge_dtypes(probe)
    parts = [
        "\n".join([_subject(probe, style), *_headlines(probe, style)]),
        "\n".join(_table(probe, verdicts, style)),
        "\n".join(_legend(probe, verdicts, style)),
        "" if style.with_signs else "\n".join(_cells_in_words(probe)),
        "\n".join(_footer(probe, style, path)),
    ]
    if changes is not None:
        parts.append(render_changes(changes))
    return "\n\n".join(part for part in parts if part)


def render_changes(changes: Sequence[Change]) -> str:
    words = standings() | states()
    lines = [
        "  " + _("{name}: {before} → {after}").format(
            name=check_title(change.name) if change.kind == "check" else change.name,
            before=words.get(change.before, change.before),
            after=words.get(change.after, change.after),
        )
        for change in changes[:_MOST_CHANGES]
    ]  # fmt: skip
    if len(changes) > _MOST_CHANGES:
        lines.append("  " + _("… and {n} more").format(n=len(changes) - _MOST_CHANGES))
    if all(change.kind == "subject" for change in changes):
        lines.append("  " + _("no operation or dtype changed"))
    return "\n".join([_("What changed:"), *lines])


def _subject(probe: Probe, style: TableStyle) -> str:
    device = probe.device or wording.UNKNOWN
    named = f"{device} ({probe.device_name})" if probe.device_name else device
    system = probe.system and f"{probe.os or wording.UNKNOWN} {probe.system}"
    words = (f"torch {probe.torch}", named, f"Python {probe.version}", system, probe.python)
    return style.paint(" · ".join(word for word in words if word), "dim")


def _headlines(probe: Probe, style: TableStyle) -> list[str]:
    """The surprises, the worst first, each on a line of its own."""
    surprises = find_surprises(probe)
    lines = [style.paint(_headline(reason, style), reason.level) for reason in surprises]
    if not surprises:
        lines.append(style.paint(_("As expected: no surprises."), "ok"))
    if probe.ended in ("cancelled", "stopped"):
        total = len(probe.cells) + len(probe.checks)
        stopped = {"cancelled": _("Cancelled"), "stopped": _("Stopped early")}[probe.ended]
        text = _("{stopped}: measured {done} of {total}").format(
            stopped=stopped, done=probe.measured, total=total
        )
        lines.append(style.paint(text + (f": {probe.error}" if probe.error else ""), "warning"))
    return lines


def _headline(reason: Reason, style: TableStyle) -> str:
    text = say_surprise(reason)
    if "check" in reason.values:
        details = reason.values.get("text")
        known = say_known_bug(str(reason.values["check"]))
        text = f"{text}: {details}" if details else text
        text = f"{text} ({known})" if known else text
    elif operations := reason.values.get("operations"):
        text = f"{text}: {operations}"
    sign = {"critical": "✗ ", "warning": "! "}.get(reason.level, "") if style.with_signs else ""
    return sign + text


def _table(probe: Probe, verdicts: Sequence[Verdict], style: TableStyle) -> list[str]:
    head = [_("DTYPE"), _("HERE"), _("GUIDES"), _("TORCH"), _("OPERATIONS"), _("SPEED"), ""]
    rows = [_row(probe, verdict, style) for verdict in verdicts]
    shown = [i for i in range(len(head)) if any(row[i] not in ("", DASH) for row in rows)]
    table = [[row[i] for i in shown] for row in [head, *rows]]
    fixed = len(shown) - (1 if len(head) - 1 in shown else 0)
    widths = [max(len(row[i]) for row in table) for i in range(fixed)]
    lines = []
    for number, row in enumerate(table):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        painted = (
            style.paint(line, "head")
            if not number
            else _colour(line, probe, verdicts[number - 1], style)
        )
        lines += _with_why(line, painted, row[fixed] if fixed < len(row) else "", style)
    return lines


def _row(probe: Probe, verdict: Verdict, style: TableStyle) -> list[str]:
    cells = probe.of(verdict.dtype)
    sign = f"{_STANDING_SIGNS[verdict.standing]} " if style.with_signs else ""
    return [
        verdict.dtype,
        sign + standings()[verdict.standing],
        _differing(standings().get(verdict.guides or "", DASH), verdict.differs_from_guides),
        _differing(_yes_or_no(verdict.torch_says), verdict.differs_from_torch),
        _strip(cells) if style.with_signs else _count(cells),
        say_speed(verdict),
        say_why(verdict),
    ]


def _strip(cells: Sequence[Cell]) -> str:
    return "".join(_SIGNS[cell.state][0] for cell in cells)


def _count(cells: Sequence[Cell]) -> str:
    meant = [cell for cell in cells if cell.state != "meaningless"]
    works = sum(cell.state == "works" for cell in meant)
    return _("{works} of {all} work").format(works=works, all=len(meant))


def _colour(line: str, probe: Probe, verdict: Verdict, style: TableStyle) -> str:
    """Colour the verdict by its surprise and the strip sign by sign."""
    standing = f"{_STANDING_SIGNS[verdict.standing]} {standings()[verdict.standing]}"
    usual = {"supported": "ok", "limited": "warning"}.get(verdict.standing, "dim")
    colour = verdict.surprises[0].level if verdict.surprises else usual
    cells = probe.of(verdict.dtype)
    strip = "".join(style.paint(*_SIGNS[cell.state]) for cell in cells)
    line = line.replace(_strip(cells), strip, 1)
    return line.replace(standing, style.paint(standing, colour), 1)


def _with_why(line: str, painted: str, why: str, style: TableStyle) -> list[str]:
    """The reason beside the row where there is room, else under it."""
    if not why:
        return [painted.rstrip()]
    if not style.with_signs:  # the full text follows below the table
        return [f"{painted}  {wording.shorten(why, _WHY_IN_WORDS)}"]
    if len(line) + 2 + len(why) <= style.width:
        return [f"{painted}  {why}"]
    wrapped = _wrap(why, style, _WHY_LINES)
    return [painted.rstrip(), *(style.paint(f"    {part}", "dim") for part in wrapped)]


def _wrap(text: str, style: TableStyle, most: int) -> list[str]:
    return textwrap.wrap(text, max(40, style.width - 4), max_lines=most, placeholder=" …")


def _differing(word: str, differs: bool) -> str:
    return f"{word} ≠" if differs else word


def _yes_or_no(value: bool | None) -> str:
    return DASH if value is None else _("yes") if value else _("no")


def _legend(probe: Probe, verdicts: Sequence[Verdict], style: TableStyle) -> list[str]:
    """The signs that occur, and the order of the operations."""
    found = {cell.state for cell in probe.cells}
    signs = [f"{sign} {states()[state]}" for state, (sign, _s) in _SIGNS.items() if state in found]
    lines = _wrap("   ".join(signs), style, 2) if style.with_signs else []
    notes = [_("speed: relative to float32, with small tensors")]
    if any(v.differs_from_guides or v.differs_from_torch for v in verdicts):
        notes.append(_("≠ differs here"))
    names = _("operations: {names}").format(names=" ".join(probe.operations))
    lines += [" · ".join(notes), *(_wrap(names, style, 4) if style.with_signs else [])]
    return [style.paint(line, "dim") for line in lines]


def _cells_in_words(probe: Probe) -> list[str]:
    """Cells that do not work, each text once."""
    groups: dict[tuple[str, str, str | None], list[str]] = {}
    for cell in probe.cells:
        if cell.state not in ("works", "meaningless"):
            key = (cell.dtype, cell.state, cell.text)
            groups.setdefault(key, []).append(cell.operation)
    return [
        f"{dtype} {', '.join(operations)}: {states()[state]}" + (f": {text}" if text else "")
        for (dtype, state, text), operations in groups.items()
    ]


def _say_checks(probe: Probe) -> str:
    counts = Counter(check.state for check in probe.checks)
    number, here = len(probe.checks), counts.pop("wrong", 0)
    words = (
        _("{here} of {n} known silent bugs found")
        if here
        else _("none of {n} known silent bugs found")
    )
    others = [f"{count} {states()[state]}" for state, count in counts.items() if state != "right"]
    return "; ".join([words.format(here=here, n=number), *others])


def _footer(probe: Probe, style: TableStyle, path: str | None) -> list[str]:
    lines = [_say_checks(probe)]
    used = _(
        "took {seconds}; used up to {used} of memory beyond torch's own (limit {ceiling})"
    ).format(
        seconds=wording.duration(probe.seconds), used=wording.size(probe.memory),
        ceiling=wording.size(probe.ceiling),
    )  # fmt: skip
    lines.append(used)
    if path is not None:
        lines.append(_("saved in {path}").format(path=path))
    return [style.paint(line, "dim") for line in lines]
