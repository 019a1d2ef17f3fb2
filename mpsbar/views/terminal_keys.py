"""What can be pressed in a terminal, and the row of the menu that each key stands for. Pure.

A key whose row is not in the menu is not there: the menu alone says what can be done.
"""

from dataclasses import dataclass

from mpsbar.model.action import CancelProbe
from mpsbar.views import cells
from mpsbar.views.frame import Frame, Hit, Span
from mpsbar.views.language import _
from mpsbar.views.row import Menu, Row
from mpsbar.views.terminal_rows import Entry

# The child of the chosen row, by the beginning of its key; or a row of the menu itself.
OF_CHOSEN = {"f": "free", "t": "tensors", "s": "stop", "c": "connect", "n": "watch", "y": "copy"}
OF_MENU = {"F": "free-all", "p": "probe", "r": "report"}
_ALWAYS_SHOWN = ("f", "F", "t", "s")
# Where the line is too short, the first to go; they work all the same, and ? tells them.
_SPARED = ("o", "⏎", "r", "/", "c", "p")


@dataclass(frozen=True, slots=True)
class Key:
    char: str
    text: str
    is_ready: bool = True


def find_row(char: str, menu: Menu, chosen: Row | None) -> Row | None:
    """What a press asks for; None where there is nothing to ask."""
    if char in OF_MENU:
        return next((row for row in menu.rows if row.key == OF_MENU[char]), None)
    if char in OF_CHOSEN and chosen is not None:
        start = f"{OF_CHOSEN[char]}-"
        return next((child for child in chosen.children if child.key.startswith(start)), None)
    return None


def can_press(row: Row | None) -> bool:
    return row is not None and bool(row.actions or row.opens or row.children)


def build_keys(menu: Menu, chosen: Entry | None, is_wide: bool) -> list[Key]:
    captions = {
        "f": _("Free"), "F": _("Free all"), "p": _("Probe"), "t": _("Tensors"), "s": _("Stop"),
        "c": _("Connect"), "r": _("Report"),
    }  # fmt: skip
    keys = []
    for char, caption in captions.items():
        row = find_row(char, menu, chosen.row if chosen else None)
        is_probing = row is not None and CancelProbe() in row.actions
        # Then how far it is, and that a press ends it.
        text = row.text if row is not None and is_probing else caption
        if row is not None or char in _ALWAYS_SHOWN:
            keys.append(Key(char, text, can_press(row)))
    keys.append(Key("/", _("Filter")))
    if is_wide:
        keys += [Key("o", _("Sort")), Key("⏎", _("More"), chosen is not None)]
    return [*keys, Key("?", _("Help")), Key("q", _("Quit"))]


def render_keys(keys: list[Key], width: int) -> Frame:
    """One line; closer together where it is narrow."""
    for spare in _SPARED:
        if _measure(keys) + len(keys) - 1 > width:
            keys = [key for key in keys if key.char != spare]
    needed = _measure(keys)
    gap = 2 if needed + 2 * len(keys) <= width else 1
    spans: list[Span] = []
    hits, at = [], 0
    for key in keys:
        caption = f" {key.text}"
        wide = cells.width(key.char) + cells.width(caption)
        if at + wide > width:
            break
        spans += [
            Span(key.char, "key" if key.is_ready else "dim"),
            Span(caption, "" if key.is_ready else "dim"),
            Span(" " * gap),
        ]
        hits.append(Hit(0, at, at + wide, f"key:{key.char}"))
        at += wide + gap
    return Frame((tuple(spans),), tuple(hits))


def _measure(keys: list[Key]) -> int:
    return sum(cells.width(key.char) + 1 + cells.width(key.text) for key in keys)


def say_copied(text: str) -> str:
    return _("copied: {text}").format(text=text)


def say_making_report() -> str:
    return _("making the report: torch is looked at in each Python, some seconds …")


def say_report(file: str, is_open: bool) -> str:
    text = _("report: {file}") if is_open else _("report: {file} (no browser could be opened here)")
    return text.format(file=file)


def help_title() -> str:
    return _("mpsbar in a terminal")


def help_lines() -> list[str]:
    keys = [
        ("f", _("free the cache of the chosen process")),
        ("F", _("free all caches")),
        ("t", _("its biggest tensors")),
        ("s", _("stop it (asks first)")),
        ("c", _("connect its environment (asks first)")),
        ("p", _("run the dtype probe")),
        ("r", _("open the report")),
        ("⏎", _("all that can be done with it; so does a click on it")),
        ("↑ ↓", _("choose; also j, k, PgUp, PgDn, Home, End, the mouse")),
        ("o O", _("sort by the next column, turn it round; or click on a column")),
        ("/", _("show only what contains a text; Esc shows all again")),
        ("q", _("quit")),
    ]
    words = [
        "",
        _("held: all the driver gave the process. allocated: in live tensors."),
        _("cached: kept for reuse, what Free returns at most. ?: not known."),
    ]
    return [f"{cells.fit(char, 4)} {text}" for char, text in keys] + words
