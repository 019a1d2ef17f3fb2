"""The sentences of %mpsbar, the same as in ui/text, which is not there in a worker; translated."""

import threading
from typing import Optional

from .backends import IN_USE, NOT_KNOWN
from .counters import SHOWN, Counter, derive_cached, derive_held
from .frameworks import join_labels
from .language import _, measure, ngettext, pad
from .protocol import JobAnswer, Message
from .wording import duration, say_fraction, say_left, say_speed, say_why_busy, size


def describe_memory(backends: "dict[str, Message]") -> str:
    """Describes each allocator in a row, under one header."""
    if len(backends) > 1:
        backends.pop("cpu", None)  # every torch has it; worth a row only when it is all there is
    if not backends:
        return _("{frameworks} not loaded yet").format(frameworks=join_labels(_("or")))
    used = [backend for backend in backends.values() if is_used(backend)]
    columns = [
        counter
        for counter in SHOWN
        if counter.is_sum or any(counter.compute(backend) is not None for backend in used)
    ]
    rows = [[_("device"), *(_(counter.name) for counter in columns)]] if used else []
    rows += [[name, *_cells(backend, columns)] for name, backend in backends.items()]
    return _align(rows)


def _cells(backend: Message, columns: "list[Counter]") -> "list[str]":
    if not is_used(backend):
        return [_("unknown") if backend["state"] == NOT_KNOWN else _("not initialized")]
    return [_cell(backend, counter) for counter in columns]


def _cell(backend: Message, counter: Counter) -> str:
    number = counter.compute(backend)
    if number is None and not counter.is_sum:
        return "–"
    _, bound = find_cached(backend) if counter.name == "cached" else (None, "")
    return bound + size(number)


def is_used(backend: Message) -> bool:
    return bool(backend["state"] == IN_USE)


def find_held(backend: Message) -> Optional[int]:
    return derive_held(backend["allocated"], backend["reserved"], backend["driver"])


def find_cached(backend: Message) -> "tuple[Optional[int], str]":
    """Returns what the allocator keeps for reuse, and a mark where only an upper bound is known."""
    reserved = backend["reserved"]
    cached = derive_cached(backend["allocated"], reserved, backend["driver"])
    return cached, "≤ " if reserved is None and cached is not None else ""


def _align(rows: "list[list[str]]") -> str:
    widths = [
        max(measure(row[column]) for row in rows if len(row) > column)
        for column in range(max(map(len, rows)))
    ]
    lines = []
    for name, *cells in rows:
        is_row = len(cells) > 1
        right = [pad(cell, width, to_right=True) for cell, width in zip(cells, widths[1:])]
        lines.append("  ".join([pad(name, widths[0]), *(right if is_row else cells)]))
    return "\n".join(lines)


def describe_progress(progress: Optional[Message]) -> str:
    """Says Epoch 3 · 62% · 3.1 it/s · 4 min left; inside a cell what its bars have counted."""
    if progress is None:
        return ""
    bars = [bar for bar in (progress["inner"], progress) if bar and bar.get("done") is not None]
    speeds = [(bar["rate"], bar["unit"]) for bar in bars]
    speeds.append((progress["steps_per_second"], "step"))
    words = [bar["name"] for bar in bars if bar["name"]][:1]
    words.append(_say_done(progress))
    words += [say_speed(rate, unit) for rate, unit in speeds if rate is not None][:1]
    words.append(say_left(progress.get("seconds_left")))
    return " · ".join(filter(None, words))


def _say_done(progress: Message) -> str:
    if progress.get("done") is None:
        steps = progress["steps"]
        return ngettext("{n} step", "{n} steps", steps).format(n=f"{steps:,}")
    done, total = progress["done"], progress["total"]
    if not total:
        return f"{done:,.0f} {progress['unit'] or 'it'}"
    return say_fraction(done / total)


def say_freed(report: JobAnswer, still_cached: int) -> str:
    """Says how a Free ended, and what it left out; `still_cached` is what live tensors pin."""
    lines = [_how_it_ended(report, still_cached), *_not_collected(report), *_not_known(report)]
    return "\n".join(lines)


def _how_it_ended(report: JobAnswer, still_cached: int) -> str:
    if report["state"] == "busy":
        # What any thread may free, such as free blocks of malloc, is freed all the same.
        words = _("busy: {reason}").format(reason=say_why(report["reason"]))
        if report["freed"]:
            return words + _("; freed only {size}").format(size=size(report["freed"]))
        return words + _("; nothing was freed")
    errors = [outcome["error"] for outcome in report["backends"].values() if outcome.get("error")]
    if errors:
        return _("failed: {error}").format(error=errors[0])
    words = _("freed {size} in {time}").format(
        size=size(report["freed"]), time=duration(report["seconds"])
    )
    if still_cached:
        text = _("; {size} can't be returned yet: live tensors share those blocks")
        words += text.format(size=size(still_cached))
    return words


def say_why(reason: JobAnswer) -> str:
    code = reason["code"]
    if (
        code in ("main_computing", "main_unproven")
        and threading.current_thread() is threading.main_thread()
    ):
        return say_why_busy(None, None)  # main computes this very magic
    return say_why_busy(code, reason["where"])


def add_up_cached(backends: "dict[str, Message]") -> int:
    caches = [find_cached(backend) for backend in backends.values() if is_used(backend)]
    return sum(cached or 0 for cached, bound in caches if not bound)


def _not_collected(report: JobAnswer) -> "list[str]":
    toolkit = report["gui_toolkit"]
    if report["state"] == "busy" or report["collected"] or toolkit is None:
        return []
    text = _("without gc.collect(), which can crash a program that uses {toolkit}")
    return [text.format(toolkit=toolkit)]


def _not_known(report: JobAnswer) -> "list[str]":
    text = _("{name}: can't tell whether this process uses it; free it from mpsbar instead")
    return [text.format(name=name) for name in report["not_known"]]
