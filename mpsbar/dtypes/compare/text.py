"""The words of a comparison, made of its plain data. Pure; needs no torch."""

from __future__ import annotations

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


def build_headline(data: Data) -> str:
    """float32 works: … float16: NaN from layers.7.norm."""
    return " ".join(_end_sentence(say_dtype(name, found)) for name, found in data["dtypes"].items())


def say_dtype(name: str, found: Data) -> str:
    """One dtype in one sentence, without its full stop."""
    if found["state"] == "works":
        return f"{name} works: {', '.join(_say_results(found, name)) or 'nothing differs'}"
    if found["state"] == "crashed":
        return f"{name}: crashes Python ({found['text']})"
    if found["state"] == "unchecked":
        where, text = _module(found["not_run"]["module"]), _first_sentence(found["not_run"]["text"])
        return f"{name}: not known, {where} could not be run piece by piece: {text}"
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
        words.append(f"{plural(times, 'operation')} fell back to the CPU")
    if (found.get("spread") or 0.0) > _UNSTEADY:
        words.append("its speed varied too much to measure")
    elif name != "float32" and found.get("speed_to_float32"):
        words.append(f"{_say_speed(found['speed_to_float32'], found)} float32's speed")
    elif found.get("speed_to_cpu"):
        words.append(f"{_say_speed(found['speed_to_cpu'], found)} the CPU's speed")
    if name != "float32" and found.get("peak_to_float32"):
        words.append(f"{found['peak_to_float32']:.2f}× its memory")
    return words


def _say_output(output: Data) -> str:
    same = output.get("same_top1")
    if same is None:
        return f"largest error {say_share(output['largest'])}"
    return "same top-1" if same == 1 else f"same top-1 in {100 * same:.0f}%"


def _say_speed(speed: float, found: Data) -> str:
    about = "about " if (found.get("spread") or 0.0) > _UNSURE else ""
    return f"{about}{speed:.1f}×" if speed > 0.95 else f"{about}{speed:.2f}×"


def _say_problem(found: Data) -> str:
    """Name the first problem in the order of the model; an exception comes first."""
    raised, nonfinite = found.get("raised"), found.get("nonfinite")
    if raised:
        return f"raises in {_module(raised['module'])}: {_first_sentence(raised['text'])}"
    first = found["culprits"][0] if found["culprits"] else None
    if first is not None and first["kind"] not in ("NaN", "Inf"):
        return say_culprit(first, found)
    if nonfinite:
        return f"{nonfinite['what']} from {_module(nonfinite['module'])}"
    if first is not None:
        return say_culprit(first, found)
    if found.get("unexplained"):
        return _say_unexplained(found["unexplained"])
    return "no gradient for " + ", ".join((found.get("gradients") or {}).get("missing", []))


def _say_unexplained(difference: Data) -> str:
    what = f"the {difference['label']}"
    if difference["nonfinite"]:
        return f"{difference['nonfinite']} in {what}, though from no module alone"
    return f"{what} differs by {say_share(difference['largest'])}, though no module alone does"


def say_culprit(culprit: Data, found: Data) -> str:
    where = f"{_module(culprit['module'])} ({culprit['type']})"
    if culprit["kind"] == "raised":
        return f"raises in {where}: {_first_sentence(culprit['text'])}"
    if culprit["kind"] == "parameter":
        return f"{where} holds {culprit['largest_right']:.3g}: too large for this dtype"
    if culprit["kind"] in ("NaN", "Inf"):
        return f"{culprit['kind']} from {where}{_say_range(culprit, found)}"
    difference = culprit["difference"]
    what = "" if difference["label"] == "output" else f", {difference['label']}"
    largest = say_share(difference["largest"])
    explained = say_share(difference["tolerance"])
    return (
        f"wrong results from {where}{what}: off by up to {largest}, rounding explains {explained}"
    )


def _first_sentence(text: str) -> str:
    return text.split("\n", maxsplit=1)[0].partition(". ")[0]


def _say_range(culprit: Data, found: Data) -> str:
    most, holds = culprit.get("largest_right"), found["largest_number"]
    if most is None:
        return ""
    if most > holds:
        return f": it should return up to {most:.3g}, but this dtype ends at {holds:.3g}"
    return f": its results (up to {most:.3g}) would fit, but values computed inside it don't"


def say_share(share: float | None) -> str:
    """Write an error relative to the usual size of a result: 4%, 1.0e-07, 20 times its size."""
    if share is None:
        return "any amount"
    percent = 100 * share
    if percent >= 1000:
        return f"{share:.3g} times its size"
    return f"{percent:.3g}%" if percent >= 1e-3 else "0%" if share < 1e-12 else f"{share:.1e}"


def plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _module(name: str) -> str:
    return name or "the model itself"


def render_text(data: Data) -> str:
    """The whole result, for a terminal or print()."""
    lines = [say_subject(data), ""]
    for name, found in data["dtypes"].items():
        lines += [
            _end_sentence(say_dtype(name, found)),
            *(f"    {line}" for line in say_details(found, data)),
        ]
    lines += ["", *_table(data), *_slowest(data)]
    lines += [f"Note: {note}." for note in data["notes"]]
    lines += [f"Not restored: {text}." for text in data["not_restored"]]
    return "\n".join(lines).rstrip() + "\n"


def say_subject(data: Data) -> str:
    size = f"{plural(data['modules'], 'module')}, {_count(data['parameters'])} parameters"
    against = f"{data['reference']['device']} {data['reference']['dtype']}"
    return f"{data['model']} ({size}) on {data['device']} against {against}, torch {data['torch']}"


def _count(number: int) -> str:
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.1f} {word}"
    return str(number)


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
    lines += [f"and {plural(more, 'more module')}"] if more > 0 else []
    lines += _say_tolerance(found, data) + _say_followers(found) + _say_fallbacks(found)
    lines += _say_training(found, data)
    if found["unchecked"]:
        first = found["unchecked"][0]
        lines.append(
            f"{plural(len(found['unchecked']), 'call')} could not be checked alone, first "
            f"{_module(first['module'])}: {first['text']}"
        )
    return [line.replace("\n", " ") for line in lines + found["notes"]]


def _say_followers(found: Data) -> list[str]:
    names = found["followers"]
    if not names:
        return []
    if len(names) == 1:
        return [f"1 other module differs only because its input does: {_list(names)}"]
    return [f"{len(names)} other modules differ only because their inputs do: {_list(names)}"]


def _say_fallbacks(found: Data) -> list[str]:
    """One line for each operation, with the modules it was called in."""
    operations: dict[str, dict[str, int]] = {}
    for fallback in found["fallbacks"]:
        operations.setdefault(fallback["operation"], {})[fallback["module"]] = fallback["times"]
    lines = []
    for name, modules in operations.items():
        times = plural(sum(modules.values()), "time")
        lines.append(f"{name} fell back to the CPU {times}: in {_list(list(modules))}")
    return lines


def _list(names: list[str]) -> str:
    return ", ".join(map(_module, names[:3])) + (" …" if len(names) > 3 else "")


def _say_tolerance(found: Data, data: Data) -> list[str]:
    first = next((c["difference"] for c in found["culprits"] if c["kind"] == "differs"), None)
    if first is None:
        return []
    typical, share = say_share(first["typical"]), say_share(first["share"])
    rule = f"{data['steps']:.0f} roundings of {found['eps']:.2g} in each operation"
    if first["longest_sum"] > 1:
        rule += f", more in sums (of up to {first['longest_sum']} numbers)"
    return [f"typical error {typical}; {share} of the values exceed rounding: {rule}"]


def _say_training(found: Data, data: Data) -> list[str]:
    if found.get("loss") is None:
        return []
    lines = [f"loss {found['loss']:.6g}, {data['reference']['loss']:.6g} on the CPU"]
    gradients = found["gradients"]
    if gradients["worst"] is not None:
        lines.append(
            f"{gradients['compared']} gradients, the largest error is "
            f"{say_share(gradients['largest'])} in {gradients['worst']}"
        )
    return lines


def _table(data: Data) -> list[str]:
    """Time, speed, memory and error of each dtype."""
    rows = [["", "TIME", "TO CPU", "TO FLOAT32", "PEAK", "ERROR"]]
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
        lines.append("≥: read between modules; torch counts peaks on MPS from 2.13.")
    return lines


def _slowest(data: Data) -> list[str]:
    if not data["slowest"]:
        return []
    names = ["cpu", *data["dtypes"]]
    rows = [["SLOWEST MODULES", *names]]
    for row in data["slowest"][:_MOST_MODULES]:
        seconds = [say_seconds(row["seconds"].get(name)) for name in names]
        rows += [[f"{_module(row['module'])} ({row['type']})", *seconds]]
    return ["", *align(rows)]


def align(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]


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
    return (
        f'<div><ul style="padding-left:0">{"".join(lines)}</ul>'
        f"<details><summary>{escape(data['model'])}, module by module</summary>"
        f"<pre>{escape(render_text(data))}</pre></details></div>"
    )
