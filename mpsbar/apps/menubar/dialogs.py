"""Questions and notices in front of everything: modal, so only for what the person just clicked."""

from collections.abc import Sequence
from typing import Any

from AppKit import NSAlert, NSAlertFirstButtonReturn, NSApplication
from PyObjCTools import AppHelper

from mpsbar.apps.menubar.background import guarded

# Not 0: only a call with a delay waits for the run loop's default mode.
_SOON = 0.1


def ask(title: str, text: str, buttons: Sequence[str]) -> int:
    """Which of the buttons was clicked; the first is the default, the last may be Cancel."""
    _come_to_front()
    alert = NSAlert.alloc().init()
    alert.setMessageText_(title)
    alert.setInformativeText_(text)
    for button in buttons:
        alert.addButtonWithTitle_(button)
    return int(alert.runModal() - NSAlertFirstButtonReturn)


def tell(title: str, text: str, button: str) -> None:
    """What ended by itself, once nothing is in the way: an alert must not open over an open menu,
    whose tracking takes its clicks, nor over another alert."""
    AppHelper.callLater(_SOON, guarded(ask), title, text, (button,))


def _come_to_front() -> None:
    """A menu bar app is not active by itself, and its alerts would open behind the others."""
    application: Any = NSApplication.sharedApplication()
    if application.respondsToSelector_("activate"):  # macOS 14
        application.activate()
    else:
        application.activateIgnoringOtherApps_(True)
