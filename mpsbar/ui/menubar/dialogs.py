"""Alerts in front of everything: modal, so only for what the person just clicked."""

from collections.abc import Callable

from AppKit import (
    NSURL,
    NSAlert,
    NSAlertFirstButtonReturn,
    NSApplication,
    NSFloatingWindowLevel,
    NSModalResponseOK,
    NSOpenPanel,
)
from PyObjCTools import AppHelper

from mpsbar.ui.menubar.callbacks import guarded
from mpsbar.ui.text.dialogs import Dialog

# Not 0: only a call with a delay waits for the run loop's default mode.
_SOON = 0.1


def ask(dialog: Dialog) -> int:
    """Which of the buttons was clicked; the first is the default, the last may be Cancel."""
    _come_to_front()
    alert = NSAlert.alloc().init()
    alert.setMessageText_(dialog.title)
    alert.setInformativeText_(dialog.text)
    for button in dialog.buttons:
        alert.addButtonWithTitle_(button)
    alert.window().setLevel_(NSFloatingWindowLevel)  # should macOS not make us the active app
    return int(alert.runModal() - NSAlertFirstButtonReturn)


def choose_folder(start: str, text: str, button: str) -> str | None:
    """A folder of the person's choice, which the panel can also make; None: cancelled."""
    _come_to_front()
    panel = NSOpenPanel.openPanel()
    panel.setCanChooseFiles_(False)
    panel.setCanChooseDirectories_(True)
    panel.setCanCreateDirectories_(True)
    panel.setShowsHiddenFiles_(True)  # ~/.local is one
    panel.setMessage_(text)
    panel.setPrompt_(button)
    panel.setDirectoryURL_(NSURL.fileURLWithPath_(start))
    if panel.runModal() != NSModalResponseOK:
        return None
    return str(panel.URL().path())


def call_when_free(function: Callable[..., object], *arguments: object) -> None:
    """Call it once nothing is in the way: an alert must not open over an open menu, whose tracking
    takes its clicks, nor over another alert."""
    AppHelper.callLater(_SOON, guarded(function), *arguments)


def _come_to_front() -> None:
    """A menu bar app is not active by itself, and its alerts would open behind the others.

    Not macOS 14's `activate`: for a menu bar app it is a request that is often declined.
    """
    NSApplication.sharedApplication().activateIgnoringOtherApps_(True)
