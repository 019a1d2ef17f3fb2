"""NSAlert: modal, so it hangs unless the test has said what the person will answer."""

# ruff: noqa: N802, N815 - the names are Objective-C's

from typing import Any

from appkit import session
from appkit.loop import DEFAULT, MODAL, main_loop
from appkit.objects import NSObject, is_text, stored
from appkit.values import NSArray, array
from appkit.views import NSButton, NSWindow

_OLD_CODES = (1, 0, -1)  # default, alternate, other
_FIRST = 1000  # NSAlertFirstButtonReturn


def run_modal(what: str, titles: list[str]) -> session.Answer:
    """The person's answer; the loop meanwhile runs in modal mode, as long as the test makes it."""
    now = session.current()
    if main_loop().currentMode() != DEFAULT:  # a menu's tracking takes the clicks meant for it
        now.fault(RuntimeError(f"the alert {what!r} over an open menu or another alert"))
    if now.in_action:
        now.fault(RuntimeError(f"the alert {what!r} inside the action of a menu item"))
    app = now.single.get("application")
    if app is not None and not app.isActive():
        now.fault(RuntimeError(f"the alert {what!r} of an app that is not active"))
    now.alerts.append(what)
    if not now.answers:
        now.end_with(session.Hangs(f"nobody answers the alert {what!r} with {titles}"))
    answer = now.answers.popleft()
    if answer.button not in titles:
        reason = f"the alert {what!r} has no button {answer.button!r}, only {titles}"
        now.end_with(session.Hangs(reason))
    if answer.meanwhile is not None:
        with main_loop()._in_mode(MODAL):
            answer.meanwhile()
    return answer


class NSAlert(NSObject, framework="AppKit"):
    messageText, setMessageText_ = stored("message", "", is_text)
    informativeText, setInformativeText_ = stored("informative", "", is_text)
    alertStyle, setAlertStyle_ = stored("style", 0)
    icon, setIcon_ = stored("icon")
    accessoryView, setAccessoryView_ = stored("accessory")
    showsSuppressionButton, setShowsSuppressionButton_ = stored("suppression", False)
    window = stored("window")[0]

    def _setup(self) -> None:
        self._titles: list[str] = []
        self._codes: list[int] = []
        self._made: list[NSButton] = []
        self._window = NSWindow.alloc().init()

    @classmethod
    def alertWithMessageText_defaultButton_alternateButton_otherButton_informativeTextWithFormat_(
        cls, title: Any, default: Any, alternate: Any, other: Any, text: str
    ) -> "NSAlert":
        made: NSAlert = cls.alloc().init()
        made._message, made._informative = title or "Alert", text.replace("%%", "%")
        words = (default or "OK", alternate, other)
        for code, word in zip(_OLD_CODES, words, strict=True):
            if word:
                made._add(word, code)
        return made

    def addButtonWithTitle_(self, title: str) -> NSButton:
        return self._add(title, _FIRST + len(self._titles))

    def _add(self, title: str, code: int) -> NSButton:
        button: NSButton = NSButton.alloc().init()
        button.setTitle_(title)
        self._titles.append(title)
        self._codes.append(code)
        self._made.append(button)
        return button

    def buttons(self) -> NSArray:
        return array(self._made)

    def runModal(self) -> int:
        if not self._titles:
            self.addButtonWithTitle_("OK")
        what = f"{self.messageText()}: {self.informativeText()}"
        answer = run_modal(what, self._titles)
        if answer.text is not None:
            self.accessoryView().setStringValue_(answer.text)
        return self._codes[self._titles.index(answer.button)]
