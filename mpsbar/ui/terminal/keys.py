"""The keys of `mpsbar top`: the one list that the bindings, the help and the last line are
made of; and that line.

A key of a process stands for one of the rows of its menu (ui/process_rows.py): where there is no
such row, there is no such key.
"""

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from mpsbar.language import _
from mpsbar.ui.columns import explain_counters
from mpsbar.ui.text import cells

# They leave the filter before its field gets them, or of "/text, Enter, f" typed fast the f would
# reach the field.
LEAVING_BINDINGS = [
    Binding(key, f"leave_filter({key == 'escape'})", show=False, priority=True)
    for key in ("enter", "up", "down", "escape")
]

_ShownKey = tuple[str, str, str, str, bool]  # key, as people read it, caption, action, works now
_KEPT = 2


@dataclass(frozen=True, slots=True)
class Key:
    key: str  # as textual names it
    action: str
    help: str
    caption: str = ""  # in the last line; "": not shown there
    sign: str = ""  # as people read it, where it differs from the key


def list_keys() -> tuple[Key, ...]:
    """All keys, in the order of the last line; those that move the cursor are the table's."""
    return (
        Key("f", "row('free')", _("free the selected process's cache"), _("Free")),
        Key("c", "row('connect')", _("connect its environment (asks first)"), _("Connect")),
        Key("w", "row('when-possible')", _("free a busy one when possible; again: cancel that")),
        Key("F", "menu('free-all')", _("free all caches"), _("Free all")),
        Key("t", "row('tensors')", _("show its largest tensors"), _("Tensors")),
        Key("l", "row('limit')", _("limit its memory (asks first)")),
        Key("s", "row('stop')", _("stop it (asks first)"), _("Stop")),
        Key("enter", "detail", _("fill the window with it; or click it"), _("Detail"), "⏎"),
        Key("a", "actions", _("show all its commands")),
        Key("n", "row('watch')", _("ring the bell when it ends")),
        Key("y", "row('copy')", _("copy its PID")),
        Key("d", "dtypes", _("the table of dtypes that work here"), _("dtypes")),
        Key("p", "menu('probe')", _("run the dtype probe; again: cancel it")),
        Key("r", "menu('report')", _("open the report")),
        Key("A", "menu('auto-free')", _("choose when caches are freed automatically")),
        Key("slash", "filter", _("show only rows with some text; Esc shows all"), _("Filter"), "/"),
        Key("o", "sort", _("sort by the next column; or click a column's head")),
        Key("O", "reverse", _("reverse the order")),
        Key("v", "tree", _("children under their parents, or every process by itself")),
        Key("escape", "deselect", _("show all rows; then this computer, not a process"), "", "Esc"),
        Key("question_mark", "help", _("this help"), _("Help"), "?"),
        Key("q", "quit", _("quit"), _("Quit")),
    )  # fmt: skip


# Those that a field and a screen over the table keep to themselves.
OWN_ACTIONS = {key.action.partition("(")[0] for key in list_keys()}


def build_bindings() -> list[Binding]:
    """Keys are queued for the widget that has the focus when they arrive. Only those that open and
    leave the filter come before them, or of "/text, Enter, f" typed fast the letters would reach
    the table and the f the filter; with all others it must not be so: in "down, f" the f is about
    the row below.
    """
    keys = [
        Binding(key.key, key.action, key.caption or key.help, show=bool(key.caption),
                key_display=key.sign or None, priority=key.action == "filter")
        for key in list_keys()
    ]  # fmt: skip
    ending = Binding("ctrl+c", "copy_or_quit", show=False, priority=True, system=True)
    return [*keys, *LEAVING_BINDINGS, ending]


def help_lines() -> list[str]:
    keys = [(key.sign or key.key, key.help) for key in list_keys()]
    keys += [
        ("↑ ↓", _("select; also j, k, PgUp, PgDn, Home, End, or the mouse")),
        ("^p", _("find a command, or a theme, by its name")),
        ("^c", _("copy the text selected with the mouse; if none is, quit")),
        ("^z", _("back to the shell; fg returns")),
    ]
    words = ["", *explain_counters(), _("?: unknown")]
    return [f"{cells.fit(char, 4)} {text}" for char, text in keys] + words


class KeyLine(Footer):
    """The last line: textual's Footer, drawn anew only when the keys it shows have changed.

    textual's own composes its keys at every refresh of the bindings and keeps all that were there
    before (github.com/Textualize/textual/issues/6666): 1,200 objects each time.
    """

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)
        self._shown: list[_ShownKey] = []

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

    def _list_keys(self) -> list[_ShownKey]:
        app, keys = self.app, []
        for key, (_node, binding, is_enabled, _tip) in self.screen.active_bindings.items():
            is_palette = key == app.COMMAND_PALETTE_BINDING
            if self.show_command_palette if is_palette else binding.show:
                display = app.get_key_display(binding)
                keys.append((key, display, binding.description, binding.action, is_enabled))
        shown = _fit([key for key in keys if key[0] != app.COMMAND_PALETTE_BINDING], app.size.width)
        return keys if len(_fit(keys, app.size.width)) == len(keys) else shown


def _fit(keys: list[_ShownKey], width: int) -> list[_ShownKey]:
    """Where not all fit, those before the last two go: Help, which lists all, and Quit."""

    def measure(key: _ShownKey) -> int:
        return cells.width(key[1]) + cells.width(key[2]) + 2  # with a space between, and one after

    shown = list(keys)
    while len(shown) > _KEPT and sum(map(measure, shown)) - 1 > width:
        del shown[-_KEPT - 1]
    return shown
