"""The base of both apps of `top`: screen, themes, colours, the filter, and how they end."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from typing import ClassVar

from rich.text import Text
from textual._compositor import ChopsUpdate, Compositor
from textual.app import App
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from mpsbar.core.settings import Settings
from mpsbar.language import _
from mpsbar.ui.terminal.drawing import make_text
from mpsbar.ui.terminal.driver import choose_driver
from mpsbar.ui.terminal.order import TableOrder
from mpsbar.ui.terminal.screens import TextScreen
from mpsbar.ui.terminal.themes import (
    THEMES,
    Palette,
    build_defaults,
    make_palette,
    setting_name,
    theme_name,
)

_MAX_LETTERS = 60  # in the filter
_LONGEST_TYPING = 1.0  # seconds until letters that were typed are in the field


class ChangesCompositor(Compositor):
    """Renders only the widgets that have changed.

    textual's own asks every widget within the rectangle around all changes for all its lines:
    on a screen whose first and last line change, every widget there is.
    """

    def __init__(self) -> None:
        super().__init__()
        self._changes: list[Region] | None = None  # while they are rendered

    def render_partial_update(self) -> ChopsUpdate | None:
        self.cuts  # noqa: B018 - they are found by all widgets, and kept: before these are fewer
        self._changes = list(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._changes = None

    @property
    def visible_widgets(self) -> dict[Widget, tuple[Region, Region]]:
        """Lists the widgets from front to back; while changes are rendered, only those that show a
        part of one. A widget that covers a change hides what is behind it."""
        widgets = super().visible_widgets
        if self._changes is None:
            return widgets
        visible, left = {}, self._changes
        for widget, (region, clip) in widgets.items():
            shown = region.intersection(clip)
            if any(shown.overlaps(change) for change in left):
                visible[widget] = (region, clip)
                left = [change for change in left if not shown.contains_region(change)]
                if not left:
                    break
        return visible


class MainScreen(Screen[object]):
    """The screen with the tables; it renders only widgets that changed."""

    def __init__(self) -> None:
        super().__init__(id="_default")
        self._compositor = ChangesCompositor()


class FilterField(Input):
    """The field for the filter text. Hidden until opened; stays while it has text."""

    def __init__(self) -> None:
        super().__init__(
            id="filter", placeholder=_("Filter: Enter to apply, Esc to clear"),
            max_length=_MAX_LETTERS, compact=True, select_on_focus=False,
        )  # fmt: skip
        self.display = False

    def open(self) -> None:
        self.display = True
        # At once: `focus()` waits its turn, and the next keys would be lost.
        self.screen.set_focus(self)

    def close(self) -> None:
        self.value = ""
        self.display = False

    async def wait_typed(self) -> None:
        """Returns when the letters that were typed before are in the field."""
        typed = asyncio.Event()
        self.call_later(typed.set)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(typed.wait(), _LONGEST_TYPING)


class BaseApp(App[None]):
    """The app without its tables. `run` returns when the person has quit."""

    TITLE = "mpsbar"
    KEY_ACTIONS: ClassVar[Collection[str]]  # of the keys of an app's tables
    state: TableOrder
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as textual declares it
        (0, "-narrow"), (80, "-medium"), (110, "-wide"), (170, "-huge"),
    ]  # fmt: skip
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-tiny"), (14, "-short"), (24, "-middle"), (34, "-tall"),
    ]  # fmt: skip

    def __init__(self, settings: Settings) -> None:
        # textual would show greys; with its own filter for ANSI colours there are none at all.
        no_colour = True if os.environ.get("NO_COLOR") else None
        super().__init__(driver_class=choose_driver(), ansi_color=no_colour)
        self._palette: Palette | None = None
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = theme_name(settings.theme)
        self._saved_theme: str = settings.theme

    def get_default_screen(self) -> MainScreen:
        return MainScreen()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return build_defaults(self.current_theme)

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):  # not on the main thread: a test
            loop.add_signal_handler(signal.SIGTERM, self.exit)
        self.theme_changed_signal.subscribe(self, self.take_theme)

    # --- for the two apps

    @property
    def main_table(self) -> Widget:
        """The widget that has the focus, unless something else is open."""
        raise NotImplementedError

    def set_filter(self, text: str) -> None:
        raise NotImplementedError

    def _show(self) -> None:
        """Brings every widget up to date."""
        raise NotImplementedError

    def save_theme(self, name: str) -> None:
        """Keeps a theme that the person chose, as the setting `theme`."""
        raise NotImplementedError

    def take_theme(self, theme: object) -> None:
        self._palette = None
        name = setting_name(getattr(theme, "name", ""))
        if name is not None and name != self._saved_theme:
            self._saved_theme = name
            self.save_theme(name)
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Returns whether a key is offered: none of the tables' keys while another screen is over
        them, or while the filter is typed."""
        if action in self.KEY_ACTIONS and (len(self.screen_stack) > 1 or self.is_filtering):
            return False
        if action == "leave_filter":
            return self.is_filtering
        return super().check_action(action, parameters)

    @property
    def palette(self) -> Palette:
        if self._palette is None:
            self._palette = make_palette(self.theme_variables, not self.no_color)
        return self._palette

    @property
    def main_screen(self) -> Screen[object]:
        """The screen with the tables, also while another is open over it."""
        return self.screen_stack[0]

    def action_sort(self) -> None:
        self.state.sort_next()
        self._show()

    def action_reverse(self) -> None:
        self.state.reverse_order()
        self._show()

    async def action_copy_or_quit(self) -> None:
        """Handles Ctrl-C: a terminal that hands the mouse to a program cannot copy by itself."""
        if text := self.screen.get_selected_text():
            self.copy_to_clipboard(text)
            self.screen.clear_selection()
            self.notify(_("Copied"), timeout=2)
        else:
            await self.action_quit()

    def show_help(self, lines: Iterable[str]) -> None:
        text = Text("\n").join(map(make_text, lines))
        self.push_screen(TextScreen(_("mpsbar top"), lambda: text))

    # --- the filter

    @property
    def filter_field(self) -> FilterField:
        return self.main_screen.query_one(FilterField)

    @property
    def is_filtering(self) -> bool:
        return isinstance(self.focused, FilterField)

    def on_input_changed(self, event: Input.Changed) -> None:
        if isinstance(event.input, FilterField):
            self.set_filter(event.input.value)  # the event's own may be older

    def action_filter(self) -> None:
        self.filter_field.open()

    async def action_leave_filter(self, clears: bool) -> None:
        """Returns to the table, once the letters that were typed before are in the filter."""
        field = self.filter_field
        await field.wait_typed()
        if clears or not field.value:
            field.close()
        self.main_screen.set_focus(self.main_table)
        self.set_filter(field.value)
