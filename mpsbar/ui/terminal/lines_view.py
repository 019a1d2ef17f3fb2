"""A widget of text lines that repaints only the lines that have changed.

textual's Static converts and paints the whole of its text each time.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.segment import Segment
from rich.text import Text
from textual.filter import ANSIToTruecolor
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from mpsbar.ui.terminal.drawing import is_same_text, make_segments
from mpsbar.ui.text import cells

_EMPTY = Strip([])
RenderedLine = Text | list[Segment]


def _is_same(first: RenderedLine, second: RenderedLine) -> bool:
    if isinstance(first, Text) and isinstance(second, Text):
        return is_same_text(first, second)
    return first == second


def group_lines(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yields the first number of each run of neighbours, and its length: textual's work grows with
    the number of regions."""
    for _key, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        lines = [number for _place, number in group]
        yield lines[0], len(lines)


class LinesView(Widget):
    """Lines of text. `is_selectable`: they can be selected with the mouse and copied, as a
    Static's."""

    def __init__(self, is_selectable: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.lines: Sequence[RenderedLine] = ()
        self._is_selectable = is_selectable
        self._strips: list[Strip] = []
        self._layout: Any = None  # what all lines depend on
        self._painted: dict[int, tuple[Strip, Strip]] = {}  # by number, with what it was made of

    def show_lines(self, lines: Sequence[RenderedLine]) -> None:
        before, self.lines = self.lines, lines
        if len(before) != len(lines):
            self._strips = [self._build_strip(line) for line in lines]
            self.refresh(layout=self.styles.is_auto_height)
            return
        pairs = enumerate(zip(before, lines, strict=True))
        changed = [number for number, pair in pairs if not _is_same(*pair)]
        for number in changed:
            self._strips[number] = self._build_strip(lines[number])
        if changed:
            width = self.size.width
            self.refresh(*(Region(0, y, width, count) for y, count in group_lines(changed)))

    def _build_strip(self, line: RenderedLine) -> Strip:
        return Strip(make_segments(line, self.app.console) if isinstance(line, Text) else line)

    @property
    def allow_select(self) -> bool:
        return self._is_selectable

    def selection_updated(self, selection: Selection | None) -> None:
        self._painted = {}
        super().selection_updated(selection)

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        return selection.extract("\n".join(strip.text for strip in self._strips)), "\n"

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002
        return max((strip.cell_length for strip in self._strips), default=0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self._strips)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Returns painted lines again where neither they nor the style have changed.

        It does without textual's cache of whole widgets, which looks up every property of their
        style for each line: there is no border here, and padding only at the sides.
        """
        # Those of the terminal's own 16 colours need not be looked for: there are none.
        filters = [f for f in self.get_line_filters() if type(f) is not ANSIToTruecolor]
        layout = (self.rich_style, *self.size, self.styles.padding, filters)
        is_selected = self._is_selectable and self.text_selection is not None
        if layout != self._layout or is_selected:
            self._layout, self._painted = layout, {}
        lines = [self._paint(y) for y in crop.line_range]
        if crop.column_span != (0, self.outer_size.width):
            return [line.crop(*crop.column_span) for line in lines]
        return lines

    def render_line(self, y: int) -> Strip:
        """Adds the place of each character: textual asks for it when the mouse selects."""
        return (self._strips[y] if y < len(self._strips) else _EMPTY).apply_offsets(0, y)

    def _paint(self, y: int) -> Strip:
        strip = self._strips[y] if y < len(self._strips) else _EMPTY
        before = self._painted.get(y)
        if before is not None and before[0] is strip:
            return before[1]
        style, width, _height, (_top, right, _bottom, left), filters = self._layout
        line = strip.apply_style(style).adjust_cell_length(width, style)
        if self._is_selectable:
            line = self._mark_selection(line, y)
        if left or right:
            sides = (Segment(" " * left, style), Segment(" " * right, style))
            line = Strip([sides[0], *line, sides[1]], left + width + right)
        for line_filter in filters:
            line = line.apply_filter(line_filter, self.background_colors[1])
        self._painted[y] = (strip, line)
        return line

    def _mark_selection(self, strip: Strip, y: int) -> Strip:
        """Highlights the selected part, and adds the places that textual asks for when the mouse
        selects."""
        span = None if self.text_selection is None else self.text_selection.get_span(y)
        if span is not None:
            text, (start, end) = strip.text, span
            left = cells.width(text[:start])
            right = strip.cell_length if end == -1 else cells.width(text[:end])
            style = self.screen.get_component_rich_style("screen--selection")
            selected = Strip(Segment.apply_style(strip.crop(left, right), post_style=style))
            strip = Strip.join([strip.crop(0, left), selected, strip.crop(right)])
        return strip.apply_offsets(0, y)
