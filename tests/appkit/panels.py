"""NSOpenPanel: modal as an alert; the test's answer names its button, and the folder as text.

A relative text is what the person clicks in the folder that the panel opens with.
"""

# ruff: noqa: N802, N815 - the names are Objective-C's

import os
from typing import Any

from appkit import session
from appkit.alerts import run_modal
from appkit.objects import is_text, stored
from appkit.values import NSURL
from appkit.views import NSWindow

_CANCEL = "Cancel"


class NSPanel(NSWindow, framework="AppKit"):
    pass


class NSSavePanel(NSPanel, framework="AppKit"):
    message, setMessage_ = stored("message", "", is_text)
    prompt, setPrompt_ = stored("prompt", "Open", is_text)
    directoryURL, setDirectoryURL_ = stored("directory")
    canCreateDirectories, setCanCreateDirectories_ = stored("creates", True)
    showsHiddenFiles, setShowsHiddenFiles_ = stored("hidden_files", False)
    URL = stored("chosen")[0]

    def runModal(self) -> int:
        answer = run_modal(self.message(), [self.prompt(), _CANCEL])
        if answer.button == _CANCEL:
            return 0
        assert answer.text is not None, "the panel wants a path: answer(button, text=path)"
        elsewhere = str(
            session.current().home / "Documents"
        )  # where the last panel was, for instance
        shown = elsewhere if self.directoryURL() is None else self.directoryURL().path()
        self._check(answer.text)
        self._chosen = NSURL.fileURLWithPath_(os.path.join(shown, answer.text))
        return 1

    def _check(self, choice: str) -> None:
        if not self.showsHiddenFiles() and any(name.startswith(".") for name in choice.split("/")):
            session.current().fault(RuntimeError(f"the panel does not show {choice!r}"))


class NSOpenPanel(NSSavePanel, framework="AppKit"):
    canChooseFiles, setCanChooseFiles_ = stored("files", True)
    canChooseDirectories, setCanChooseDirectories_ = stored("folders", False)
    allowsMultipleSelection, setAllowsMultipleSelection_ = stored("many", False)

    @classmethod
    def openPanel(cls) -> Any:
        return cls.alloc().init()

    def _check(self, choice: str) -> None:
        super()._check(choice)
        allowed = self.canChooseFiles() if os.path.isfile(choice) else self.canChooseDirectories()
        if not allowed:
            session.current().fault(RuntimeError(f"the panel does not let {choice!r} be chosen"))
