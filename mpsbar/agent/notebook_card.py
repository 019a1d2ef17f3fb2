"""What a notebook shows of %mpsbar: a card with bars, the largest tensors, one cell's memory."""

import html
from typing import Any, Optional

from . import notebook_text
from .notebook_text import size

Report = dict[str, Any]

_MOST_GROUPS = 12
# Colours that can be told apart on a light and on a dark page.
_BAR = (
    '<div style="background:rgba(128,128,128,.25);border-radius:3px;height:8px;width:220px;'
    'display:inline-flex;overflow:hidden">'
    '<div style="background:#0a84ff;width:{allocated:.1f}%"></div>'
    '<div style="background:#ff9f0a;width:{cached:.1f}%"></div></div>'
)
_ROW = (
    "<tr><td style='text-align:left'>{name}</td><td>{bar}</td>"
    "<td style='text-align:left'>{words}</td></tr>"
)


def render_card(backends: "dict[str, Report]", progress: Optional[Report]) -> str:
    """HTML: a bar for each allocator in use, of its budget where that is known."""
    rows = [
        _ROW.format(name=html.escape(name), bar=_draw(backend), words=html.escape(_say(backend)))
        for name, backend in backends.items()
        if notebook_text.is_used(backend)
    ]
    if not rows:
        return ""
    under = html.escape(notebook_text.describe_progress(progress))
    foot = f"<div>{under}</div>" if under else ""
    return f"<table style='font-size:small'>{''.join(rows)}</table>{foot}"


def _draw(backend: Report) -> str:
    allocated = backend["allocated"] or 0
    cached, _ = notebook_text.find_cached(backend)
    held = notebook_text.find_held(backend) or allocated
    whole = max(backend.get("budget") or 0, held, allocated + (cached or 0), 1)
    return _BAR.format(allocated=100 * allocated / whole, cached=100 * (cached or 0) / whole)


def _say(backend: Report) -> str:
    cached, bound = notebook_text.find_cached(backend)
    held, budget = notebook_text.find_held(backend), backend.get("budget")
    of = f" of {size(budget)}" if budget else ""
    words = [f"{size(held)} held{of}", f"{size(backend['allocated'])} in tensors"]
    if cached is not None:
        words.append(f"{bound}{size(cached)} cached")
    return " · ".join(words)


def describe_tensors(report: Report) -> str:
    """The largest groups, as in the menu."""
    if report["state"] == "busy":
        return f"busy: {notebook_text.say_why(report['reason'])}; nothing was counted"
    if report["state"] != "done":
        return f"failed: {report.get('error')}"
    lines = [
        f"{size(group['bytes']):>8}  {group['count']} × {group['dtype']} {group['shape']}  "
        f"{group['device']}"
        for group in report["groups"][:_MOST_GROUPS]
    ]
    rest = sum(group["bytes"] for group in report["groups"][_MOST_GROUPS:])
    rest += report["others"]["bytes"]
    if rest:
        lines.append(f"{size(rest):>8}  other tensors")
    unseen = sum(number for number in report["not_visible"].values() if number)
    if unseen:
        lines.append(f"{size(unseen):>8}  not visible from Python")
    return "\n".join(lines) or "No live tensors"


def read_counters() -> "tuple[Optional[int], Optional[int]]":
    """What tensors take now, and the most they ever took where the allocators count it; None: not
    known. Never raises: the cell's own error is to be seen."""
    from .memory import read_memory

    try:
        found = read_memory()
    except Exception:  # noqa: BLE001 - as above
        return None, None
    return found.get("allocated"), found.get("peak")


def describe_cell(
    before: "tuple[Optional[int], Optional[int]]",
    after: "tuple[Optional[int], Optional[int]]",
    seconds: float,
) -> str:
    """`before` and `after`: allocated, and the allocator's own peak of the whole process.

    Nothing is read in between: a thread of ours would run the person's finalizers.
    """
    took = f"cell: {notebook_text.duration(seconds)}"
    if after[0] is None:
        return f"{took} · no allocator in use"
    grown = after[0] - (before[0] or 0)
    words = [took, f"tensors {'+' if grown >= 0 else '−'}{size(abs(grown))} (now {size(after[0])})"]
    if after[1] is not None and after[1] > (before[1] or 0):
        words.append(f"peak {size(after[1])}")  # a new peak of the process: this cell's, exactly
    else:
        words.append(f"peak at least {size(max(before[0] or 0, after[0]))}")
    return " · ".join(words)
