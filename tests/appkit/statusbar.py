"""The status bar, its items and their button."""

# ruff: noqa: N802, N815 - the names are Objective-C's

from typing import Any

from appkit import session
from appkit.objects import NSObject, is_text_or_nil, stored
from appkit.views import NSButton, NSWindow


class NSStatusBarButton(NSButton, framework="AppKit"):
    appearsDisabled, setAppearsDisabled_ = stored("dimmed", False)

    def setImage_(self, image: Any) -> None:
        """macOS would draw what is too large over its neighbours, blurred or in one colour for every
        bar: nothing of that raises there."""
        if image is not None and (why := _misfit(image)):
            session.current().fault(ValueError(f"an icon in the menu bar: {why}"))
        self._image = image


_MAX_POINTS = 22.0  # Apple's height of an icon in the bar
_SCALES = (1, 2)  # of the screens of Macs; others may be there too


def _misfit(image: Any) -> str:
    """Why an image would not look like the other icons; nothing if it does."""
    size = tuple(image.size())
    if not all(0 < points <= _MAX_POINTS for points in size):
        return f"{size} points, where at most {_MAX_POINTS} are there"
    if not image.isTemplate():
        return "no template: macOS cannot colour it for light and dark"
    if image._source is not None:
        return ""  # a file or a symbol as a whole, whose pictures are not read here
    pictures = image.representations()
    wrong = [tuple(picture.size()) for picture in pictures if tuple(picture.size()) != size]
    if wrong:
        return f"representations of {wrong} points in an image of {size}"
    pixels = {(picture.pixelsWide(), picture.pixelsHigh()) for picture in pictures}
    missing = [s for s in _SCALES if (size[0] * s, size[1] * s) not in pixels]
    return f"no representation for scale {missing}: it would be blurred" if missing else ""


class NSStatusItem(NSObject, framework="AppKit"):
    menu, setMenu_ = stored("menu")
    length, setLength_ = stored("length", -1)
    isVisible, setVisible_ = stored("visible", True)
    behavior, setBehavior_ = stored("behavior", 0)
    autosaveName, setAutosaveName_ = stored("autosave", None, is_text_or_nil)
    highlightMode, setHighlightMode_ = stored("highlight", False)
    button = stored("button")[0]

    def _setup(self) -> None:
        self._button = NSStatusBarButton.alloc().init()
        self._button._window = NSWindow.alloc().init()
        self._button._window._on_bar = True

    # Deprecated since 10.14 and still what rumps sends: they pass to the button.
    def title(self) -> Any:
        return self._button.title() or None

    def setTitle_(self, title: Any) -> None:
        self._button.setTitle_(title or "")

    def image(self) -> Any:
        return self._button.image()

    def setImage_(self, image: Any) -> None:
        self._button.setImage_(image)

    def setToolTip_(self, tip: Any) -> None:
        self._button.setToolTip_(tip)


class NSStatusBar(NSObject, framework="AppKit"):
    def _setup(self) -> None:
        self._items: list[NSStatusItem] = []

    @classmethod
    def systemStatusBar(cls) -> "NSStatusBar":
        return session.current().only("status bar", cls.alloc)

    def statusItemWithLength_(self, length: float) -> NSStatusItem:
        made: NSStatusItem = NSStatusItem.alloc().init()
        made._length = length
        self._items.append(made)
        return made

    def removeStatusItem_(self, item: NSStatusItem) -> None:
        self._items.remove(item)

    def thickness(self) -> float:
        return 24.0
