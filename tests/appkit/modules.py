"""The modules that PyObjC would offer: AppKit, Foundation, objc and the others, made of the double."""

import builtins
import importlib
import types
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from appkit import session
from appkit.alerts import run_modal
from appkit.application import NSApplication
from appkit.classes import ObjCClass
from appkit.encodings import NULL
from appkit.index import enums, known_names
from appkit.messages import BadPrototypeError, error, python_method, selector
from appkit.values import NSArray, array

_HOLDERS = (
    "objects", "clock", "loop", "values", "appearance", "views", "menus", "statusbar", "alerts", "panels", "application", "services",
)  # fmt: skip
NSPoint = namedtuple("NSPoint", "x y")  # noqa: PYI024 - PyObjC's are untyped too
NSSize = namedtuple("NSSize", "width height")  # noqa: PYI024
NSRect = namedtuple("NSRect", "origin size")  # noqa: PYI024
NSRange = namedtuple("NSRange", "location length")  # noqa: PYI024

# Constants whose value is not their name, or that are needed although they are of no enum.
_CONSTANTS: dict[str, Any] = {
    "NSDefaultRunLoopMode": "kCFRunLoopDefaultMode",
    "NSRunLoopCommonModes": "kCFRunLoopCommonModes",
    "NSFontAttributeName": "NSFont",
    "NSForegroundColorAttributeName": "NSColor",
    "NSBaselineOffsetAttributeName": "NSBaselineOffset",
    "NSParagraphStyleAttributeName": "NSParagraphStyle",
    "NSPasteboardTypeString": "public.utf8-plain-text",
    "NSFontWeightRegular": 0.0,
    "NSFontWeightMedium": 0.23,
    "NSFontWeightSemibold": 0.3,
    "NSFontWeightBold": 0.4,
}
# Those whose value is their name.
_NAMED = (
    "NSEventTrackingRunLoopMode", "NSModalPanelRunLoopMode", "NSWorkspaceWillSleepNotification",
    "NSWorkspaceDidWakeNotification", "NSApplicationDidFinishLaunchingNotification",
    "NSApplicationWillTerminateNotification", "NSAppearanceNameAqua", "NSAppearanceNameDarkAqua",
    "NSAppearanceNameVibrantDark", "UNErrorDomain", "SMAppServiceErrorDomain",
)  # fmt: skip
_PREFIXES = {"ServiceManagement": ("SM", "kSM"), "UserNotifications": ("UN",)}


class Framework(types.ModuleType):
    """A module that says whether Apple lacks a name or only the double does."""

    def __getattr__(self, name: str) -> Any:
        prefixes = _PREFIXES.get(self.__name__, ("NS",))
        if name in enums() and name.startswith(prefixes):
            return enums()[name]
        elsewhere = self.__name__ == "Foundation" and name in _classes("AppKit")
        if name in known_names() and name.startswith(prefixes) and not elsewhere:
            problem = NotImplementedError(f"{name}: Apple has it, the double does not")
            session.current().fault(problem)
        raise AttributeError(f"{self.__name__} has no {name}")


def build_modules() -> dict[str, types.ModuleType]:
    foundation = _framework("Foundation", _foundation_names())
    appkit = _framework("AppKit", {**vars_of(foundation), **_appkit_names()})
    return {
        "objc": _objc(),
        "Foundation": foundation,
        "AppKit": appkit,
        "ServiceManagement": _framework("ServiceManagement", {}),
        "UserNotifications": _framework("UserNotifications", {}),
        "Metal": _metal(),
        "PyObjCTools.MachSignals": _mach_signals(),
    }


def vars_of(module: types.ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}


def _framework(name: str, extra: dict[str, Any]) -> types.ModuleType:
    module = Framework(name)
    prefixes = _PREFIXES.get(name, ("NS",))
    constants = {**_CONSTANTS, **{key: key for key in _NAMED}}
    vars(module).update({k: v for k, v in constants.items() if k.startswith(prefixes)})
    vars(module).update(_classes(name), **extra)
    return module


