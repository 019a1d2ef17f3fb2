"""Renders the whole result of a comparison: as text, and as HTML for a notebook. Pure; no torch."""

from __future__ import annotations

from html import escape

from .text import (
    Data,
    _,
    count_cells,
    end_sentence,
    first_sentence,
    ngettext,
    say_culprit,
    say_dtype,
    say_filled_in,
    say_module,
    say_share,
    say_speed,
)

_MAX_CULPRITS = 5
_MAX_MODULES = 8
_COLOURS = {
    "works": "#1a7f37",
    "differs": "#cf222e",
    "nonfinite": "#cf222e",
    "raised": "#9a6700",
    "crashed": "#cf222e",
    "unchecked": "#9a6700",
}
_SIGNS = {
    "works": "✓",
    "differs": "✗",
    "nonfinite": "✗",
    "raised": "!",
    "crashed": "✗",
    "unchecked": "?",
}


def render_text(data: Data) -> str:
    """Renders the whole result for a terminal or print()."""
    lines = [say_subject(data), ""]
    for name, result in data["dtypes"].items():
        lines += [
            end_sentence(say_dtype(name, result)),
            *(f"    {line}" for line in say_details(result, data)),
        ]
    lines += ["", *_table(data), *_slowest(data)]
    lines += [_("Note: {note}.").format(note=_say_note(note)) for note in data["notes"]]
    lines += [
        _("Not restored: {text}.").format(text=say_filled_in(text)) for text in data["not_restored"]
    ]
    return "\n".join(lines).rstrip() + "\n"


def _say_note(note: str) -> str:
    """Translates a note, which may end with an error of torch."""
    words = _(note)
    head, colon, problem = note.partition(": ")
    return words if words != note else f"{_(head)}{colon}{problem}"


def say_subject(data: Data) -> str:
    number = data["modules"]
    modules = ngettext("{n} module", "{n} modules", number).format(n=number)
    parameters = _("{n} parameters").format(n=_count(data["parameters"]))
    return _("{model} ({size}) on {device} against {against}, torch {torch}").format(
        model=data["model"],
        size=f"{modules}, {parameters}",
        device=data["device"],
        against=f"{data['reference']['device']} {data['reference']['dtype']}",
        torch=data["torch"],
    )


def _count(number: int) -> str:
    if number >= 1e9:
        return _("{n:.1f} billion").format(n=number / 1e9)
    return _("{n:.1f} million").format(n=number / 1e6) if number >= 1e6 else str(number)


def say_details(result: Data, data: Data) -> list[str]:
    """Returns the details below the sentence of a dtype."""
    raised = result.get("raised") or {}
    lines = [raised["text"]] if raised and raised["text"] != first_sentence(raised["text"]) else []
    others = [
        c
        for c in result["culprits"]
        if (c["module"], c["kind"]) != (raised.get("module"), "raised")
    ]
    headline = say_dtype("", result)
    sentences = [say_culprit(culprit, result) for culprit in others]
    shown = [sentence for sentence in sentences if sentence not in headline]
    lines += shown[:_MAX_CULPRITS]
    more = len(shown) - _MAX_CULPRITS
    if more > 0:
        lines.append(ngettext("and {n} more module", "and {n} more modules", more).format(n=more))
    lines += _say_tolerance(result, data) + _say_followers(result) + _say_fallbacks(result)
    lines += _say_training(result, data)
    if result["unchecked"]:
        first, number = result["unchecked"][0], len(result["unchecked"])
        text = ngettext(
            "{n} call could not be checked alone, first {where}: {text}",
            "{n} calls could not be checked alone, first {where}: {text}",
            number,
        )
        where, reason = say_module(first["module"]), first["text"] or ""
        lines.append(text.format(n=number, where=where, text=_(reason)))
    lines += map(_say_note, result["notes"])
    return [line.replace("\n", " ") for line in lines]


def _say_followers(result: Data) -> list[str]:
    names = result["followers"]
    if not names:
        return []
    text = ngettext(
        "{n} other module differs only because its input does: {names}",
        "{n} other modules differ only because their inputs do: {names}",
        len(names),
    )
    return [text.format(n=len(names), names=_list(names))]


def _say_fallbacks(result: Data) -> list[str]:
    """Returns a line for each operation, with the modules it was called in."""
    operations: dict[str, dict[str, int]] = {}
    for fallback in result["fallbacks"]:
        operations.setdefault(fallback["operation"], {})[fallback["module"]] = fallback["times"]
    lines = []
    for name, modules in operations.items():
        number = sum(modules.values())
        text = ngettext(
            "{name} fell back to the CPU {n} time: in {modules}",
            "{name} fell back to the CPU {n} times: in {modules}",
            number,
        )
        lines.append(text.format(name=name, n=number, modules=_list(list(modules))))
    return lines


