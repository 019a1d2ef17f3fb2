"""The keys of `mpsbar top`: the one list that the bindings, the last line and the help are made of.

A key of a process stands for one of the rows of its menu (ui/process_rows.py): where there is no
such row, there is no such key.
"""

from dataclasses import dataclass

from textual.binding import Binding

from mpsbar.language import _
from mpsbar.ui.columns import explain_counters
from mpsbar.ui.terminal.filter_field import LEAVING_BINDINGS
from mpsbar.ui.text import cells


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
