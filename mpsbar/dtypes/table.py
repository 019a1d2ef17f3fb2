"""Renders the dtype probe as a table: with signs on a terminal, in words elsewhere. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mpsbar.core.dtype_results import Cell, Probe
from mpsbar.dtypes.headlines import find_headlines, say_change
from mpsbar.dtypes.operations import COMPILE
from mpsbar.dtypes.summary import DASH, say_speed
from mpsbar.dtypes.text import (
    generalise_error,
    say_count,
    say_early_end,
    say_more,
    say_saved,
    say_subject,
    say_why,
    states,
    support_levels,
)
from mpsbar.dtypes.verdicts import Change, Verdict, judge_dtypes
from mpsbar.language import _
from mpsbar.ui.text import wording
from mpsbar.ui.text.cells import Paint, align, in_colour, plain, width, wrap

# A sign for each state, and its style; the legend names those that occur.
_SIGNS = {
    "works": ("●", "ok"), "inaccurate": ("✗", "critical"), "fallback": ("◐", "warning"),
    "unsupported": ("○", "plain"), "crashed": ("!", "critical"), "hung": ("∞", "critical"),
    "meaningless": ("·", "dim"), "no_memory": ("?", "dim"), "unknown": ("?", "dim"),
}  # fmt: skip
_SUPPORT_SIGNS = {"supported": "✓", "limited": "~", "unsupported": "✗", "unknown": "?"}
_MAX_CHANGES = 40
_MAX_OTHERS = 2
_WHY_LINES = 3


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
    last: Probe | None = None,
) -> str:
    """Renders the probe; `path` is the file of the result, `changes` are since another one."""
    verdicts = judge_dtypes(probe)
    parts = [
        "" if changes is None else render_changes(changes),
        "\n".join([*_headlines(probe, style, last), style.paint(say_subject(probe), "dim")]),
        "\n".join(_table(probe, verdicts, style)),
        "\n".join(_legend(probe, verdicts, style)),
        "\n".join(_failures(probe, style)),
        "\n".join(_footer(probe, style, path)),
    ]
    return "\n\n".join(part for part in parts if part)


def render_changes(changes: Sequence[Change]) -> str:
    lines = [f"  {say_change(change)}" for change in changes[:_MAX_CHANGES]]
    if len(changes) > _MAX_CHANGES:
        lines.append("  " + say_more(len(changes) - _MAX_CHANGES))
    if all(change.kind == "subject" for change in changes):
        lines.append("  " + _("no operation or dtype changed"))
    return "\n".join([_("What changed:"), *lines])


def _headlines(probe: Probe, style: TableStyle, last: Probe | None) -> list[str]:
    """Renders each headline on a line of its own, the most important first."""
    signs = {"critical": "✗ ", "warning": "! "} if style.with_signs else {}
    lines = [
        style.paint(signs.get(headline.level, "") + headline.text, headline.level)
        for headline in find_headlines(probe, last)
    ]
    if probe.ended in ("cancelled", "stopped"):
        total = len(probe.cells) + len(probe.checks)
        lines.append(style.paint(say_early_end(probe, probe.measured, total), "warning"))
    return lines


def _table(probe: Probe, verdicts: Sequence[Verdict], style: TableStyle) -> list[str]:
    header = [_("DTYPE"), _("HERE"), _("GUIDES"), _("TORCH"), _("OPERATIONS"), _("SPEED"), ""]
    rows = [_row(probe, verdict, style) for verdict in verdicts]
    shown = [i for i in range(len(header)) if any(row[i] not in ("", DASH) for row in rows)]
    table = [[row[i] for i in shown] for row in [header, *rows]]
    fixed = len(shown) - (1 if len(header) - 1 in shown else 0)
    aligned = align([row[:fixed] for row in table])
    lines = []
    for number, (row, line) in enumerate(zip(table, aligned, strict=True)):
        painted = (
            style.paint(line, "head")
            if not number
            else _colour(line, probe, verdicts[number - 1], style)
        )
        lines += _with_why(line, painted, row[fixed] if fixed < len(row) else "", style)
    return lines


def _row(probe: Probe, verdict: Verdict, style: TableStyle) -> list[str]:
    sign = f"{_SUPPORT_SIGNS[verdict.support]} " if style.with_signs else ""
    return [
        verdict.dtype,
        sign + support_levels()[verdict.support],
        _differing(support_levels().get(verdict.guides or "", DASH), verdict.differs_from_guides),
        _differing(_yes_or_no(verdict.torch_says), verdict.differs_from_torch),
        _strip(probe, verdict.dtype) if style.with_signs else _count(probe.of(verdict.dtype)),
        say_speed(verdict),
        say_why(verdict, with_error=False),
    ]


def _find_signs(probe: Probe, dtype: str) -> list[tuple[str, str]]:
    """Finds a sign and its style for each operation."""
    known = {cell.operation: cell.state for cell in probe.of(dtype)}
    return [_SIGNS[known.get(operation, "meaningless")] for operation in probe.operations]


def _strip(probe: Probe, dtype: str) -> str:
    return "".join(sign for sign, _style in _find_signs(probe, dtype))


def _count(cells: Sequence[Cell]) -> str:
    meant = [c for c in cells if c.state != "meaningless" and c.operation != COMPILE]
    works = sum(cell.state == "works" for cell in meant)
    return _("{works} of {all} work").format(works=works, all=len(meant))


def _colour(line: str, probe: Probe, verdict: Verdict, style: TableStyle) -> str:
    """Colour the verdict by its surprise and the strip sign by sign."""
    support = f"{_SUPPORT_SIGNS[verdict.support]} {support_levels()[verdict.support]}"
    usual = {"supported": "ok", "limited": "warning"}.get(verdict.support, "dim")
    colour = verdict.surprises[0].level if verdict.surprises else usual
    signs = _find_signs(probe, verdict.dtype)
    strip = "".join(style.paint(sign, of_sign) for sign, of_sign in signs)
    line = line.replace(_strip(probe, verdict.dtype), strip, 1)
    return line.replace(support, style.paint(support, colour), 1)


def _with_why(line: str, painted: str, why: str, style: TableStyle) -> list[str]:
    """Puts the reason beside the row where there is room, else under it."""
    if not why:
        return [painted.rstrip()]
    if not style.with_signs or width(line) + 2 + width(why) <= style.width:
        return [f"{painted}  {why}"]
    wrapped = _wrap(why, style, _WHY_LINES)
    return [painted.rstrip(), *(style.paint(f"    {part}", "dim") for part in wrapped)]


def _wrap(text: str, style: TableStyle, most: int) -> list[str]:
    """Wraps at whole words; what does not fit into `most` lines ends with an ellipsis."""
    room = max(40, style.width - 4)
    lines = [line.rstrip() for line in wrap(text, room)]
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    while width(f"{last} …") > room:
        last = last.rpartition(" ")[0]
    return [*lines[: most - 1], f"{last} …"]


def _differing(word: str, differs: bool) -> str:
    return f"{word} ≠" if differs else word


def _yes_or_no(value: bool | None) -> str:
    return DASH if value is None else _("yes") if value else _("no")


def _legend(probe: Probe, verdicts: Sequence[Verdict], style: TableStyle) -> list[str]:
    """Renders the signs that occur, and the order of the operations."""
    occurring = {cell.state for cell in probe.cells}
    signs = [
        f"{sign} {states()[state]}" for state, (sign, _s) in _SIGNS.items() if state in occurring
    ]
    lines = _wrap("   ".join(signs), style, 2) if style.with_signs else []
    notes = _say_speeds(probe, verdicts)
    if any(v.differs_from_guides or v.differs_from_torch for v in verdicts):
        notes.append(_("≠ differs from what was measured here"))
    names = _("operations: {names}").format(names=" ".join(probe.operations))
    note = " · ".join(notes)
    if style.with_signs:
        lines += [*(_wrap(note, style, 4) if note else []), *_wrap(names, style, 4)]
    elif note:
        lines.append(note)
    return [style.paint(line, "dim") for line in lines]


def _say_speeds(probe: Probe, verdicts: Sequence[Verdict]) -> list[str]:
    """Says what the speeds were measured with, and whether they are rough."""
    if all(verdict.speed is None for verdict in verdicts):
        was_tried = any(speed.size for speed in probe.speeds)
        return [_("no speed was measured: one call took too long")] if was_tried else []
    sizes = [f"{s.operation} {s.size}" for s in probe.speeds if "float32" in s.seconds and s.size]
    cores = _("one core") if probe.device == "cpu" else probe.device
    text = _("speed: relative to float32, median of {sizes} on {where}").format(
        sizes=", ".join(sizes), where=cores
    )
    if any(verdict.is_speed_rough for verdict in verdicts):
        text += _("; ~ approximate: the computer was busy, measure again when it is idle")
    return [text]


def _failures(probe: Probe, style: TableStyle) -> list[str]:
    """Lists what does not work and why in torch's words, each sentence only once."""
    groups: dict[tuple[str, str | None], list[Cell]] = {}
    for cell in probe.cells:
        if cell.state not in ("works", "meaningless", "unknown"):
            groups.setdefault((cell.state, generalise_error(cell)), []).append(cell)
    lines: list[str] = []
    for (state, _kind), cells in groups.items():
        text = next((cell.text for cell in cells if cell.text), None)
        where = "; ".join(_say_where(probe, cells))
        whole = f"{where}: {states()[state]}" + (f": {text}" if text else "")
        if style.with_signs:
            room = max(40, style.width)
            first = wrap(whole, room)[0]
            more = whole[len(first) :].strip()
            lines += [first, *(f"  {line}" for line in (wrap(more, room - 2) if more else ()))]
        else:
            lines.append(whole)
    return lines


