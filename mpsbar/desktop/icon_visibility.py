"""Checks whether macOS draws our icon in the menu bar; macOS reports nothing when it does not."""

import ctypes
import platform
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mpsbar.core.machine import IconCheck
from mpsbar.core.naming import printable
from mpsbar.desktop.bundle import read_bundle
from mpsbar.system import paths
from mpsbar.system.files import read_own_json, write_own_json

CORE_GRAPHICS = "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"
CORE_FOUNDATION = "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation"
# macOS 26 calls itself 16 to programs built before it; there was nothing in between.
_TAHOE = 16

Doubt = Literal["not_made", "not_visible", "no_width", "behind_notch", "occluded"]


def has_gui_session(
    graphics: str = CORE_GRAPHICS, foundation: str = CORE_FOUNDATION
) -> bool | None:
    """Returns whether a user at a screen runs us (not by ssh); None if that is unknown."""
    try:
        copy = ctypes.CDLL(graphics).CGSessionCopyCurrentDictionary
        release = ctypes.CDLL(foundation).CFRelease
    except (OSError, AttributeError):
        return None
    copy.restype, copy.argtypes = ctypes.c_void_p, []
    release.restype, release.argtypes = None, [ctypes.c_void_p]
    session = copy()
    if session is None:
        return False
    release(session)
    return True


def draws_no_icon(version: tuple[int, ...] | None = None) -> str | None:
    """Returns a code for why macOS would run us but draw no icon; None if no reason is known.

    Reported for Homebrew's and python.org's Python, not for uv's (realiti4/claude-swap#310).
    """
    version = version or _read_version()
    is_framework = bool(getattr(sys, "_framework", ""))
    if version < (_TAHOE,) or not is_framework or read_bundle() is not None:
        return None
    return "framework_python"


def _read_version() -> tuple[int, ...]:
    parts = platform.mac_ver()[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())


@dataclass(frozen=True, slots=True)
class Screen:
    """Sizes in points. `right`: where the menu bar goes on beside the notch; None: no notch."""

    width: float
    height: float
    right: float | None = None


@dataclass(frozen=True, slots=True)
class Visibility:
    """What macOS reports about our icon; `is_on` stays true even when nothing is drawn."""

    is_on: bool | None = None
    visible: bool | None = None
    occluded: bool | None = None
    left: float | None = None
    width: float | None = None
    behind_notch: bool | None = None
    screens: tuple[Screen, ...] = ()

    @property
    def doubt(self) -> Doubt | None:
        """The most serious doubt; "occluded" alone is reported as a false alarm on macOS 15."""
        if self.visible is None:
            return "not_made"
        if not self.visible:
            return "not_visible"
        if not self.width:
            return "no_width"
        if self.behind_notch:
            return "behind_notch"
        return "occluded" if self.occluded else None

    def __str__(self) -> str:
        """Returns the line for the log."""
        shown = ", ".join(_describe(screen) for screen in self.screens)
        return (
            f"icon {self.doubt or 'fine'}: on={self.is_on} visible={self.visible}"
            f" occluded={self.occluded} left={self.left} width={self.width}"
            f"; screens: {shown or '-'}"
        )


def check_icon(item: Any) -> Visibility:
    """Checks an NSStatusItem, on the main thread, some seconds after it was made."""
    from AppKit import NSScreen, NSWindowOcclusionStateVisible

    screens = tuple(_read_screen(screen) for screen in NSScreen.screens() or ())
    button = item.button()
    window = None if button is None else button.window()
    if window is None:
        return Visibility(is_on=bool(item.isVisible()), screens=screens)
    (left, _), (width, _) = window.frame()
    return Visibility(
        is_on=bool(item.isVisible()),
        visible=bool(window.isVisible()),
        occluded=not window.occlusionState() & NSWindowOcclusionStateVisible,
        left=left,
        width=width,
        behind_notch=_is_behind_notch(left, width, window.screen()),
        screens=screens,
    )


def _read_screen(screen: Any) -> Screen:
    _, (width, height) = screen.frame()
    has_notch = screen.safeAreaInsets().top > 0
    return Screen(width, height, screen.auxiliaryTopRightArea()[1][0] if has_notch else None)


def _is_behind_notch(left: float, width: float, screen: Any) -> bool:
    if screen is None or not screen.safeAreaInsets().top:
        return False
    (before, _), (room, _) = screen.auxiliaryTopLeftArea()
    (after, _), _ = screen.auxiliaryTopRightArea()
    return bool(left < after and left + width > before + room)


def _describe(screen: Screen) -> str:
    notch = "" if screen.right is None else f" notch, {screen.right:.0f} right of it"
    return f"{screen.width:.0f}x{screen.height:.0f}{notch}"


_MAX_BYTES = 10_000


def write_icon(check: IconCheck) -> None:
    """Stores the result for `mpsbar doctor`. Raises OSError."""
    write_own_json(paths.icon_file(), {"schema": 1, **asdict(check)})


def read_icon() -> IconCheck | None:
    """Returns None if the icon was never checked, or the result cannot be read."""
    return read_own_json(paths.icon_file(), _MAX_BYTES, _parse_icon)


def _parse_icon(stored: Any) -> IconCheck:
    time.localtime(stored["time"])  # ValueError, OverflowError: no clock shows that
    doubt = None if stored["doubt"] is None else printable(str(stored["doubt"]), 40)
    return IconCheck(float(stored["time"]), doubt, printable(str(stored["details"]), 500))
