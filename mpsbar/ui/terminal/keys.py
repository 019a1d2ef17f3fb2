"""The keys of `mpsbar top`: the one list, the row each stands for, and the last line. Pure.

A key whose row is not in the menu is not there: the menu alone says what can be done.
"""

from dataclasses import dataclass

from mpsbar.core.actions import CancelProbe
from mpsbar.ui.columns import explain_counters
from mpsbar.ui.rows import Menu, Row
from mpsbar.ui.terminal.frame import Frame, Hit, StyledSpan
from mpsbar.ui.terminal.table_rows import Entry
from mpsbar.ui.text import cells
from mpsbar.ui.text.wording import _

_ALWAYS_SHOWN = ("f", "F", "t", "s")
# Where the line is too short, the first to go; they work all the same, and ? tells them.
_SPARED = ("o", "⏎", "l", "r", "/", "c", "p")


@dataclass(frozen=True, slots=True)
class KeyBinding:
    """One key. It stands for a row of the menu (`row`: its key), for a row of the chosen process
    (`child`: the beginning of its key), or for one of the app's own commands (`command`)."""

    char: str
    help: str
    caption: str = ""  # in the last line; "": not shown there
    row: str = ""
    child: str = ""
    command: str = ""


def list_keys() -> tuple[KeyBinding, ...]:
    """All keys, in the order of the last line; those that move the choice are in app.py."""
    return (
        KeyBinding("f", _("free the selected process's cache"), _("Free"), child="free"),
        KeyBinding(
            "w", _("free a busy one when possible; again: cancel that"), child="when-possible"
        ),
        KeyBinding("F", _("free all caches"), _("Free all"), row="free-all"),
        KeyBinding("p", _("run the dtype probe"), _("Probe"), row="probe"),
        KeyBinding("t", _("show its largest tensors"), _("Tensors"), child="tensors"),
        KeyBinding("l", _("limit its memory (asks first)"), _("Limit"), child="limit"),
        KeyBinding("s", _("stop it (asks first)"), _("Stop"), child="stop"),
        KeyBinding("c", _("connect its environment (asks first)"), _("Connect"), child="connect"),
        KeyBinding("n", _("ring the bell when it ends"), child="watch"),
        KeyBinding("y", _("copy its PID"), child="copy"),
        KeyBinding("A", _("choose when caches are freed automatically"), row="auto-free"),
        KeyBinding("r", _("open the report"), _("Report"), row="report"),
        KeyBinding(
            "/", _("show only rows that contain some text; Esc shows all"), _("Filter"),
            command="filter",
        ),
        KeyBinding(
            "o", _("sort by the next column; or click a column heading"), _("Sort"), command="sort"
        ),
        KeyBinding("O", _("reverse the order"), command="reverse"),
        KeyBinding(
            "⏎", _("show all actions for it; or click its row"), _("More"),
            command="show_menu",
        ),
        KeyBinding("?", _("this help"), _("Help"), command="show_help"),
        KeyBinding("q", _("quit"), _("Quit"), command="quit"),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """One key in the last line."""

    char: str
    text: str
    is_ready: bool = True


def find_command(char: str) -> str:
    """The app's own command of a key; "": it has none."""
    return next((key.command for key in list_keys() if key.char == char), "")


def find_row(char: str, menu: Menu, chosen: Row | None) -> Row | None:
    """The row that a key stands for; None where there is no such row now."""
    for key in list_keys():
        if key.char != char:
            continue
        if key.row:
            return _find(menu.rows, key.row)
        if key.child and chosen is not None:
            children = chosen.children
            return next((row for row in children if row.key.startswith(f"{key.child}-")), None)
    return None


def _find(rows: tuple[Row, ...], key: str) -> Row | None:
    """Also in submenus."""
    for row in rows:
        found = row if row.key == key else _find(row.children, key)
        if found is not None:
            return found
    return None


def can_press(row: Row | None) -> bool:
    return row is not None and bool(row.actions or row.opens or row.children)


def build_keys(menu: Menu, chosen: Entry | None, is_wide: bool) -> list[Key]:
    """The last line; a narrow one has no room for sorting and the menu of a row."""
    keys = []
    for key in list_keys():
        if not key.caption or (key.char in ("o", "⏎") and not is_wide):
            continue
        if key.command:
            keys.append(Key(key.char, key.caption, key.char != "⏎" or chosen is not None))
            continue
        row = find_row(key.char, menu, chosen.row if chosen else None)
        is_probing = row is not None and CancelProbe() in row.actions
        # While a probe runs: how far it is, and that a press cancels it.
        text = row.text if row is not None and is_probing else key.caption
        if row is not None or key.char in _ALWAYS_SHOWN:
            keys.append(Key(key.char, text, can_press(row)))
    return keys


def render_keys(keys: list[Key], width: int) -> Frame:
    """One line; closer together where it is narrow."""
    for spare in _SPARED:
        if _measure(keys) + len(keys) - 1 > width:
            keys = [key for key in keys if key.char != spare]
    needed = _measure(keys)
    gap = 2 if needed + 2 * len(keys) <= width else 1
    spans: list[StyledSpan] = []
    hits, at = [], 0
    for key in keys:
        caption = f" {key.text}"
        wide = cells.width(key.char) + cells.width(caption)
        if at + wide > width:
            break
        spans += [
            StyledSpan(key.char, "key" if key.is_ready else "dim"),
            StyledSpan(caption, "" if key.is_ready else "dim"),
            StyledSpan(" " * gap),
        ]
        hits.append(Hit(0, at, at + wide, f"key:{key.char}"))
        at += wide + gap
    return Frame((tuple(spans),), tuple(hits))


def _measure(keys: list[Key]) -> int:
    return sum(cells.width(key.char) + 1 + cells.width(key.text) for key in keys)


def help_lines() -> list[str]:
    moves = ("↑ ↓", _("select; also j, k, PgUp, PgDn, Home, End, or the mouse"))
    keys = [*((key.char, key.help) for key in list_keys()), moves]
    words = ["", *explain_counters(), _("?: unknown")]
    return [f"{cells.fit(char, 4)} {text}" for char, text in keys] + words
