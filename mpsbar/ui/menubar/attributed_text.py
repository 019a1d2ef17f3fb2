"""Text with attributes: columns that line up, digits of one width, colours that fit the bar."""

from functools import cache
from typing import Any

from AppKit import (
    NSColor,
    NSFont,
    NSFontAttributeName,
    NSForegroundColorAttributeName,
    NSMutableParagraphStyle,
    NSParagraphStyleAttributeName,
    NSTextAlignmentLeft,
    NSTextAlignmentRight,
    NSTextTab,
)
from Foundation import NSAttributedString

# Points from the left edge, in the menu font: 28 characters of name, then device and size flush
# right, a bar, then the rest.
_STOPS = (
    (260.0, NSTextAlignmentRight),
    (326.0, NSTextAlignmentRight),
    (338.0, NSTextAlignmentLeft),
    (394.0, NSTextAlignmentLeft),
)
_DOT_COLOURS = {
    "ok": NSColor.systemGreenColor,
    "warning": NSColor.systemOrangeColor,
    "critical": NSColor.systemRedColor,
    "unknown": NSColor.systemGrayColor,
}


def paint_cells(cells: tuple[str, ...], bar: str = "") -> Any:
    """Paints name, device, size, a small bar, and the rest, each in its column."""
    name, device, size, *rest = cells
    text = "\t".join((name, device, size, bar, *rest)).rstrip("\t")
    return _attributed(text, {**_menu_font(), **_columns()})


def paint_fact(text: str) -> Any:
    """Paints a row that cannot be clicked but should be read: not in the grey of disabled items."""
    colour = {NSForegroundColorAttributeName: NSColor.labelColor()}
    return _attributed(text, {**_menu_font(), **colour})


def paint_bar(text: str) -> Any:
    return _attributed(text, _bar_font())


def paint_dot(text: str, shape: str) -> Any:
    colour = {NSForegroundColorAttributeName: _DOT_COLOURS[shape]()}
    return _attributed(text, {**_bar_font(), **colour})


def _attributed(text: str, attributes: dict[str, Any]) -> Any:
    return NSAttributedString.alloc().initWithString_attributes_(text, attributes)


@cache
def _menu_font() -> dict[str, Any]:
    return {NSFontAttributeName: NSFont.monospacedDigitSystemFontOfSize_weight_(0, 0)}


@cache
def _bar_font() -> dict[str, Any]:
    size = NSFont.menuBarFontOfSize_(0).pointSize()
    return {NSFontAttributeName: NSFont.monospacedDigitSystemFontOfSize_weight_(size, 0)}


@cache
def _columns() -> dict[str, Any]:
    style = NSMutableParagraphStyle.alloc().init()
    make_tab = NSTextTab.alloc
    style.setTabStops_(
        [
            make_tab().initWithTextAlignment_location_options_(alignment, x, {})
            for x, alignment in _STOPS
        ]
    )
    return {NSParagraphStyleAttributeName: style}
