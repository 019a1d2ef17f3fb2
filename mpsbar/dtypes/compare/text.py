"""The sentences about a comparison, made of its plain data. Pure; needs no torch.

English until use_language(): this file imports nothing of mpsbar. What to_dict() has is English.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
# What is compared unless the caller says otherwise.
DTYPES = ("float32", "float16", "bfloat16", "autocast")
# How far the usual round may lie above the best: then a speed is approximate, then not shown.
_UNSURE, _UNSTEADY = 0.15, 1.0


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
    """Sets the language of this process; `measure` counts the cells of a text in a terminal."""
    global _translate, _translate_count, _measure
    _translate, _translate_count, _measure = translate, translate_count, measure


def mark(text: str) -> str:
    """Marks a text that is translated where it is shown: programs read it in English."""
    return text


def _(text: str) -> str:
    return _translate(text) if text else ""


def ngettext(singular: str, plural: str, count: int) -> str:
    return _translate_count(singular, plural, count)


def count_cells(text: str) -> int:
    """Count the cells that a text takes in a terminal."""
    return _measure(text)


def build_headline(data: Data) -> str:
    """Says for programs, in English: float32 works: … float16: NaN from layers.7.norm."""
    spoken = _translate, _translate_count, _measure
    use_language(str, _choose, len)
    try:
        return say_headline(data)
    finally:
        use_language(*spoken)


def say_headline(data: Data) -> str:
    """Says the headline in the language that was chosen."""
    return " ".join(
        end_sentence(say_dtype(name, result)) for name, result in data["dtypes"].items()
    )


def say_dtype(name: str, result: Data) -> str:
    """Says what was found in a dtype, in one sentence without its full stop."""
    if result["state"] == "works":
        words = ", ".join(_say_results(result, name)) or _("nothing differs")
        return _("{name} works: {words}").format(name=name, words=words)
    if result["state"] == "crashed":
        return _("{name}: crashes Python ({problem})").format(
            name=name, problem=say_filled_in(result["text"])
        )
    if result["state"] == "unchecked":
        where, text = (
            say_module(result["not_run"]["module"]),
            first_sentence(result["not_run"]["text"]),
        )
        return _("{name}: not known, {where} could not be run piece by piece: {text}").format(
            name=name, where=where, text=_(text)
        )
    return f"{name}: {_say_problem(result)}"


def end_sentence(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _say_results(result: Data, name: str) -> list[str]:
    words = []
    output = result.get("output")
    if output is not None:
        words.append(_say_output(output))
    if result.get("fallbacks"):
        times = sum(fallback["times"] for fallback in result["fallbacks"])
        text = ngettext(
            "{n} operation fell back to the CPU", "{n} operations fell back to the CPU", times
        )
        words.append(text.format(n=times))
    if (result.get("spread") or 0.0) > _UNSTEADY:
        words.append(_("its speed varied too much to measure"))
    elif name != "float32" and result.get("speed_to_float32"):
        speed = say_speed(result["speed_to_float32"], result)
        words.append(_("{speed} float32's speed").format(speed=speed))
    elif result.get("speed_to_cpu"):
        speed = say_speed(result["speed_to_cpu"], result)
        words.append(_("{speed} the CPU's speed").format(speed=speed))
    if name != "float32" and result.get("peak_to_float32"):
        words.append(_("{times:.2f}× its memory").format(times=result["peak_to_float32"]))
    return words


def _say_output(output: Data) -> str:
    same = output.get("same_top1")
    if same is None:
        return _("largest error {share}").format(share=say_share(output["largest"]))
    if same == 1:
        return _("same top-1")
    return _("same top-1 in {share}").format(share=f"{100 * same:.0f}%")


def say_speed(speed: float, result: Data) -> str:
    words = f"{speed:.1f}×" if speed > 0.95 else f"{speed:.2f}×"
    if (result.get("spread") or 0.0) > _UNSURE:
        return _("about {speed}").format(speed=words)
    return words


def _say_problem(result: Data) -> str:
    """Name the first problem in the order of the model; an exception comes first."""
    raised, nonfinite = result.get("raised"), result.get("nonfinite")
    if raised:
        return _say_raised(say_module(raised["module"]), raised["text"])
    first = result["culprits"][0] if result["culprits"] else None
    if first is not None and first["kind"] not in ("NaN", "Inf"):
        return say_culprit(first, result)
    if nonfinite:
        return _("{what} from {where}").format(
            what=nonfinite["what"], where=say_module(nonfinite["module"])
        )
    if first is not None:
        return say_culprit(first, result)
    if result.get("unexplained"):
        return _say_unexplained(result["unexplained"])
    missing = ", ".join((result.get("gradients") or {}).get("missing", []))
    return _("no gradient for {names}").format(names=missing)


def _say_raised(where: str, text: str) -> str:
    return _("raises in {where}: {text}").format(where=where, text=first_sentence(text))


def _say_unexplained(difference: Data) -> str:
    what = say_filled_in(difference["label"])
    if difference["nonfinite"]:
        return _("{nonfinite} in the {what}, although no single module produces it").format(
            nonfinite=difference["nonfinite"], what=what
        )
    return _("the {what} differs by {share}, although no single module does").format(
        what=what, share=say_share(difference["largest"])
    )


# What the data has in English, with names and numbers filled in.
_FILLED_IN = (
    mark("gradient of {name}"),
    mark("input {number} of {name}, call {call}"),
    mark("the output of {name}, tensor {number}"),
    mark("input {number}"),
    mark("signal {number}"),
    mark("output"),
    mark("output {number}"),
    mark("{name}, a tensor of shape {shape}, was changed by the model"),
    mark("{name} was changed by the model"),
    mark("{name} holds too many objects: not all were watched"),
    mark("exit code {number}"),
)


def say_filled_in(text: str) -> str:
    """Translates such as "gradient of weight"; a name alone stays as it is."""
    for template in _FILLED_IN:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(template))
        match = re.fullmatch(pattern, text)
        if match:
            fields = match.groupdict()
            if template.endswith("{name}"):
                fields["name"] = say_filled_in(fields["name"])  # gradient of input 0
            return _(template).format(**fields)
    return text


def say_culprit(culprit: Data, result: Data) -> str:
    where = f"{say_module(culprit['module'])} ({culprit['type']})"
    if culprit["kind"] == "raised":
        return _say_raised(where, culprit["text"])
    if culprit["kind"] == "parameter":
        return _("{where} holds {most:.3g}: too large for this dtype").format(
            where=where, most=culprit["largest_right"]
        )
    if culprit["kind"] in ("NaN", "Inf"):
        words = _("{what} from {where}").format(what=culprit["kind"], where=where)
        return words + _say_range(culprit, result)
    difference = culprit["difference"]
    what = "" if difference["label"] == "output" else f", {say_filled_in(difference['label'])}"
    return _(
        "wrong results from {where}: off by up to {largest}; rounding explains only {explained}"
    ).format(
        where=where + what,
        largest=say_share(difference["largest"]),
        explained=say_share(difference["tolerance"]),
    )


def first_sentence(text: str) -> str:
    return text.split("\n", maxsplit=1)[0].partition(". ")[0]


def _say_range(culprit: Data, result: Data) -> str:
    most, holds = culprit.get("largest_right"), result["largest_number"]
    if most is None:
        return ""
    if most > holds:
        return _(
            ": it should return up to {most:.3g}, "
            "but the largest value of this dtype is {holds:.3g}"
        ).format(most=most, holds=holds)
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


def say_module(name: str) -> str:
    return name or _("the model itself")