def _say_where(probe: Probe, cells: Sequence[Cell]) -> list[str]:
    """Says where, such as "float64 all operations" and "int8, uint8 all but copy"."""
    by_operations: dict[tuple[str, ...], list[str]] = {}
    for dtype in dict.fromkeys(cell.dtype for cell in cells):
        names = tuple(cell.operation for cell in cells if cell.dtype == dtype)
        by_operations.setdefault(names, []).append(dtype)
    parts = []
    for names, dtypes in by_operations.items():
        meant = [c.operation for c in probe.of(dtypes[0]) if c.state != "meaningless"]
        others = [name for name in meant if name not in names]
        operations = ", ".join(names)
        if not others:
            operations = _("all operations")
        elif len(names) > _MAX_OTHERS >= len(others):
            operations = _("all but {operations}").format(operations=", ".join(others))
        parts.append(f"{', '.join(dtypes)} {operations}")
    return parts


def _say_checks(probe: Probe) -> str:
    counts = Counter(check.state for check in probe.checks)
    number, here = len(probe.checks), counts.pop("wrong", 0)
    words = (
        _("{here} of {n} known silent bugs found")
        if here
        else _("none of {n} known silent bugs found")
    )
    others = [say_count(n, states()[state]) for state, n in counts.items() if state != "right"]
    return "; ".join([words.format(here=here, n=number), *others])


def _say_compile(probe: Probe) -> list[str]:
    """Says such as "torch.compile: float32 works, float16 wrong results, bfloat16 raises"."""
    words = states() | {"unsupported": _("raises")}
    cells = [cell for cell in probe.cells if cell.operation == COMPILE]
    parts = [f"{cell.dtype} {words[cell.state]}" for cell in cells if cell.state != "meaningless"]
    return [f"torch.compile: {', '.join(parts)}"] if parts else []


def _footer(probe: Probe, style: TableStyle, path: str | None) -> list[str]:
    lines = [*_say_compile(probe), _say_checks(probe)]
    used = _(
        "took {seconds}; used up to {used} of memory beyond torch's own (limit {ceiling})"
    ).format(
        seconds=wording.duration(probe.seconds), used=wording.size(probe.memory),
        ceiling=wording.size(probe.ceiling),
    )  # fmt: skip
    lines.append(used)
    if path is not None:
        lines.append(say_saved(path))
    return [style.paint(line, "dim") for line in lines]
