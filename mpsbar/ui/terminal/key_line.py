"""The last line: textual's Footer, drawn anew only when the keys it shows have changed.

textual's own composes its keys at every refresh of the bindings and keeps all that were there
before (github.com/Textualize/textual/issues/6666): 1,200 objects each time.
"""

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from mpsbar.ui.text import cells

_Key = tuple[str, str, str, str, bool]  # key, as people read it, caption, action, works now
_KEPT = 2


class KeyLine(Footer):
    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)
        self._shown: list[_Key] = []

    def compose(self) -> ComposeResult:
        self._shown = self._list_keys()
        self.styles.grid_size_columns = len(self._shown)
        palette = self.app.COMMAND_PALETTE_BINDING
        for key, display, caption, action, is_enabled in self._shown:
            classes = "-command-palette" if key == palette else ""
            yield FooterKey(key, display, caption, action, disabled=not is_enabled, classes=classes)

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Behind another screen, whose keys are others, it stays as it is."""
        if self.app.screen is self.screen and self._list_keys() != self._shown:
            super().bindings_changed(screen)

    async def recompose(self) -> None:
        """Several changes may have asked for it: it is done once."""
        if self.app.screen is self.screen and self._list_keys() != self._shown:
            await super().recompose()

    def _list_keys(self) -> list[_Key]:
        app, keys = self.app, []
        for key, (_node, binding, is_enabled, _tip) in self.screen.active_bindings.items():
            is_palette = key == app.COMMAND_PALETTE_BINDING
            if self.show_command_palette if is_palette else binding.show:
                display = app.get_key_display(binding)
                keys.append((key, display, binding.description, binding.action, is_enabled))
        shown = _fit([key for key in keys if key[0] != app.COMMAND_PALETTE_BINDING], app.size.width)
        return keys if len(_fit(keys, app.size.width)) == len(keys) else shown


def _fit(keys: list[_Key], width: int) -> list[_Key]:
    """Where not all fit, those before the last two go: Help, which lists all, and Quit."""

    def measure(key: _Key) -> int:
        return cells.width(key[1]) + cells.width(key[2]) + 2  # with a space between, and one after

    shown = list(keys)
    while len(shown) > _KEPT and sum(map(measure, shown)) - 1 > width:
        del shown[-_KEPT - 1]
    return shown