def _classes(framework: str) -> dict[str, ObjCClass]:
    found = {}
    for holder in _HOLDERS:
        for name, value in vars(importlib.import_module(f"appkit.{holder}")).items():
            if isinstance(value, ObjCClass) and value.framework == framework:
                found[name] = value
    return found


def _foundation_names() -> dict[str, Any]:
    return {
        "NSPoint": NSPoint,
        "NSSize": NSSize,
        "NSRect": NSRect,
        "NSRange": NSRange,
        "NSMakeRect": lambda x, y, w, h: NSRect(NSPoint(x, y), NSSize(w, h)),
        "NSMakeSize": NSSize,
        "NSMakeRange": NSRange,
        "NSLog": _log,
        "NSSearchPathForDirectoriesInDomains": _search_path,
    }


def _appkit_names() -> dict[str, Any]:
    return {
        "NSApp": lambda: session.current().single.get("application"),
        "NSApplicationMain": lambda argv: NSApplication.sharedApplication().run(),
        "NSRunAlertPanel": _run_alert_panel,
    }


def _log(form: str, *arguments: Any) -> None:
    session.current().check_alive()  # AppHelper logs an NSException and would run again, for ever
    session.current().log.append(form.replace("%@", "{}").format(*arguments) if arguments else form)


def _search_path(directory: int, domain: int, expand: bool) -> NSArray:
    if (directory, domain) != (14, 1):
        raise NotImplementedError("only NSApplicationSupportDirectory of the user")
    return array([str(session.current().home / "Library/Application Support")])


def _run_alert_panel(
    title: str, form: str, default: Any, alternate: Any, other: Any, *more: Any
) -> int:
    """AppHelper asks here what to do about an exception: one that ended the process ends it again."""
    session.current().check_alive()
    titles = [word for word in (default, alternate, other) if word]
    answer = run_modal(f"{title}: {form % more if '%s' in form else more}", titles)
    return {default: 1, alternate: 0, other: -1}[answer.button]


def _objc() -> types.ModuleType:
    module = types.ModuleType("objc")
    vars(module).update(
        super=builtins.super,  # PyObjC's does for Objective-C classes what this does here
        error=error, BadPrototypeError=BadPrototypeError, python_method=python_method,
        selector=selector, NULL=NULL, nil=None, YES=True, NO=False, lookUpClass=_look_up,
        autorelease_pool=_Pool, objc_class=ObjCClass, _C_NSInteger=b"q",
    )  # fmt: skip
    return module


class _Pool:
    def __enter__(self) -> None:
        session.current().check_alive()

    def __exit__(self, *_: object) -> None:
        pass


def _look_up(name: str) -> ObjCClass:
    for framework in ("Foundation", "AppKit", "ServiceManagement", "UserNotifications"):
        if found := _classes(framework).get(name):
            return found
    if name in known_names():
        session.current().fault(NotImplementedError(f"{name}: Apple has it, the double does not"))
    raise error(name)


def _metal() -> types.ModuleType:
    """One device with its budget: no more of Metal is used, and none of it is in the index."""
    module = types.ModuleType("Metal")
    device = types.SimpleNamespace(recommendedMaxWorkingSetSize=lambda: 55662788608)
    vars(module).update(MTLCreateSystemDefaultDevice=lambda: device)
    return module


def _mach_signals() -> types.ModuleType:
    """PyObjC's needs a mach port; the person may send the signal by Mac.signal."""
    module = types.ModuleType("PyObjCTools.MachSignals")

    def signal(number: int, handler: Callable[[int], object]) -> Any:
        previous = session.current().signals.get(number)
        session.current().signals[number] = handler
        return previous

    vars(module).update(signal=signal, getsignal=session.current().signals.get)
    return module
