"""How the menu bar asks and tells: alerts, notifications, the pasteboard."""

import logging
from collections.abc import Callable
from pathlib import Path

from PyObjCTools import AppHelper

from mpsbar.core.errors import UserError
from mpsbar.desktop import clipboard
from mpsbar.desktop.notifications import Notifier
from mpsbar.desktop.programs import open_file
from mpsbar.system.paths import log_file
from mpsbar.ui.menubar import dialogs
from mpsbar.ui.menubar.callbacks import guarded
from mpsbar.ui.text.dialogs import Dialog, Notice, tell_failure

_log = logging.getLogger("mpsbar")


class MenuBarFrontEnd:
    """The FrontEnd of ui/controller.py. `on_change` draws the menu again."""

    def __init__(self, notifier: Notifier, on_change: Callable[[], None]) -> None:
        self.is_menu_open = False
        self._notifier, self._on_change = notifier, on_change

    def ask(self, question: Dialog, answer: Callable[[int], None]) -> None:
        answer(dialogs.ask(question))

    def tell(self, notice: Notice, key: str) -> None:
        if notice.kind == "detail":
            return
        _log.info("%s: %s", notice.title, notice.text)
        is_in_open_menu = self.is_menu_open and notice.kind != "news"
        if not is_in_open_menu:
            self._notifier.notify(notice.title, notice.text, key)

    def show(self, text: Dialog) -> None:
        dialogs.call_when_free(dialogs.ask, text)

    def tell_failure(self, what: str, error: Exception) -> None:
        self.tell(tell_failure(what, error, str(log_file())), f"failed-{what}")

    def copy(self, text: str) -> None:
        if not clipboard.copy(text, "darwin"):
            raise UserError("the clipboard did not take it")

    def open(self, file: Path) -> bool:
        return open_file(file, "darwin")

    def changed(self) -> None:
        self._on_change()

    def call_on_main(self, function: Callable[[], None]) -> None:
        """Also while the menu or an alert is open."""
        AppHelper.callAfter(guarded(function))
