"""How the menu bar asks and notifies: alerts, notifications, the pasteboard."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from AppKit import (
    NSURL,
    NSAlert,
    NSAlertFirstButtonReturn,
    NSApplication,
    NSFloatingWindowLevel,
    NSModalResponseOK,
    NSOpenPanel,
    NSTextField,
)
from Foundation import NSMakeRect
from PyObjCTools import AppHelper

from mpsbar.core.errors import UserError
from mpsbar.desktop import clipboard
from mpsbar.desktop.notifications import Notifier
from mpsbar.desktop.programs import open_file
from mpsbar.language import _
from mpsbar.system.paths import log_file
from mpsbar.ui.menubar.run_loop import call_when_free, guarded
from mpsbar.ui.text.dialogs import Dialog, Notice, failure_notice

_FIELD_SIZE = (240, 24)
_log = logging.getLogger("mpsbar")


class MenuBarFrontEnd:
    """The FrontEnd of ui/controller.py. `on_change` draws the menu again."""

    def __init__(self, notifier: Notifier, on_change: Callable[[], None]) -> None:
        self.is_menu_open = False
        self._notifier, self._on_change = notifier, on_change

    def ask(self, question: Dialog, answer: Callable[[int], None]) -> None:
        call_when_free(self._attempt, question, lambda: answer(ask(question)))

    def ask_text(self, question: Dialog, text: str, answer: Callable[[str], None]) -> None:
        def ask_and_answer() -> None:
            typed = ask_text(question, text)
            if typed is not None:
                answer(typed)

        call_when_free(self._attempt, question, ask_and_answer)

    def _attempt(self, question: Dialog, ask_and_answer: Callable[[], None]) -> None:
        try:
            ask_and_answer()
        except Exception as error:  # noqa: BLE001 - the click that asked is long over
            what = question.title.rstrip("?")
            _log.exception("%s failed", what)
            self.notify_failure(what, error)

    def notify(self, notice: Notice, key: str) -> None:
        if notice.kind == "detail":
            return
        _log.info("%s: %s", notice.title, notice.text)
        is_in_open_menu = self.is_menu_open and notice.kind != "news"
        if not is_in_open_menu:
            self._notifier.notify(notice.title, notice.sentence, key)

    def show(self, text: Dialog) -> None:
        call_when_free(ask, text)

    def notify_failure(self, what: str, error: Exception) -> None:
        self.notify(failure_notice(what, error, str(log_file())), f"failed-{what}")

    def copy(self, text: str) -> None:
        if not clipboard.copy(text, "darwin"):
            raise UserError(_("couldn't copy to the clipboard"))

    def open(self, file: Path) -> bool:
        return open_file(file, "darwin")

    def changed(self) -> None:
        self._on_change()

    def call_on_main(self, function: Callable[[], None]) -> None:
        """Calls it on the main thread, also while the menu or an alert is open."""
        AppHelper.callAfter(guarded(function))


def ask(dialog: Dialog) -> int:
    """Show a modal alert and return the number of the button that was clicked.

    The first is the default, the last may be Cancel. Only for what the person just clicked.
    """
    _come_to_front()
    return int(_build_alert(dialog).runModal() - NSAlertFirstButtonReturn)


def ask_text(dialog: Dialog, text: str) -> str | None:
    """Asks with a field to type in; returns None if cancelled."""
    _come_to_front()
    alert = _build_alert(dialog)
    field = NSTextField.alloc().initWithFrame_(NSMakeRect(0, 0, *_FIELD_SIZE))
    field.setStringValue_(text)
    alert.setAccessoryView_(field)
    alert.window().setInitialFirstResponder_(field)  # it can be typed in at once
    is_confirmed = alert.runModal() == NSAlertFirstButtonReturn
    return str(field.stringValue()) if is_confirmed else None


def _build_alert(dialog: Dialog) -> Any:
    alert = NSAlert.alloc().init()
    alert.setMessageText_(dialog.title)
    alert.setInformativeText_(dialog.text)
    for button in dialog.buttons:
        alert.addButtonWithTitle_(button)
    alert.window().setLevel_(NSFloatingWindowLevel)  # in case macOS does not activate us
    return alert


def choose_folder(start: str, text: str, button: str) -> str | None:
    """Lets the person choose or create a folder; returns None if cancelled."""
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
    """Activate the app: a menu bar app is not active by itself, and its alerts would open behind
    other windows.

    Not macOS 14's `activate`: for a menu bar app it is a request that is often declined.
    """
    NSApplication.sharedApplication().activateIgnoringOtherApps_(True)


def give_focus_back() -> bool:
    """Return the keyboard to the app that had it before ours was activated; False: it has it still.

    rumps activates us at every start, at login too, while somebody types. Hiding an app that has no
    window makes macOS activate the one before; the icon in the menu bar stays.
    """
    app = NSApplication.sharedApplication()
    if not app.isActive():
        return False
    app.hide_(None)
    return True
