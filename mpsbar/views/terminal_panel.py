"""The lower part of a terminal's screen: the chosen process's memory, and the log. Pure."""

from collections.abc import Sequence

from mpsbar.model.history import Track
from mpsbar.views import cells, wording
from mpsbar.views.frame import Line, Span, Style, line_of
from mpsbar.views.language import _
from mpsbar.views.terminal_plot import choose_span, render_plot
from mpsbar.views.terminal_rows import Entry


def render_memory(
    chosen: Entry | None, track: Track | None, now: float, width: int, height: int
) -> list[Line]:
    """A title, what the chosen one is, and its plot."""
    if chosen is None:
        return [rule(_("memory"), width)]
    name = chosen.cells["NAME"].removeprefix("└ ")
    span = _("last {time}").format(time=wording.duration(choose_span(track, now)))
    title = " · ".join([wording.shorten(name, 28), *_legend(track), span])
    detail = line_of(cells.cut(chosen.row.tooltip, width), "dim")
    return [rule(title, width), detail, *render_plot(track, now, width, height - 2)]


def render_log(notes: Sequence[tuple[str, str, Style]], width: int, height: int) -> list[Line]:
    """The newest below."""
    lines: list[Line] = [rule(_("log"), width)]
    kept = notes[-(height - 1) :] if height > 1 else []
    if not kept:
        lines.append(line_of(_("what is freed and what changes is told here"), "dim"))
    for time, text, style in kept:
        lines.append((Span(f"{time} ", "dim"), Span(text, style)))
    return lines


def rule(title: str, width: int) -> Line:
    start = f"── {cells.cut(title, width - 6)} "
    return (Span(start + "─" * (width - cells.width(start)), "dim"),)


def _legend(track: Track | None) -> list[str]:
    if track is None or not track.held:
        return [_("charged by the system")] if track is not None else []
    return [_("⣿ allocated"), _("⢕ held beyond that")]
