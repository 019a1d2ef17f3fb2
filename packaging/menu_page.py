"""Renders a Menu as an HTML page that resembles an open menu of macOS; all text is escaped."""

import base64
from html import escape
from pathlib import Path

from mpsbar.system.paths import resource
from mpsbar.ui.rows import Menu, Row

WIDTH = 846
_BAR, _ROW, _LINE, _CAPTION = 30, 22, 11, 44
_ICONS = {"warning": "icon-warning@3x.png", "critical": "icon-critical@3x.png"}
_STYLE = Path(__file__).with_name("menu.css")
_ARROW = (
    '<svg class="end" width="6" height="22" viewBox="0 0 6 22"><path d="M1 7.5 L4.7 11 L1 14.5"'
    ' fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round"/></svg>'
)

_BETWEEN = '<div class="line"></div>'


def build_page(menu: Menu, appearance: str, opened: str, caption: str) -> str:
    """`appearance` is light or dark; the submenu of the row with the key `opened` is open."""
    width, height = measure_page(menu)
    return (
        '<!doctype html><meta charset="utf-8"><title>mpsbar</title>'
        f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"
        f'<body class="{appearance}" style="width: {width}px; height: {height}px">'
        f"{_bar(menu)}{_menu(menu.sections, opened)}"
        f'<div class="caption">{escape(caption)}</div></body>'
    )


def measure_page(menu: Menu) -> tuple[int, int]:
    return WIDTH, _BAR + 4 + _menu_height(menu) + _CAPTION


def _menu_height(menu: Menu) -> int:
    sections = [section for section in menu.sections if section]
    return 10 + _ROW * len(menu.rows) + _LINE * (len(sections) - 1)


def _bar(menu: Menu) -> str:
    picture = resource(_ICONS.get(menu.bar.shape, "icon@3x.png")).read_bytes()
    address = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    icon = f'<span class="icon" style="-webkit-mask-image:url({address})"></span>'
    text = f"<span>{escape(menu.bar.text)}</span>" if menu.bar.text else ""
    item = f'<div class="item">{"" if menu.bar.is_dot else icon}{text}</div>'
    return f'<div class="bar">{item}<span class="battery"></span><span>9:41</span></div>'


def _menu(sections: tuple[tuple[Row, ...], ...], opened: str = "", chosen: str = "") -> str:
    drawn = [[_row(row, opened, chosen) for row in section] for section in sections if section]
    checks = any(row.is_checked for section in sections for row in section)
    kind = "menu checks" if checks else "menu"
    return f'<div class="{kind}">{_BETWEEN.join("".join(rows) for rows in drawn)}</div>'


def _row(row: Row, opened: str, chosen: str) -> str:
    """One row; `chosen` is the key of the row under the pointer, the first of an open submenu."""
    is_open = bool(row.children) and row.key == opened
    is_grey = bool(row.cells) and not (row.actions or row.children)
    marks = (("open", is_open), ("grey", is_grey), ("chosen", row.key == chosen))
    classes = " ".join(["row", *(name for name, is_on in marks if is_on)])
    check = '<span class="check">✓</span>' if row.is_checked else ""
    body = _cells(row) if row.cells else escape(row.text)
    end = _ARROW if row.children else _shortcut(row.shortcut)
    submenu = _menu((row.children,), chosen=row.children[0].key) if is_open else ""
    return f'<div class="{classes}">{check}{body}{end}{submenu}</div>'


def _cells(row: Row) -> str:
    name, device, size, note = (*row.cells, "", "", "", "")[:4]
    spots = (
        (name, "left:10px"),
        (device, "right:calc(100% - 270px)"),
        (size, "right:calc(100% - 336px)"),
        (row.share_bar, "left:348px"),
        (note, "left:404px"),
    )
    return "".join(f'<span class="cell" style="{at}">{escape(word)}</span>' for word, at in spots)


def _shortcut(key: str) -> str:
    return f'<span class="end">⌘{escape(key.upper())}</span>' if key else ""
