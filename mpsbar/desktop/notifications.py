"""Notifications: macOS's own from inside an app, else by a program that the desktop comes with.

Never rumps.notification: it uses a class that is deprecated and silent on newer systems.
"""

import html
import re
import shutil
import sys
from collections.abc import Callable
from typing import Protocol

from mpsbar.desktop.bundle import read_bundle
from mpsbar.desktop.programs import Commands

OSASCRIPT = "/usr/bin/osascript"
# Counted from the end: whether osascript swallows the "--" before them does not matter.
_SCRIPT = (
    "on run argv",
    "display notification (item -1 of argv) with title (item -2 of argv)",
    "end run",
)
_TITLE_MOST = 200
_TEXT_MOST = 1000


class Notifier(Protocol):
    kind: str

    def notify(self, title: str, text: str, key: str) -> None:
        """From any thread; returns at once. The same key replaces the earlier notice."""


def make_notifier(
    log: Callable[[str], None],
    platform: str = sys.platform,
    osascript: str = OSASCRIPT,
    notify_send: str | None = None,
) -> Notifier:
    """On the main thread, before the app has finished launching."""
    if platform == "darwin":
        script = Osascript(log, osascript)
        return _in_the_app(log, script) or script
    program = notify_send or shutil.which("notify-send")
    return NotifySend(log, program) if program else Silence()


def _in_the_app(log: Callable[[str], None], fallback: Notifier) -> Notifier | None:
    if read_bundle() is None:
        return None  # to ask for the notification center there would end the process
    try:
        from mpsbar.desktop.macos_notifications import UserNotifications

        return UserNotifications(log, fallback)
    except (ImportError, AttributeError) as error:
        log(f"macOS notifications are unavailable: {error}")
        return None


class Osascript:
    """Shown as from Script Editor; notices cannot be replaced."""

    kind = "osascript"

    def __init__(self, log: Callable[[str], None], program: str = OSASCRIPT) -> None:
        self._commands = Commands(log)
        self._program = program

    def notify(self, title: str, text: str, key: str) -> None:  # noqa: ARG002
        lines = [part for line in _SCRIPT for part in ("-e", line)]
        words = (self._program, *lines, "--", _clean(title, _TITLE_MOST), _clean(text, _TEXT_MOST))
        self._commands.start([_encode(word) for word in words])


class NotifySend:
    """The freedesktop notifications; some desktops replace by this hint, the others add."""

    kind = "notify-send"

    def __init__(self, log: Callable[[str], None], program: str) -> None:
        self._commands = Commands(log)
        self._program = program

    def notify(self, title: str, text: str, key: str) -> None:
        body = html.escape(_clean(text, _TEXT_MOST), quote=False)
        body = body.replace("\\", "\\\\")  # notify-send itself reads \n and the like in it
        name = re.sub(r"[^\w.-]", "_", key, flags=re.ASCII)[:100]
        words = [self._program, "--app-name=mpsbar"]
        words += [f"--hint=string:x-canonical-private-synchronous:mpsbar-{name}", "--"]
        words += [_clean(title, _TITLE_MOST), body]
        self._commands.start([_encode(word) for word in words])


class Silence:
    """There is nothing here to notify with."""

    kind = "none"

    def notify(self, title: str, text: str, key: str) -> None:
        pass


def _clean(text: str, most: int) -> str:
    """Without what ends an argument early (NUL) or a line twice; never empty, never endless."""
    words = "".join(c if c.isprintable() or c == "\n" else " " for c in text[:most])
    return words + "…" if len(text) > most else words or " "


def _encode(word: str) -> bytes:
    return word.encode("utf-8", "replace")
