"""Classes that only affect how things are drawn: images, fonts, colors, appearances. They are kept, never drawn."""

# ruff: noqa: N802, N815 - the names are Objective-C's

from pathlib import Path
from typing import Any

from appkit.objects import NSObject, is_text_or_nil, stored
from appkit.values import array


class NSImage(NSObject, framework="AppKit", any_thread=True):
    size, setSize_ = stored("size", (0, 0))
    isTemplate, setTemplate_ = stored("template", False)
    accessibilityDescription, setAccessibilityDescription_ = stored(
        "described", None, is_text_or_nil
    )
    scalesWhenResized, setScalesWhenResized_ = stored("scales", False)

    def _setup(self) -> None:
        self._source: str | None = None
        self._pictures: list[NSImageRep] = []

    def initWithSize_(self, size: Any) -> "NSImage":
        self._size = size
        return self

    def addRepresentation_(self, picture: "NSImageRep") -> None:
        self._pictures.append(picture)

    def representations(self) -> Any:
        return array(self._pictures)

    def initByReferencingFile_(self, path: str) -> "NSImage":
        self._source = path  # read when drawn: a missing file is found out only by isValid
        return self

    def initWithContentsOfFile_(self, path: str) -> "NSImage | None":
        return self.initByReferencingFile_(path) if Path(path).is_file() else None

    def isValid(self) -> bool:
        if self._source is None:
            return bool(self._pictures)
        return self._source.startswith("symbol:") or Path(self._source).is_file()

    @classmethod
    def imageWithSystemSymbolName_accessibilityDescription_(
        cls, name: str, described: str | None
    ) -> "NSImage":
        made: NSImage = cls.alloc()  # whether this macOS has such a symbol is not known here
        made._source, made._described = f"symbol:{name}", described
        return made


class NSImageRep(NSObject, framework="AppKit", any_thread=True):
    size, setSize_ = stored("size", (0, 0))
    pixelsWide = stored("wide", 0)[0]
    pixelsHigh = stored("high", 0)[0]

    @classmethod
    def imageRepWithContentsOfFile_(cls, path: str) -> "NSImageRep | None":
        """PNG only: its size in pixels stands in the header. As many points, at 72 dots an inch: macOS
        reads "@2x" only in the names that imageNamed: looks for."""
        if not Path(path).is_file():
            return None
        made: NSImageRep = cls.alloc()
        head = Path(path).read_bytes()[:24]
        if head[:8] != b"\x89PNG\r\n\x1a\n":
            return None
        made._wide, made._high = (int.from_bytes(head[at : at + 4], "big") for at in (16, 20))
        made._size = (float(made._wide), float(made._high))
        made._source = path
        return made


class NSTextTab(NSObject, framework="AppKit", any_thread=True):
    alignment = stored("alignment", 0)[0]
    location = stored("location", 0.0)[0]

    def initWithTextAlignment_location_options_(
        self, alignment: int, location: float, options: Any
    ) -> "NSTextTab":
        self._alignment, self._location = alignment, location
        return self


class NSParagraphStyle(NSObject, framework="AppKit", any_thread=True):
    pass


class NSMutableParagraphStyle(NSParagraphStyle, framework="AppKit", any_thread=True):
    tabStops, setTabStops_ = stored("stops")


class NSFont(NSObject, framework="AppKit", any_thread=True):
    pointSize = stored("points", 13.0)[0]
    fontName = stored("name", "")[0]

    @classmethod
    def systemFontOfSize_(cls, points: float) -> "NSFont":
        return _font(".AppleSystemUIFont", points, 13.0)

    @classmethod
    def systemFontOfSize_weight_(cls, points: float, weight: float) -> "NSFont":
        return _font(".AppleSystemUIFont", points, 13.0)

    @classmethod
    def menuFontOfSize_(cls, points: float) -> "NSFont":
        return _font(".AppleSystemUIFont", points, 13.0)

    @classmethod
    def menuBarFontOfSize_(cls, points: float) -> "NSFont":
        return _font(".AppleSystemUIFont", points, 14.0)

    @classmethod
    def monospacedDigitSystemFontOfSize_weight_(cls, points: float, weight: float) -> "NSFont":
        return _font(".AppleSystemUIFont-digits", points, 13.0)

    @classmethod
    def monospacedSystemFontOfSize_weight_(cls, points: float, weight: float) -> "NSFont":
        return _font(".AppleSystemUIFontMonospaced", points, 13.0)


def _font(name: str, points: float, usual: float) -> NSFont:
    made: NSFont = NSFont.alloc()
    made._name, made._points = name, float(points) or usual
    return made


def _colour(name: str) -> Any:
    def make(cls: Any) -> Any:
        made = cls.alloc()
        made._name = name
        return made

    return classmethod(make)


class NSColor(NSObject, framework="AppKit", any_thread=True):
    labelColor = _colour("label")
    secondaryLabelColor = _colour("secondaryLabel")
    tertiaryLabelColor = _colour("tertiaryLabel")
    systemRedColor = _colour("systemRed")
    systemOrangeColor = _colour("systemOrange")
    systemYellowColor = _colour("systemYellow")
    systemGreenColor = _colour("systemGreen")
    systemGrayColor = _colour("systemGray")
    controlAccentColor = _colour("controlAccent")


class NSAppearance(NSObject, framework="AppKit"):
    name = stored("name")[0]

    @classmethod
    def appearanceNamed_(cls, name: str) -> "NSAppearance":
        made: NSAppearance = cls.alloc()
        made._name = name
        return made
