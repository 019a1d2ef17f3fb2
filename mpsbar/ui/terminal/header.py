"""The top of a terminal's screen: the machine in gauges, whether all is well, dtypes. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from mpsbar.core.machine import Machine
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.rows import Menu
from mpsbar.ui.terminal.frame import Line, Style, StyledSpan, line_of, spread, text_of
from mpsbar.ui.text import cells, findings, wording
from mpsbar.ui.text.wording import _

# Different without colour too; hollow while nothing is known.
_MARKS = {"ok": "●", "warning": "▲", "critical": "■", "unknown": "○"}
_STYLES: dict[str, Style] = {"ok": "ok", "warning": "warning", "critical": "critical"}
_NARROW, _WIDEST = 8, 30  # of a bar
_PARTS = " ▏▎▍▌▋▊▉█"
# Rows of the menu that have a line of their own.
_WORTH_A_LINE = ("found", "dtypes")


class Gauge(NamedTuple):
    label: str
    text: str
    part: float | None  # 0 to 1


def render_head(snapshot: Snapshot, menu: Menu, width: int) -> list[Line]:
    title = (
        StyledSpan("mpsbar", "title"),
        StyledSpan("  " + wording.machine_briefly(snapshot.machine)),
    )
    lines = [spread(title, _together(snapshot, width - cells.width(text_of(title))), width)]
    gauges = list(build_gauges(snapshot.machine))
    if gauges:
        lines.append(render_gauges(gauges, width))
    lines.append(_health(snapshot, menu))
    for row in menu.rows:
        if row.key in _WORTH_A_LINE:
            lines += [line_of(text) for text in cells.wrap(row.text, width)]
    return lines


def build_gauges(machine: Machine) -> Iterator[Gauge]:
    """Those whose values could be read."""
    total, available = machine.memory_total, machine.memory_available
    if total and available is not None:
        used = max(total - available, 0)
        yield Gauge(_("memory"), wording.part(used, total), used / total)
    gpu = machine.gpu
    if gpu.utilization is not None:
        yield Gauge(_("GPU"), wording.percent(gpu.utilization), gpu.utilization / 100)
    if gpu.memory_in_use is not None and gpu.memory_budget:
        share = gpu.memory_in_use / gpu.memory_budget
        yield Gauge(_("GPU memory"), wording.part(gpu.memory_in_use, gpu.memory_budget), share)
    if machine.swap_used:
        yield Gauge(_("swap"), wording.size(machine.swap_used), None)


def render_gauges(gauges: list[Gauge], width: int) -> Line:
    """As wide as the line allows; where it is narrow the GPU has one gauge, and then no bars."""
    room = _room(gauges, width)
    if room < _NARROW:
        gauges = _joined(gauges)
        room = _room(gauges, width)
    spans: list[StyledSpan] = []
    for gauge in gauges:
        spans.append(StyledSpan(f"{gauge.label} ", "dim"))
        if gauge.part is not None and room >= 4:
            spans += [*draw_bar(gauge.part, room), StyledSpan(" ")]
        spans.append(StyledSpan(f"{gauge.text}   "))
    spans[-1] = StyledSpan(spans[-1].text.rstrip())
    return tuple(spans)


def _room(gauges: list[Gauge], width: int) -> int:
    """How wide each bar can be."""
    words = sum(cells.width(g.label) + cells.width(g.text) + 4 for g in gauges) - 3
    bars = sum(gauge.part is not None for gauge in gauges)
    return min((width - words - bars) // max(bars, 1), _WIDEST)


def _joined(gauges: list[Gauge]) -> list[Gauge]:
    """Joins the GPU's two gauges: its utilization becomes part of the label of its memory."""
    found = {gauge.label: gauge for gauge in gauges}
    busy, memory = found.get(_("GPU")), found.get(_("GPU memory"))
    if busy is None or memory is None:
        return gauges
    both = memory._replace(label=f"{busy.label} {busy.text}")
    return [both if gauge is memory else gauge for gauge in gauges if gauge is not busy]


def draw_bar(part: float, width: int) -> tuple[StyledSpan, StyledSpan]:
    """Draws in eighths of a cell, so that slow growth is visible."""
    eighths = round(min(max(part, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_PARTS[rest] if rest else "")
    return StyledSpan(drawn, "gauge"), StyledSpan("░" * (width - len(drawn)), "dim")


def _health(snapshot: Snapshot, menu: Menu) -> Line:
    shape = menu.bar.shape
    words = findings.say_health(snapshot.health, snapshot.names)
    style = _STYLES.get(shape, "")
    line: Line = (StyledSpan(_MARKS.get(shape, "○") + " ", style), StyledSpan(words, style))
    if snapshot.problems:
        line += (StyledSpan(" · " + wording.problems(len(snapshot.problems)), "dim"),)
    return line


def _together(snapshot: Snapshot, room: int) -> Line:
    """The totals of all workers, as far as there is room."""
    words = []
    if snapshot.held is not None:
        words.append(_("{size} held").format(size=wording.size(snapshot.held)))
    if snapshot.cached is not None:
        words.append(_("{size} cached").format(size=wording.size(snapshot.cached)))
    whole = ", ".join(words)
    return line_of(whole if cells.width(whole) + 2 <= room else "".join(words[:1]), "dim")
