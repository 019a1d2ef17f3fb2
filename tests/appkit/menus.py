"""NSMenu and NSMenuItem: rows, submenus, delegates, who may be clicked."""

# ruff: noqa: N802, N815 - the names are Objective-C's

from typing import Any

from appkit import session
from appkit.messages import error, responds, send, tell
from appkit.objects import NSObject, is_text, is_text_or_nil, stored, weak
from appkit.values import NSArray, array


class NSMenuItemBadge(NSObject, framework="AppKit"):
    stringValue = stored("text", "")[0]

    def initWithString_(self, text: str) -> "NSMenuItemBadge":
        self._text = text
        return self

    def initWithCount_(self, count: int) -> "NSMenuItemBadge":
        return self.initWithString_(str(count))


class NSMenuItem(NSObject, framework="AppKit"):
    title, setTitle_ = stored("title", "", is_text)
    attributedTitle, setAttributedTitle_ = stored("attributed")
    action, setAction_ = stored("action")
    target, setTarget_ = weak("target")
    keyEquivalent, setKeyEquivalent_ = stored("key", "", is_text)
    keyEquivalentModifierMask, setKeyEquivalentModifierMask_ = stored("mask", 1 << 20)
    state, setState_ = stored("state", 0)
    isHidden, setHidden_ = stored("hidden", False)
    isAlternate, setAlternate_ = stored("alternate", False)
    image, setImage_ = stored("image")
    toolTip, setToolTip_ = stored("tip", None, is_text_or_nil)
    tag, setTag_ = stored("tag", 0)
    indentationLevel, setIndentationLevel_ = stored("indent", 0)
    representedObject, setRepresentedObject_ = stored("represented")
    view, setView_ = stored("view")
    badge, setBadge_ = stored("badge")
    subtitle, setSubtitle_ = stored("subtitle", None, is_text_or_nil)
    accessibilityLabel, setAccessibilityLabel_ = stored("label", None, is_text_or_nil)
    accessibilityHelp, setAccessibilityHelp_ = stored("help", None, is_text_or_nil)
    submenu = stored("submenu")[0]
    menu = stored("menu")[0]
    isSeparatorItem = stored("separator", False)[0]

    def _setup(self) -> None:
        self._on = True

    def initWithTitle_action_keyEquivalent_(self, title: str, action: Any, key: str) -> Any:
        self.setTitle_(title)
        self.setAction_(action)
        self.setKeyEquivalent_(key)
        return self

    @classmethod
    def separatorItem(cls) -> "NSMenuItem":
        made: NSMenuItem = cls.alloc()
        made._separator = True
        return made

    @classmethod
    def sectionHeaderWithTitle_(cls, title: str) -> "NSMenuItem":
        made: NSMenuItem = cls.alloc().initWithTitle_action_keyEquivalent_(title, None, "")
        return made

    def setSubmenu_(self, submenu: Any) -> None:
        if submenu is not None and submenu._owner not in (None, self):
            session.current().fault(error("the menu is already a submenu of another item"))
        if self.submenu() is not None:
            self.submenu()._owner = None
        self._submenu = submenu
        # AppKit makes its own action of it; nobody says that it brings the former one back.
        self._target, self._action = None, None if submenu is None else "submenuAction:"
        if submenu is not None:
            submenu._owner = self

    def hasSubmenu(self) -> bool:
        return self.submenu() is not None

    def setEnabled_(self, on: bool) -> None:
        self._on = bool(on)

    def isEnabled(self) -> bool:
        """Greyed by the menu, unless it leaves that to us: no action, or no one who has it."""
        menu = self.menu()
        if menu is None or not menu._auto or self.hasSubmenu() or self.view() is not None:
            return self._on
        if self.action() is None or not responds(self.target(), self.action()):
            return False
        if responds(self.target(), "validateMenuItem:"):
            return bool(send(self.target(), "validateMenuItem:", self))
        return True

    def _shown(self) -> str:
        attributed = self.attributedTitle()
        return self.title() if attributed is None else attributed.string()


class NSMenu(NSObject, framework="AppKit"):
    title, setTitle_ = stored("title", "", is_text)
    delegate, setDelegate_ = weak("delegate")
    minimumWidth, setMinimumWidth_ = stored("width", 0.0)
    font, setFont_ = stored("font")

    def _setup(self) -> None:
        self._items: list[NSMenuItem] = []
        self._owner: NSMenuItem | None = None
        self._auto = True

    def initWithTitle_(self, title: str) -> "NSMenu":
        self._title = title
        return self

    def autoenablesItems(self) -> bool:
        return self._auto

    def setAutoenablesItems_(self, on: bool) -> None:
        self._auto = bool(on)

    def addItem_(self, item: NSMenuItem) -> None:
        self.insertItem_atIndex_(item, len(self._items))

    def insertItem_atIndex_(self, item: NSMenuItem, index: int) -> None:
        if not isinstance(item, NSMenuItem) or item.menu() is not None:
            session.current().fault(
                error("Item to be inserted into menu already is in another menu")
            )
        if not 0 <= index <= len(self._items):
            session.current().fault(error(f"no index {index} in this menu"))
        self._note_change(f"inserted {item._shown()!r}")
        self._items.insert(index, item)
        item._menu = self

    def removeItem_(self, item: NSMenuItem) -> None:
        if item not in self._items:
            session.current().fault(error(f"{item._shown()!r} is not in this menu"))
        self._note_change(f"removed {item._shown()!r}")
        self._items.remove(item)
        item._menu = None

    def removeItemAtIndex_(self, index: int) -> None:
        self.removeItem_(self.itemAtIndex_(index))

    def removeAllItems(self) -> None:
        for item in list(self._items):
            self.removeItem_(item)

    def indexOfItem_(self, item: NSMenuItem) -> int:
        return self._items.index(item) if item in self._items else -1

    def itemAtIndex_(self, index: int) -> NSMenuItem:
        if not 0 <= index < len(self._items):
            session.current().fault(error(f"no index {index} in this menu"))
        return self._items[index]

    def itemArray(self) -> NSArray:
        return array(self._items)

    def numberOfItems(self) -> int:
        return len(self._items)

    def performActionForItemAtIndex_(self, index: int) -> None:
        item = self.itemAtIndex_(index)
        if item.isEnabled() and item.action() is not None:
            send(item.target(), item.action(), item)

    def cancelTracking(self) -> None:
        session.current().log.append("menu tracking cancelled")

    def _note_change(self, what: str) -> None:
        """Apple allows it, people's apps crashed on it: a test may ask that it never happens."""
        now = session.current()
        if self in now.open_menus:
            now.changed_while_open.append(what)

    def _prepare(self) -> None:
        tell(self.delegate(), "menuNeedsUpdate:", self)
        tell(self.delegate(), "menuWillOpen:", self)

    def _open(self) -> None:
        self._prepare()
        session.current().open_menus.append(self)

    def _close(self) -> None:
        session.current().open_menus.remove(self)
        tell(self.delegate(), "menuDidClose:", self)
