"""Views and controls, as far as alerts, sliders and the status item's button need them."""

# ruff: noqa: N802, N815 - the names are Objective-C's

from collections import namedtuple
from typing import Any

from appkit import session
from appkit.messages import send
from appkit.objects import NSObject, is_text, is_text_or_nil, stored, weak
from appkit.values import array

NSEdgeInsets = namedtuple("NSEdgeInsets", "top left bottom right")  # noqa: PYI024 - PyObjC's too


class NSScreen(NSObject, framework="AppKit"):
    """Reads state.screens at each call."""

    @classmethod
    def screens(cls) -> Any:
        return array([_screen(screen) for screen in session.current().screens])

    @classmethod
    def mainScreen(cls) -> Any:
        screens = session.current().screens
        return _screen(screens[0]) if screens else None

    def frame(self) -> Any:
        return self._values[0]

    def safeAreaInsets(self) -> NSEdgeInsets:
        return NSEdgeInsets(self._values[1], 0.0, 0.0, 0.0)

    def auxiliaryTopLeftArea(self) -> Any:
        return self._values[2]

    def auxiliaryTopRightArea(self) -> Any:
        return self._values[3]


def _screen(values: Any) -> NSScreen:
    made: NSScreen = NSScreen.alloc()
    made._values = values
    return made


class NSResponder(NSObject, framework="AppKit"):
    pass


class NSWindow(NSResponder, framework="AppKit"):
    initialFirstResponder, setInitialFirstResponder_ = stored("first_responder")
    appearance, setAppearance_ = stored("appearance")
    title, setTitle_ = stored("title", "", is_text)
    level, setLevel_ = stored("level", 0)

    def _setup(self) -> None:
        self._on_bar = False

    def frame(self) -> Any:
        return session.current().icon_frame if self._on_bar else session.NOWHERE

    def screen(self) -> Any:
        return NSScreen.mainScreen()

    def isVisible(self) -> bool:
        return session.current().bar_has_room if self._on_bar else True

    def occlusionState(self) -> int:
        return 8194 if self.isVisible() else 8192  # 2 = NSWindowOcclusionStateVisible

    def makeKeyAndOrderFront_(self, sender: Any) -> None:
        session.current().log.append("window ordered front")


class NSView(NSResponder, framework="AppKit"):
    toolTip, setToolTip_ = stored("tip", None, is_text_or_nil)
    isHidden, setHidden_ = stored("hidden", False)
    accessibilityLabel, setAccessibilityLabel_ = stored("label", None, is_text_or_nil)
    accessibilityTitle, setAccessibilityTitle_ = stored("spoken_title", None, is_text_or_nil)
    accessibilityHelp, setAccessibilityHelp_ = stored("help", None, is_text_or_nil)
    accessibilityValue, setAccessibilityValue_ = stored("spoken_value")
    window = stored("window")[0]

    def _setup(self) -> None:
        self._frame: Any = ((0, 0), (0, 0))

    def initWithFrame_(self, frame: Any) -> Any:
        self._frame = frame
        return self

    def frame(self) -> Any:
        return self._frame

    def setFrameSize_(self, size: Any) -> None:
        self._frame = (self._frame[0], size)


class NSControl(NSView, framework="AppKit"):
    target, setTarget_ = weak("target")
    action, setAction_ = stored("action")
    isEnabled, setEnabled_ = stored("enabled", True)
    font, setFont_ = stored("font")
    stringValue, setStringValue_ = stored("text", "", is_text)
    doubleValue, setDoubleValue_ = stored("number", 0.0)

    def validateEditing(self) -> None:
        """What was typed is already in the value."""

    def _act(self) -> None:
        if self._action is not None:
            send(self.target(), self._action, self)


class NSTextField(NSControl, framework="AppKit"):
    isSelectable, setSelectable_ = stored("selectable", True)
    isEditable, setEditable_ = stored("editable", True)
    placeholderString, setPlaceholderString_ = stored("placeholder", None, is_text_or_nil)


class NSSecureTextField(NSTextField, framework="AppKit"):
    pass


class NSSlider(NSControl, framework="AppKit"):
    minValue, setMinValue_ = stored("least", 0.0)
    maxValue, setMaxValue_ = stored("most", 1.0)


class NSButton(NSControl, framework="AppKit"):
    title, setTitle_ = stored("title", "", is_text)
    attributedTitle, setAttributedTitle_ = stored("attributed")
    image, setImage_ = stored("image")
    imagePosition, setImagePosition_ = stored("position", 0)
    contentTintColor, setContentTintColor_ = stored("tint")
    keyEquivalent, setKeyEquivalent_ = stored("key", "", is_text)
    hasDestructiveAction, setHasDestructiveAction_ = stored("destructive", False)

    def _shown(self) -> str:
        attributed = self.attributedTitle()
        return self.title() if attributed is None else attributed.string()
