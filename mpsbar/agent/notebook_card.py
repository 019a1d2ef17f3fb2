"""What a notebook shows of %mpsbar: a card with bars, the largest tensors, one cell's memory."""

import html
from typing import TYPE_CHECKING, Optional

from . import notebook_text
from .language import _
from .wording import duration, size

# Imported late: in a kernel that runs since before an upgrade, protocol is the older one.
if TYPE_CHECKING:
    from .protocol import JobAnswer, Message

_MAX_GROUPS = 12
# Colors that can be told apart on a light and on a dark page.
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


def render_card(backends: "dict[str, Message]", progress: "Optional[Message]") -> str:
    """Renders HTML: a bar for each allocator in use, of its budget where that is known."""
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


def _draw(backend: "Message") -> str:
    allocated = backend["allocated"] or 0
    cached, _bound = notebook_text.find_cached(backend)
    held = notebook_text.find_held(backend) or allocated
    whole = max(backend.get("budget") or 0, held, allocated + (cached or 0), 1)
    return _BAR.format(allocated=100 * allocated / whole, cached=100 * (cached or 0) / whole)


def _say(backend: "Message") -> str:
    cached, bound = notebook_text.find_cached(backend)
    held, budget = notebook_text.find_held(backend), backend.get("budget")
    text = _("{size} held of {budget}") if budget else _("{size} held")
    words = [
        text.format(size=size(held), budget=size(budget)),
        _("{size} in tensors").format(size=size(backend["allocated"])),
    ]
    if cached is not None:
        words.append(_("{size} cached").format(size=f"{bound}{size(cached)}"))
    return " · ".join(words)


def describe_tensors(report: "JobAnswer") -> str:
    """Describes the largest groups, as in the menu."""
    if report["state"] == "busy":
        reason = notebook_text.say_why(report["reason"])
        return _("busy: {reason}; nothing was counted").format(reason=reason)
    if report["state"] != "done":
        return _("failed: {error}").format(error=report.get("error"))
    lines = [
        f"{size(group['bytes']):>8}  {group['count']} × {group['dtype']} {group['shape']}  "
        f"{group['device']}"
        for group in report["groups"][:_MAX_GROUPS]
    ]
    rest = sum(group["bytes"] for group in report["groups"][_MAX_GROUPS:])
    rest += report["others"]["bytes"]
    if rest:
        lines.append(_("{size}  other tensors").format(size=f"{size(rest):>8}"))
    unseen = sum(number for number in report["not_visible"].values() if number)
    if report["cut_short"]:  # what was not looked at may well be visible
        lines.append(_("There are more: counting stopped early"))
    elif unseen:
        lines.append(_("{size}  not visible from Python").format(size=f"{size(unseen):>8}"))
    return "\n".join(lines) or _("No live tensors")


def read_counters() -> "tuple[Optional[int], Optional[int]]":
    """Returns what tensors take now, and the most they ever took where the allocators count it,
    each None if not known. Never raises: the cell's own error is to be seen.
    """
    from .memory import read_memory

    try:
        memory = read_memory()
    except Exception:  # noqa: BLE001 - as above
        return None, None
    return memory.get("allocated"), memory.get("peak")


def describe_cell(
    before: "tuple[Optional[int], Optional[int]]",
    after: "tuple[Optional[int], Optional[int]]",
    seconds: float,
) -> str:
    """Says what a cell took; `before` and `after` are allocated, and the allocator's own peak of
    the whole process.

    Nothing is read in between: a thread of ours would run the person's finalizers.
    """
    took = _("cell: {time}").format(time=duration(seconds))
    if after[0] is None:
        return " · ".join([took, _("no allocator in use")])
    grown = after[0] - (before[0] or 0)
    change = f"{'+' if grown >= 0 else '−'}{size(abs(grown))}"
    words = [took, _("tensors {change} (now {size})").format(change=change, size=size(after[0]))]
    if after[1] is not None and after[1] > (before[1] or 0):
        # A new peak of the process: this cell's, exactly.
        words.append(_("peak {size}").format(size=size(after[1])))
    else:
        least = size(max(before[0] or 0, after[0]))
        words.append(_("peak at least {size}").format(size=least))
    return " · ".join(words)