def _list(names: list[str]) -> str:
    return ", ".join(map(say_module, names[:3])) + (" …" if len(names) > 3 else "")


def _say_tolerance(result: Data, data: Data) -> list[str]:
    first = next((c["difference"] for c in result["culprits"] if c["kind"] == "differs"), None)
    if first is None:
        return []
    typical, share = say_share(first["typical"]), say_share(first["share"])
    rule = _("{n:.0f} roundings of {eps:.2g} in each operation").format(
        n=data["steps"], eps=result["eps"]
    )
    if first["longest_sum"] > 1:
        rule += _(", more in sums (of up to {n} numbers)").format(n=first["longest_sum"])
    text = _("typical error {typical}; {share} of the values exceed rounding: {rule}")
    return [text.format(typical=typical, share=share, rule=rule)]


def _say_training(result: Data, data: Data) -> list[str]:
    if result.get("loss") is None:
        return []
    text = _("loss {loss:.6g}, {right:.6g} on the CPU")
    lines = [text.format(loss=result["loss"], right=data["reference"]["loss"])]
    gradients = result["gradients"]
    if gradients["worst"] is not None:
        text = _("{n} gradients, the largest error is {share} in {name}")
        share = say_share(gradients["largest"])
        lines.append(text.format(n=gradients["compared"], share=share, name=gradients["worst"]))
    return lines


def _table(data: Data) -> list[str]:
    """Renders time, speed, memory and error of each dtype as a table."""
    headers = [_("RUN TIME"), _("VS CPU"), _("VS FLOAT32"), _("PEAK"), _("ERROR")]
    rows = [["", *headers]]
    cpu = data["reference"]["seconds"]
    if cpu is None and all(result["seconds"] is None for result in data["dtypes"].values()):
        return []
    rows.append([f"cpu {data['reference']['dtype']}", say_seconds(cpu), "", "", "", ""])
    for name, result in data["dtypes"].items():
        speeds = [result["speed_to_cpu"], result["speed_to_float32"]]
        rows.append([
            name, say_seconds(result["seconds"]),
            *("–" if speed is None else say_speed(speed, result) for speed in speeds),
            ("≥ " if result["peak_is_sampled"] else "") + _size(result["peak"]),
            say_share(result["output"]["largest"]) if result["output"] else "–",
        ])  # fmt: skip
    lines = align(rows)
    if any(result["peak_is_sampled"] for result in data["dtypes"].values()):
        lines.append(_("≥: read between modules; torch counts peaks on MPS from 2.13."))
    return lines


def _slowest(data: Data) -> list[str]:
    if not data["slowest"]:
        return []
    names = ["cpu", *data["dtypes"]]
    rows = [[_("SLOWEST MODULES"), *names]]
    for row in data["slowest"][:_MAX_MODULES]:
        seconds = [say_seconds(row["seconds"].get(name)) for name in names]
        rows += [[f"{say_module(row['module'])} ({row['type']})", *seconds]]
    return ["", *align(rows)]


def align(rows: list[list[str]]) -> list[str]:
    widths = [max(count_cells(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell + " " * (w - count_cells(cell)) for cell, w in zip(row, widths)).rstrip()
        for row in rows
    ]


def say_seconds(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(count: int | None) -> str:
    """Words a size as ui/text/wording does, which is not at hand in the user's Python."""
    if count is None:
        return "–"
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1024
        units.pop(0)
    digits = 1 if units[0] not in ("B", "kB") and value < 99.95 else 0
    return f"{value:.{digits}f} {units[0]}"


def render_html(data: Data) -> str:
    """Renders a line for each dtype for a notebook, and the whole text to unfold."""
    lines = [
        f'<li style="list-style:none"><b style="color:{_COLOURS[result["state"]]}">'
        f"{_SIGNS[result['state']]}</b> {escape(say_dtype(name, result))}</li>"
        for name, result in data["dtypes"].items()
    ]
    summary = _("{model}, module by module").format(model=data["model"])
    return (
        f'<div><ul style="padding-left:0">{"".join(lines)}</ul>'
        f"<details><summary>{escape(summary)}</summary>"
        f"<pre>{escape(render_text(data))}</pre></details></div>"
    )
