"""The sentences of %mpsbar, the same as in ui/text, which is not there in a worker."""

import threading
from typing import Any, Optional

from .backends import IN_USE, NOT_KNOWN
from .frameworks import join_labels

Report = dict[str, Any]

_UNITS = ("B", "kB", "MB", "GB", "TB")
_COLUMNS = ("held", "allocated", "cached", "peak")
_REASONS = {
    "thread_computing": "another thread is computing",
    "thread_unproven": "another thread couldn't be shown to be waiting",
    "main_computing": "the main thread is computing",
    "main_unproven": "the main thread couldn't be shown to be waiting",
    "main_waiting": "the main thread is waiting and couldn't be reached",
    "switch_interval": "its thread switch interval is unusually long",
    "slow": "the machine was too busy",
    "free_threaded": "it runs without the GIL",
    "forked": "the process was forked meanwhile",
    "deep_recursion": "its call stack is too deep",
}


def describe_memory(backends: "dict[str, Report]") -> str:
    """A row for each allocator, under one head."""
    if len(backends) > 1:
        backends.pop("cpu", None)  # every torch has it; worth a row only when it is all there is
    if not backends:
        return f"{join_labels('or')} not loaded yet"
    rows = [["device", *_COLUMNS]] if any(map(is_used, backends.values())) else []
    rows += [[name, *_cells(backend)] for name, backend in backends.items()]
    return _align(rows)


def _cells(backend: Report) -> "list[str]":
    if not is_used(backend):
        return ["unknown" if backend["state"] == NOT_KNOWN else backend["state"]]
    allocated, peak = backend["allocated"], backend["peak"]
    cached, bound = find_cached(backend)
    return [size(find_held(backend)), size(allocated), bound + size(cached), size(peak)]


def is_used(backend: Report) -> bool:
    return bool(backend["state"] == IN_USE)


def find_held(backend: Report) -> Optional[int]:
    numbers = (backend[name] for name in ("driver", "reserved", "allocated"))
    return next((number for number in numbers if number is not None), None)


def find_cached(backend: Report) -> "tuple[Optional[int], str]":
    """What the allocator keeps for reuse; before torch 2.13 only a bound is known."""
    reserved, driver, allocated = backend["reserved"], backend["driver"], backend["allocated"]
    whole = driver if reserved is None else reserved
    if whole is None or allocated is None:
        return None, ""
    return max(0, whole - allocated), "≤ " if reserved is None else ""


def _align(rows: "list[list[str]]") -> str:
    widths = [
        max(len(row[column]) for row in rows if len(row) > column)
        for column in range(max(map(len, rows)))
    ]
    lines = []
    for name, *cells in rows:
        right = cells if len(cells) == 1 else map(str.rjust, cells, widths[1:])
        lines.append("  ".join([name.ljust(widths[0]), *right]))
    return "\n".join(lines)


def describe_progress(progress: Optional[Report]) -> str:
    """Epoch 3 · 62% · 3.1 it/s · 4 min left; inside a cell what its bars have counted so far."""
    if progress is None:
        return ""
    bars = [bar for bar in (progress["inner"], progress) if bar is not None and "done" in bar]
    speeds = [(bar["rate"], bar["unit"]) for bar in bars]
    speeds.append((progress["steps_per_second"], "step"))
    words = [bar["name"] for bar in bars if bar["name"]][:1]
    words.append(_say_done(progress))
    words += [_say_speed(rate, unit or "it") for rate, unit in speeds if rate is not None][:1]
    left = progress.get("seconds_left")
    if left is not None:
        words.append(f"{max(1, round(left))} s left" if left < 10 else f"{duration(left)} left")
    return " · ".join(words)


def _say_done(progress: Report) -> str:
    if "done" not in progress:
        return f"{progress['steps']:,} steps"
    done, total = progress["done"], progress["total"]
    if not total:
        return f"{done:,.0f} {progress['unit'] or 'it'}"
    return f"{100 if done >= total else min(99, round(done / total * 100))}%"


def _say_speed(rate: float, unit: str) -> str:
    if rate >= 1 or not rate:
        return f"{_figures(rate)} {unit}/s"
    return f"{_figures(1 / rate)} s/{unit}"


def _figures(number: float) -> str:
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.1f}"


def say_freed(report: Report, still_cached: int) -> str:
    """How a Free ended, and what it left out; `still_cached` is what live tensors pin."""
    lines = [_how_it_ended(report, still_cached), *_not_collected(report), *_not_known(report)]
    return "\n".join(lines)


def _how_it_ended(report: Report, still_cached: int) -> str:
    if report["state"] == "busy":
        # What any thread may free, such as free blocks of malloc, is freed all the same.
        freed = f"freed only {size(report['freed'])}" if report["freed"] else "nothing was freed"
        return f"busy: {say_why(report['reason'])}; {freed}"
    errors = [each["error"] for each in report["backends"].values() if each.get("error")]
    if errors:
        return f"failed: {errors[0]}"
    words = f"freed {size(report['freed'])} in {duration(report['seconds'])}"
    return (
        f"{words}; {size(still_cached)} can't be returned yet: live tensors share those blocks"
        if still_cached
        else words
    )


def say_why(reason: Report) -> str:
    code = reason["code"]
    if (
        code in ("main_computing", "main_unproven")
        and threading.current_thread() is threading.main_thread()
    ):
        code = ""  # that is this very magic
    words = _REASONS.get(code)
    if words is None:
        return "no safe moment was found"
    return f"{words} ({reason['where']})"


def add_up_cached(backends: "dict[str, Report]") -> int:
    found = [find_cached(each) for each in backends.values() if is_used(each)]
    return sum(cached or 0 for cached, bound in found if not bound)


def _not_collected(report: Report) -> "list[str]":
    toolkit = report["gui_toolkit"]
    if report["state"] == "busy" or report["collected"] or toolkit is None:
        return []
    return [f"without gc.collect(), which can crash a program that uses {toolkit}"]


def _not_known(report: Report) -> "list[str]":
    return [
        f"{name}: can't tell whether this process uses it; free it from mpsbar instead"
        for name in report["not_known"]
    ]


def size(count: Optional[int]) -> str:
    if count is None:
        return "?"
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    digits = 1 if unit >= 2 and value < 99.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 119.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7170 else f"{seconds / 3600:.0f} h"
