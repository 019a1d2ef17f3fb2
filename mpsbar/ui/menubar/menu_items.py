"""Rows drawn on menu items that are reused, because rumps never releases an item.

While the menu is open no item is added, removed or moved: the row of an ended process says so, a
new row waits.
"""

from collections.abc import Callable, Sequence
from typing import Any

import rumps
from Foundation import NSObject

from mpsbar.ui.menubar.attributed_text import paint_cells, paint_fact
from mpsbar.ui.rows import Row


class MpsbarMenuDelegate(NSObject):  # type: ignore[misc]
    def menuNeedsUpdate_(self, _menu: Any) -> None:  # noqa: N802 - Objective-C's name
        self.on_update()

    def menuWillOpen_(self, _menu: Any) -> None:  # noqa: N802
        self.on_open()

    def menuDidClose_(self, _menu: Any) -> None:  # noqa: N802
        self.on_close()


def listen(
    menu: Any,
    on_update: Callable[[], None],
    on_open: Callable[[], None],
    on_close: Callable[[], None],
) -> Any:
    """Set and return the delegate; NSMenu does not keep it alive, so the caller must."""
    delegate = MpsbarMenuDelegate.alloc().init()
    delegate.on_update, delegate.on_open, delegate.on_close = on_update, on_open, on_close
    menu.setDelegate_(delegate)
    return delegate


_BLANK = Row("", "")
OnRow = Callable[[Row], None]


class Slot:
    """One menu item, and the row it shows now."""

    def __init__(self, key: str, on_click: OnRow, on_open: OnRow) -> None:
        self.row: Row = _BLANK
        self.item = rumps.MenuItem(key, callback=lambda _: on_click(self.row))
        self.is_shown = True
        self.is_spare = False  # hidden, and may be shown while the menu is open
        self._on_click, self._on_open = on_click, on_open
        self._level: MenuLevel | None = None
        self._is_attached = False

    def lay_out(self, row: Row) -> None:
        """Draws the rows anew. Call it only while the menu is closed."""
        self._attach(bool(row.children))
        if row.children:
            self._lay_out_children(row)
        self._draw(row)
        self.show(True)

    def update(self, row: Row) -> None:
        """Draws the rows, also while the menu is open."""
        if row is self.row:
            return
        if self._level is not None and row.children:
            self._level.update([row.children])
        self._draw(row)

    def show(self, on: bool) -> None:
        if on != self.is_shown:
            self.item._menuitem.setHidden_(not on)
            self.is_shown = on

    def _draw(self, row: Row) -> None:
        """Set only what differs: a message to AppKit costs more than a comparison."""
        before, self.row, native = self.row, row, self.item._menuitem
        can_click = bool(row.actions or row.children)
        could_click = bool(before.actions or before.children)
        if before is _BLANK or (row.text, row.cells, row.share, can_click) != (
            before.text, before.cells, before.share, could_click,
        ):  # fmt: skip
            self.item.title = row.text
            native.setAttributedTitle_(_paint(row, can_click))
            native.setAccessibilityLabel_(row.text)
            native.setEnabled_(can_click)
        if row.is_checked != before.is_checked:
            self.item.state = int(row.is_checked)
        if row.tooltip != before.tooltip:
            native.setToolTip_(row.tooltip or None)
        if row.shortcut != before.shortcut:
            native.setKeyEquivalent_(row.shortcut)

    def _lay_out_children(self, row: Row) -> None:
        if self._level is not None:
            self._level.lay_out([row.children], row.room)
            return
        self._level = MenuLevel(self.item, 1, self._on_click, self._on_open)
        self._level.lay_out([row.children], row.room)  # creates the submenu
        self._delegate = listen(
            self.item._menu, _nothing, lambda: self._on_open(self.row), _nothing
        )

    def _attach(self, has_children: bool) -> None:
        """Attaches or removes the submenu: an item with one cannot be clicked, one without has no
        arrow."""
        native = self.item._menuitem
        if self._level is not None and has_children != self._is_attached:
            native.setSubmenu_(self.item._menu if has_children else None)
            if not has_children:  # setSubmenu_ has replaced the item's action
                native.setTarget_(rumps.rumps.NSApp)
                native.setAction_("callback:")
        self._is_attached = has_children


class MenuLevel:
    """One menu or submenu: sections of slots with a separator between each two."""

    def __init__(self, owner: Any, sections: int, on_click: OnRow, on_open: OnRow) -> None:
        self._owner = owner
        self._on_click, self._on_open = on_click, on_open
        self._sections: list[list[Slot]] = [[] for _ in range(sections)]
        self._lines = [rumps.rumps.SeparatorMenuItem() for _ in range(sections - 1)]
        self._made = 0
        for number, line in enumerate(self._lines):
            owner[f"line-{number}"] = line

    def lay_out(self, sections: Sequence[Sequence[Row]], room: int = 0) -> None:
        for number, rows in enumerate(sections):
            slots = self._grow(number, max(len(rows), room))
            for slot, row in zip(slots, rows, strict=False):
                slot.lay_out(row)
            for index, slot in enumerate(slots):
                slot.is_spare = len(rows) <= index < room
                if index >= len(rows):
                    slot.show(False)
        for number, line in enumerate(self._lines):
            is_needed = any(sections[: number + 1]) and bool(sections[number + 1])
            line._menuitem.setHidden_(not is_needed)

    def update(self, sections: Sequence[Sequence[Row]]) -> None:
        for slots, rows in zip(self._sections, sections, strict=True):
            coming = {row.key: row for row in rows}
            spare = [slot for slot in slots if slot.is_spare and not slot.is_shown]
            for slot in (slot for slot in slots if slot.is_shown):
                row = coming.pop(slot.row.key) if slot.row.key in coming else None
                slot.update(row or slot.row.ended())
            for slot, row in zip(spare, coming.values(), strict=False):
                slot.update(row)
                slot.show(True)

    def _grow(self, number: int, size: int) -> list[Slot]:
        slots = self._sections[number]
        while len(slots) < size:
            self._made += 1
            slot = Slot(f"slot-{self._made}", self._on_click, self._on_open)
            if number < len(self._lines):
                self._owner.insert_before(f"line-{number}", slot.item)
            else:
                self._owner.add(slot.item)
            if self._made == 1:
                self._owner._menu.setAutoenablesItems_(False)  # rows decide, not AppKit
            slots.append(slot)
        return slots


def _paint(row: Row, can_click: bool) -> Any:
    if row.cells:
        return paint_cells(row.cells, row.share_bar)
    return None if can_click or not row.text else paint_fact(row.text)


def _nothing() -> None:
    pass
