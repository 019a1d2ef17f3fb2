"""The keys of `mpsbar top`, from which its bindings, its help and its last line are made.

A key of a process stands for one of the rows of its menu (ui/process_rows.py): where there is no
such row, there is no such key.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from mpsbar.language import _
from mpsbar.ui.text import cells

# These leave the filter before its field gets them: otherwise, of "/text, Enter, f" typed fast,
# the f would reach the field.
_LEAVING_BINDINGS = [
    Binding(key, f"leave_filter({key == 'escape'})", show=False, priority=True)
    for key in ("enter", "up", "down", "escape")
]

_ShownKey = tuple[str, str, str, str, bool]  # key, as people read it, caption, action, works now
_KEPT = 2


@dataclass(frozen=True, slots=True)
class KeyBinding:
    key: str  # as textual names it
    action: str  # "": a table or textual binds it; it is listed for the help
    help: str
    caption: str = ""  # in the last line; "": not shown there
    sign: str = ""  # as people read it, where it differs from the key


_FILTER = KeyBinding(
    "slash", "filter", _("show only rows that contain a text; Esc shows all"), _("Filter"), "/"
)
_REVERSE = KeyBinding("O", "reverse", _("reverse the order"))
_LAST = (
    KeyBinding("question_mark", "help", _("show this help"), _("Help"), "?"),
    KeyBinding("q", "quit", _("quit"), _("Quit")),
    KeyBinding(
        "up", "", _("select; also j, k, PgUp, PgDn, Home, End, or the mouse"), sign="↑ ↓"
    ),
    KeyBinding("ctrl+p", "", _("open the command palette (commands, themes)"), sign="^p"),
    KeyBinding(
        "ctrl+c", "", _("copy the text selected with the mouse; if none is, quit"), sign="^c"
    ),
    KeyBinding("ctrl+z", "", _("suspend; fg resumes"), sign="^z"),
)  # fmt: skip

# In the order of the last line.
KEYS = (
    KeyBinding("f", "row('free')", _("free the selected process's cache"), _("Free")),
    KeyBinding("c", "row('connect')", _("connect its environment (asks first)"), _("Connect")),
    KeyBinding(
        "w", "row('when-possible')",
        _("free its cache when it is no longer busy; press again to cancel"),
    ),
    KeyBinding("F", "menu('free-all')", _("free all caches"), _("Free all")),
    KeyBinding("t", "row('tensors')", _("show its largest tensors"), _("Tensors")),
    KeyBinding("l", "row('limit')", _("limit its memory (asks first)")),
    KeyBinding("s", "row('stop')", _("stop it (asks first)"), _("Stop")),
    KeyBinding("enter", "detail", _("show its details full screen; or click it"), _("Detail"), "⏎"),
    KeyBinding("a", "actions", _("show all its commands")),
    KeyBinding("n", "row('watch')", _("ring the bell when it ends")),
    KeyBinding("y", "row('copy')", _("copy its PID")),
    KeyBinding("d", "dtypes", _("the table of dtypes that work here"), _("dtypes")),
    KeyBinding("p", "menu('probe')", _("run the dtype probe; press again to cancel")),
    KeyBinding("r", "menu('report')", _("open the report")),
    KeyBinding("A", "menu('auto-free')", _("choose when caches are freed automatically")),
    _FILTER,
    KeyBinding("o", "sort", _("sort by the next column; or click a column header")),
    _REVERSE,
    KeyBinding("v", "tree", _("switch between a tree and a flat list")),
    KeyBinding(
        "escape", "deselect", _("show all rows; press again for this computer"), sign="Esc"
    ),
    *_LAST,
)  # fmt: skip
# Those of `mpsbar top --host`.
HOST_KEYS = (
    KeyBinding("f", "free", _("free the selected process's cache, on its host"), _("Free")),
    KeyBinding("F", "free_all", _("free all caches of that host"), _("Free all on host")),
    KeyBinding("c", "connect", _("answer an ssh prompt (password, unknown key)"), _("Answer ssh")),
    _FILTER,
    KeyBinding("o", "sort", _("sort by the next column; or click a column header"), _("Sort")),
    _REVERSE,
    KeyBinding(
        "escape", "show_all", _("show all rows and the processes of all hosts"), _("All"), "Esc"
    ),
    KeyBinding(
        "enter", "", _("show only this host's processes; press again for all hosts"), sign="⏎"
    ),
    KeyBinding(
        "tab", "", _("move from the processes to the hosts, and back; or click"), sign="Tab"
    ),
    *_LAST,
)  # fmt: skip


def find_actions(keys: Iterable[KeyBinding]) -> frozenset[str]:
    """Returns the actions that must not run while a field or another screen is open."""
    return frozenset(key.action.partition("(")[0] for key in keys if key.action)


def build_bindings(keys: Iterable[KeyBinding]) -> list[BindingType]:
    """Returns the bindings. textual queues keys for the widget that has the focus when they arrive.

    Only the keys that open and leave the filter have priority: otherwise, of "/text, Enter, f"
    typed fast, the letters would reach the table and the f the filter. All others must keep their
    order: in "down, f" the f is for the row below.
    """
    return [
        *(Binding(key.key, key.action, key.caption or key.help, show=bool(key.caption),
                  key_display=key.sign or None, priority=key.action == "filter")
          for key in keys if key.action),
        *_LEAVING_BINDINGS,
        Binding("ctrl+c", "copy_or_quit", show=False, priority=True, system=True),
        Binding("ctrl+z", "suspend_process", show=False, system=True),
    ]  # fmt: skip


def list_help(keys: Iterable[KeyBinding]) -> list[str]:
    return [f"{cells.fit(key.sign or key.key, 4)} {key.help}" for key in keys]


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
        """Does nothing behind another screen, which has other keys."""
        if self.app.screen is self.screen and self._list_keys() != self._shown:
            super().bindings_changed(screen)

    async def recompose(self) -> None:
        """Runs once for several changes that asked for it."""
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
    """Leaves out keys where not all fit, but not the last two: Help, which lists all, and Quit."""

    def measure(key: _ShownKey) -> int:
        return cells.width(key[1]) + cells.width(key[2]) + 2  # with a space between, and one after

    shown = list(keys)
    while len(shown) > _KEPT and sum(map(measure, shown)) - 1 > width:
        del shown[-_KEPT - 1]
    return shown
