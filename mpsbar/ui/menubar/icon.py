"""The icon in the menu bar and the text beside it, with what VoiceOver says."""

from typing import Any

from AppKit import NSImage, NSImageLeft, NSImageOnly, NSImageRep, NSMakeSize

from mpsbar.system.paths import resource
from mpsbar.ui.menubar.attributed_text import paint_bar, paint_dot
from mpsbar.ui.rows import Bar

_POINTS = 18.0
_SCALES = ("", "@2x", "@3x")
# Files of resources/ by Bar.shape; every other shape has the plain icon. packaging/draw_icons.py
# draws them from resources/icon.svg.
_FILES = {"warning": "icon-warning", "critical": "icon-critical"}


class MenuBarIcon:
    """Draws on the button of a status item. On the main thread only."""

    def __init__(self, item: Any) -> None:
        self._item = item
        self._button = item.button()
        self._images: dict[str, Any] = {}
        self._bar: Bar | None = None
        item.setAutosaveName_("mpsbar")  # macOS remembers its place in the bar by this

    def draw(self, bar: Bar) -> None:
        if bar == self._bar:
            return
        self._bar = bar
        image = None if bar.is_dot else self._image(bar.shape)
        self._button.setImage_(image)
        self._button.setImagePosition_(NSImageLeft if bar.text else NSImageOnly)
        text = f" {bar.text}" if bar.text and image is not None else bar.text
        self._button.setAttributedTitle_(
            paint_dot(text, bar.shape) if bar.is_dot else paint_bar(text)
        )
        self._button.setAccessibilityLabel_(bar.label)
        self._button.setToolTip_(bar.tooltip)

    def _image(self, shape: str) -> Any:
        name = _FILES.get(shape, "icon")
        if name not in self._images:
            self._images[name] = read_template(name)
        return self._images[name]


def read_template(name: str) -> Any:
    """Reads one image of all scales; macOS colours a template for light, dark and tinted bars."""
    image = NSImage.alloc().initWithSize_(NSMakeSize(_POINTS, _POINTS))
    for scale in _SCALES:
        picture = NSImageRep.imageRepWithContentsOfFile_(str(resource(f"{name}{scale}.png")))
        if picture is not None:
            picture.setSize_(NSMakeSize(_POINTS, _POINTS))
            image.addRepresentation_(picture)
    image.setTemplate_(True)
    return image
