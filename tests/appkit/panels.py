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
        # Without a folder of its own it opens where the last one was.
        last = str(session.current().home / "Documents")
        shown = last if self.directoryURL() is None else self.directoryURL().path()
        if not self.showsHiddenFiles() and "/." in f"/{answer.text}":
            session.current().fault(RuntimeError(f"the panel does not show {answer.text!r}"))
        chosen = os.path.join(shown, answer.text)
        self._check(chosen)
        self._chosen = NSURL.fileURLWithPath_(chosen)
        return 1

    def _check(self, chosen: str) -> None:
        pass


class NSOpenPanel(NSSavePanel, framework="AppKit"):
    canChooseFiles, setCanChooseFiles_ = stored("files", True)
    canChooseDirectories, setCanChooseDirectories_ = stored("folders", False)
    canCreateDirectories, setCanCreateDirectories_ = stored("creates", False)
    allowsMultipleSelection, setAllowsMultipleSelection_ = stored("many", False)

    @classmethod
    def openPanel(cls) -> Any:
        return cls.alloc().init()

    def _check(self, chosen: str) -> None:
        allowed = self.canChooseFiles() if os.path.isfile(chosen) else self.canChooseDirectories()
        if not os.path.exists(chosen):
            allowed = allowed and self.canCreateDirectories()
        if not allowed:
            session.current().fault(RuntimeError(f"the panel does not let {chosen!r} be chosen"))
