"""The screen with the tables: an update renders only the widgets that have changed."""

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget


class ChangesCompositor(Compositor):
    """textual's own asks every widget within the rectangle around all changes for all its lines:
    on a screen whose first and last line change, every widget there is."""

    def __init__(self) -> None:
        super().__init__()
        self._changes: list[Region] | None = None  # while they are rendered

    def render_partial_update(self) -> ChopsUpdate | None:
        _ = self.cuts  # are found by all widgets, and kept: before these are fewer
        self._changes = list(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._changes = None

    @property
    def visible_widgets(self) -> dict[Widget, tuple[Region, Region]]:
        """From the front to the back; while changes are rendered only those that show a part of
        one. A change within a widget hides what is behind that."""
        widgets = super().visible_widgets
        if self._changes is None:
            return widgets
        found, left = {}, self._changes
        for widget, (region, clip) in widgets.items():
            shown = region.intersection(clip)
            if any(shown.overlaps(change) for change in left):
                found[widget] = (region, clip)
                left = [change for change in left if not shown.contains_region(change)]
                if not left:
                    break
        return found


class MainScreen(Screen[object]):
    def __init__(self) -> None:
        super().__init__(id="_default")
        self._compositor = ChangesCompositor()
