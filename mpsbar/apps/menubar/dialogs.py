"""Questions and notices in front of everything: modal, so only for what the person just clicked."""

from collections.abc import Sequence
from typing import Any

from AppKit import (
    NSURL,
    NSAlert,
    NSAlertFirstButtonReturn,
    NSApplication,
    NSModalResponseOK,
    NSOpenPanel,
)


def ask(title: str, text: str, buttons: Sequence[str]) -> int:
    """Which of the buttons was clicked; the first is the default, the last may be Cancel."""
    _come_to_front()
    alert = NSAlert.alloc().init()
    alert.setMessageText_(title)
    alert.setInformativeText_(text)
    for button in buttons:
        alert.addButtonWithTitle_(button)
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


def _come_to_front() -> None:
    """A menu bar app is not active by itself, and its alerts would open behind the others."""
    application: Any = NSApplication.sharedApplication()
    if application.respondsToSelector_("activate"):  # macOS 14
        application.activate()
    else:
        application.activateIgnoringOtherApps_(True)
