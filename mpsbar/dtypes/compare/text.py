"""The words of a comparison, made of its plain data. Pure; needs no torch.

English until use_language(): this file imports nothing of mpsbar. What to_dict() has is English.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

Data = dict[str, Any]
_MOST_CULPRITS = 5
_MOST_MODULES = 8
# How far the usual round may lie above the best: then a speed is approximate, then not shown.
_UNSURE, _UNSTEADY = 0.15, 1.0
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


def _choose(singular: str, plural: str, count: int) -> str:
    return singular if count == 1 else plural


_translate: Callable[[str], str] = str
_translate_count: Callable[[str, str, int], str] = _choose
_measure: Callable[[str], int] = len


def use_language(
    translate: Callable[[str], str],
    translate_count: Callable[[str, str, int], str],
    measure: Callable[[str], int],
) -> None:
    """From now on in this process; `measure` counts the cells that a text takes in a terminal."""
    global _translate, _translate_count, _measure
    _translate, _translate_count, _measure = translate, translate_count, measure


def mark(text: str) -> str:
    """The text itself, to be translated where it is shown: programs read it in English."""
    return text


def _(text: str) -> str:
    return _translate(text) if text else ""


def ngettext(singular: str, plural: str, count: int) -> str:
    return _translate_count(singular, plural, count)


def build_headline(data: Data) -> str:
    """float32 works: … float16: NaN from layers.7.norm. English, for programs."""
    spoken = _translate, _translate_count, _measure
    use_language(str, _choose, len)
    try:
        return say_headline(data)
    finally:
        use_language(*spoken)


def say_headline(data: Data) -> str:
    """The same in the language that was chosen."""
    return " ".join(_end_sentence(say_dtype(name, found)) for name, found in data["dtypes"].items())


def say_dtype(name: str, found: Data) -> str:
    """One dtype in one sentence, without its full stop."""
    if found["state"] == "works":
        words = ", ".join(_say_results(found, name)) or _("nothing differs")
        return _("{name} works: {words}").format(name=name, words=words)
    if found["state"] == "crashed":
        return _("{name}: crashes Python ({problem})").format(
            name=name, problem=_say_filled_in(found["text"])
        )
    if found["state"] == "unchecked":
        where, text = _module(found["not_run"]["module"]), _first_sentence(found["not_run"]["text"])
        return _("{name}: not known, {where} could not be run piece by piece: {text}").format(
            name=name, where=where, text=_(text)
        )
    return f"{name}: {_say_problem(found)}"


def _end_sentence(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _say_results(found: Data, name: str) -> list[str]:
    words = []
    output = found.get("output")
    if output is not None:
        words.append(_say_output(output))
    if found.get("fallbacks"):
        times = sum(fallback["times"] for fallback in found["fallbacks"])
        text = ngettext(
            "{n} operation fell back to the CPU", "{n} operations fell back to the CPU", times
        )
        words.append(text.format(n=times))
    if (found.get("spread") or 0.0) > _UNSTEADY:
        words.append(_("its speed varied too much to measure"))
    elif name != "float32" and found.get("speed_to_float32"):
        speed = _say_speed(found["speed_to_float32"], found)
        words.append(_("{speed} float32's speed").format(speed=speed))
    elif found.get("speed_to_cpu"):
        speed = _say_speed(found["speed_to_cpu"], found)
        words.append(_("{speed} the CPU's speed").format(speed=speed))
    if name != "float32" and found.get("peak_to_float32"):
        words.append(_("{times:.2f}× its memory").format(times=found["peak_to_float32"]))
    return words


def _say_output(output: Data) -> str:
    same = output.get("same_top1")
    if same is None:
        return _("largest error {share}").format(share=say_share(output["largest"]))
    if same == 1:
        return _("same top-1")
    return _("same top-1 in {share}").format(share=f"{100 * same:.0f}%")


def _say_speed(speed: float, found: Data) -> str:
    words = f"{speed:.1f}×" if speed > 0.95 else f"{speed:.2f}×"
    if (found.get("spread") or 0.0) > _UNSURE:
        return _("about {speed}").format(speed=words)
    return words


def _say_problem(found: Data) -> str:
    """Name the first problem in the order of the model; an exception comes first."""
    raised, nonfinite = found.get("raised"), found.get("nonfinite")
    if raised:
        return _say_raised(_module(raised["module"]), raised["text"])
    first = found["culprits"][0] if found["culprits"] else None
    if first is not None and first["kind"] not in ("NaN", "Inf"):
        return say_culprit(first, found)
    if nonfinite:
        return _("{what} from {where}").format(
            what=nonfinite["what"], where=_module(nonfinite["module"])
        )
    if first is not None:
        return say_culprit(first, found)
    if found.get("unexplained"):
        return _say_unexplained(found["unexplained"])
    missing = ", ".join((found.get("gradients") or {}).get("missing", []))
    return _("no gradient for {names}").format(names=missing)


def _say_raised(where: str, text: str) -> str:
    return _("raises in {where}: {text}").format(where=where, text=_first_sentence(text))


def _say_unexplained(difference: Data) -> str:
    what = _say_filled_in(difference["label"])
    if difference["nonfinite"]:
        return _("{nonfinite} in the {what}, though from no module alone").format(
            nonfinite=difference["nonfinite"], what=what
        )
    return _("the {what} differs by {share}, though no module alone does").format(
        what=what, share=say_share(difference["largest"])
    )


# What the data has in English, with names and numbers filled in.
_FILLED_IN = (
    mark("gradient of {name}"),
    mark("input {number} of {name}, call {call}"),
    mark("the output of {name}, tensor {number}"),
    mark("input {number}"),
    mark("output"),
    mark("output {number}"),
    mark("{name}, a tensor of shape {shape}, was changed by the model"),
    mark("{name} was changed by the model"),
    mark("{name} holds too many objects: not all were watched"),
    mark("exit code {number}"),
)


def _say_filled_in(text: str) -> str:
    """gradient of weight, in the language that was chosen; "output" and other texts too."""
    for template in _FILLED_IN:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(template))
        match = re.fullmatch(pattern, text)
        if match:
            fields = match.groupdict()
            if template.endswith("{name}"):
                fields["name"] = _say_filled_in(fields["name"])  # gradient of input 0
            return _(template).format(**fields)
    return _(text)


def say_culprit(culprit: Data, found: Data) -> str:
    where = f"{_module(culprit['module'])} ({culprit['type']})"
    if culprit["kind"] == "raised":
        return _say_raised(where, culprit["text"])
    if culprit["kind"] == "parameter":
        return _("{where} holds {most:.3g}: too large for this dtype").format(
            where=where, most=culprit["largest_right"]
        )
    if culprit["kind"] in ("NaN", "Inf"):
        words = _("{what} from {where}").format(what=culprit["kind"], where=where)
        return words + _say_range(culprit, found)
    difference = culprit["difference"]
    what = "" if difference["label"] == "output" else f", {_say_filled_in(difference['label'])}"
    return _(
        "wrong results from {where}: off by up to {largest}, rounding explains {explained}"
    ).format(
        where=where + what,
        largest=say_share(difference["largest"]),
        explained=say_share(difference["tolerance"]),
    )


def _first_sentence(text: str) -> str:
    return text.split("\n", maxsplit=1)[0].partition(". ")[0]


def _say_range(culprit: Data, found: Data) -> str:
    most, holds = culprit.get("largest_right"), found["largest_number"]
    if most is None:
        return ""
    if most > holds:
        return _(": it should return up to {most:.3g}, but this dtype ends at {holds:.3g}").format(
            most=most, holds=holds
        )
    return _(
        ": its results (up to {most:.3g}) would fit, but values computed inside it don't"
    ).format(most=most)


def say_share(share: float | None) -> str:
    """Write an error relative to the usual size of a result: 4%, 1.0e-07, 20 times its size."""
    if share is None:
        return _("any amount")
    percent = 100 * share
    if percent >= 1000:
        return _("{times:.3g} times its size").format(times=share)
    return f"{percent:.3g}%" if percent >= 1e-3 else "0%" if share < 1e-12 else f"{share:.1e}"


def _module(name: str) -> str:
    return name or _("the model itself")


def render_text(data: Data) -> str:
    """The whole result, for a terminal or print()."""
    lines = [say_subject(data), ""]
    for name, found in data["dtypes"].items():
        lines += [
            _end_sentence(say_dtype(name, found)),
            *(f"    {line}" for line in say_details(found, data)),
        ]
    lines += ["", *_table(data), *_slowest(data)]
    lines += [_("Note: {note}.").format(note=_say_note(note)) for note in data["notes"]]
    lines += [
        _("Not restored: {text}.").format(text=_say_filled_in(text))
        for text in data["not_restored"]
    ]
    return "\n".join(lines).rstrip() + "\n"


def _say_note(note: str) -> str:
    """A sentence of ours; some end with the error of torch."""
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


def say_details(found: Data, data: Data) -> list[str]:
    """The details below the sentence of a dtype."""
    raised = found.get("raised") or {}
    lines = [raised["text"]] if raised and raised["text"] != _first_sentence(raised["text"]) else []
    others = [
        c for c in found["culprits"] if (c["module"], c["kind"]) != (raised.get("module"), "raised")
    ]
    headline = say_dtype("", found)
    sentences = [say_culprit(culprit, found) for culprit in others]
    shown = [sentence for sentence in sentences if sentence not in headline]
    lines += shown[:_MOST_CULPRITS]
    more = len(shown) - _MOST_CULPRITS
    if more > 0:
        lines.append(ngettext("and {n} more module", "and {n} more modules", more).format(n=more))
    lines += _say_tolerance(found, data) + _say_followers(found) + _say_fallbacks(found)
    lines += _say_training(found, data)
    if found["unchecked"]:
        first, number = found["unchecked"][0], len(found["unchecked"])
        text = ngettext(
            "{n} call could not be checked alone, first {where}: {text}",
            "{n} calls could not be checked alone, first {where}: {text}",
            number,
        )
        where, reason = _module(first["module"]), first["text"] or ""
        lines.append(text.format(n=number, where=where, text=_(reason)))
    lines += map(_say_note, found["notes"])
    return [line.replace("\n", " ") for line in lines]


def _say_followers(found: Data) -> list[str]:
    names = found["followers"]
    if not names:
        return []
    text = ngettext(
        "{n} other module differs only because its input does: {names}",
        "{n} other modules differ only because their inputs do: {names}",
        len(names),
    )
    return [text.format(n=len(names), names=_list(names))]


def _say_fallbacks(found: Data) -> list[str]:
    """One line for each operation, with the modules it was called in."""
    operations: dict[str, dict[str, int]] = {}
    for fallback in found["fallbacks"]:
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
    return ", ".join(map(_module, names[:3])) + (" …" if len(names) > 3 else "")


def _say_tolerance(found: Data, data: Data) -> list[str]:
    first = next((c["difference"] for c in found["culprits"] if c["kind"] == "differs"), None)
    if first is None:
        return []
    typical, share = say_share(first["typical"]), say_share(first["share"])
    rule = _("{n:.0f} roundings of {eps:.2g} in each operation").format(
        n=data["steps"], eps=found["eps"]
    )
    if first["longest_sum"] > 1:
        rule += _(", more in sums (of up to {n} numbers)").format(n=first["longest_sum"])
    text = _("typical error {typical}; {share} of the values exceed rounding: {rule}")
    return [text.format(typical=typical, share=share, rule=rule)]


def _say_training(found: Data, data: Data) -> list[str]:
    if found.get("loss") is None:
        return []
    text = _("loss {loss:.6g}, {right:.6g} on the CPU")
    lines = [text.format(loss=found["loss"], right=data["reference"]["loss"])]
    gradients = found["gradients"]
    if gradients["worst"] is not None:
        text = _("{n} gradients, the largest error is {share} in {name}")
        share = say_share(gradients["largest"])
        lines.append(text.format(n=gradients["compared"], share=share, name=gradients["worst"]))
    return lines


def _table(data: Data) -> list[str]:
    """Time, speed, memory and error of each dtype."""
    heads = [_("Time"), _("TO CPU"), _("TO FLOAT32"), _("peak"), _("ERROR")]
    rows = [["", *(head.upper() for head in heads)]]
    cpu = data["reference"]["seconds"]
    if cpu is None and all(found["seconds"] is None for found in data["dtypes"].values()):
        return []
    rows.append([f"cpu {data['reference']['dtype']}", say_seconds(cpu), "", "", "", ""])
    for name, found in data["dtypes"].items():
        speeds = [found["speed_to_cpu"], found["speed_to_float32"]]
        rows.append([
            name, say_seconds(found["seconds"]),
            *("–" if speed is None else _say_speed(speed, found) for speed in speeds),
            ("≥ " if found["peak_is_sampled"] else "") + _size(found["peak"]),
            say_share(found["output"]["largest"]) if found["output"] else "–",
        ])  # fmt: skip
    lines = align(rows)
    if any(found["peak_is_sampled"] for found in data["dtypes"].values()):
        lines.append(_("≥: read between modules; torch counts peaks on MPS from 2.13."))
    return lines


def _slowest(data: Data) -> list[str]:
    if not data["slowest"]:
        return []
    names = ["cpu", *data["dtypes"]]
    rows = [[_("SLOWEST MODULES"), *names]]
    for row in data["slowest"][:_MOST_MODULES]:
        seconds = [say_seconds(row["seconds"].get(name)) for name in names]
        rows += [[f"{_module(row['module'])} ({row['type']})", *seconds]]
    return ["", *align(rows)]


def align(rows: list[list[str]]) -> list[str]:
    widths = [max(_measure(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell + " " * (w - _measure(cell)) for cell, w in zip(row, widths)).rstrip()
        for row in rows
    ]


def say_seconds(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(count: int | None) -> str:
    """As in ui/text/wording, which is not at hand in the user's Python."""
    if count is None:
        return "–"
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1024
        units.pop(0)
    digits = 1 if units[0] not in ("B", "kB") and value < 99.95 else 0
    return f"{value:.{digits}f} {units[0]}"


def render_html(data: Data) -> str:
    """For a notebook: one line a dtype, and the whole text to unfold."""
    lines = [
        f'<li style="list-style:none"><b style="color:{_COLOURS[found["state"]]}">'
        f"{_SIGNS[found['state']]}</b> {escape(say_dtype(name, found))}</li>"
        for name, found in data["dtypes"].items()
    ]
    summary = _("{model}, module by module").format(model=data["model"])
    return (
        f'<div><ul style="padding-left:0">{"".join(lines)}</ul>'
        f"<details><summary>{escape(summary)}</summary>"
        f"<pre>{escape(render_text(data))}</pre></details></div>"
    )
