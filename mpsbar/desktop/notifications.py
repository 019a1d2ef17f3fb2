"""Notifications: macOS's own inside the app, else through a program of the desktop.

Not rumps.notification: it uses a class that is deprecated and shows nothing on newer systems.
"""

import html
import queue
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol, get_args

from mpsbar.core.machine import Delivery, DeliveryCheck
from mpsbar.desktop.bundle import read_bundle
from mpsbar.desktop.programs import DESKTOP_SECONDS, describe_command, run_command
from mpsbar.system import paths
from mpsbar.system.files import read_own_json, write_own_json

OSASCRIPT = "/usr/bin/osascript"
# Counted from the end: whether osascript swallows the "--" before them does not matter.
_SCRIPT = (
    "on run argv",
    "display notification (item -1 of argv) with title (item -2 of argv)",
    "end run",
)
_MAX_TITLE = 200
_MAX_TEXT = 1000
_MAX_WAITING = 20
_MAX_BYTES = 10_000


class Notifier(Protocol):
    kind: str

    @property
    def delivery(self) -> Delivery:
        """What became of the last alert, as far as macOS says."""

    def notify(self, title: str, text: str, key: str) -> None:
        """Shows a notice in place of one with the same key. From any thread; returns at once."""


def make_notifier(
    log: Callable[[str], None],
    platform: str = sys.platform,
    osascript: str = OSASCRIPT,
    notify_send: str | None = None,
) -> Notifier:
    """Chooses what this desktop has. Call it on the main thread, before the app has finished
    launching."""
    if platform == "darwin":
        script = Osascript(log, osascript)
        return _make_app_notifier(log, script) or script
    program = notify_send or shutil.which("notify-send")
    return NotifySend(log, program) if program else NoNotifier()


def _make_app_notifier(log: Callable[[str], None], fallback: Notifier) -> Notifier | None:
    if read_bundle() is None:
        return (
            None  # macOS would end a process that asks for the notification center outside an app
        )
    try:
        from mpsbar.desktop.macos_notifications import UserNotifications

        return UserNotifications(log, fallback)
    except (ImportError, AttributeError) as error:
        log(f"macOS notifications are not available: {error}")
        return None


class Osascript:
    """Notices that appear under Script Editor's name and cannot be replaced."""

    kind = "osascript"

    def __init__(self, log: Callable[[str], None], program: str = OSASCRIPT) -> None:
        self._queue = CommandQueue(log, on_end=self._note)
        self._program = program
        self.delivery: Delivery = "unknown"

    def _note(self, problem: str | None) -> None:
        """Notes how it went: osascript succeeds even where Script Editor may not notify, and shows
        nothing then."""
        self.delivery = "script" if problem is None else "failed"

    def notify(self, title: str, text: str, key: str) -> None:  # noqa: ARG002
        lines = [part for line in _SCRIPT for part in ("-e", line)]
        arguments = (
            self._program,
            *lines,
            "--",
            _clean(title, _MAX_TITLE),
            _clean(text, _MAX_TEXT),
        )
        self._queue.put([_encode(argument) for argument in arguments])


class NotifySend:
    """Freedesktop notifications; some desktops replace a notice by this hint, others add one."""

    kind = "notify-send"
    delivery: Delivery = "unknown"

    def __init__(self, log: Callable[[str], None], program: str) -> None:
        self._queue = CommandQueue(log)
        self._program = program

    def notify(self, title: str, text: str, key: str) -> None:
        body = html.escape(_clean(text, _MAX_TEXT), quote=False)
        body = body.replace("\\", "\\\\")  # notify-send itself reads \n and the like in it
        name = re.sub(r"[^\w.-]", "_", key, flags=re.ASCII)[:100]
        arguments = [self._program, "--app-name=mpsbar"]
        arguments += [f"--hint=string:x-canonical-private-synchronous:mpsbar-{name}", "--"]
        arguments += [_clean(title, _MAX_TITLE), body]
        self._queue.put([_encode(argument) for argument in arguments])


class NoNotifier:
    """Shows nothing: this desktop has no notifications."""

    kind = "none"
    delivery: Delivery = "unknown"

    def notify(self, title: str, text: str, key: str) -> None:
        pass


class CommandQueue:
    """Runs commands one after another on a thread of its own."""

    def __init__(
        self,
        log: Callable[[str], None],
        seconds: float = DESKTOP_SECONDS,
        on_end: Callable[[str | None], None] | None = None,
    ) -> None:
        """`on_end` gets the problem of each command, None if it succeeded."""
        self._log = log
        self._on_end = on_end
        self._seconds = seconds
        self._waiting: queue.Queue[Sequence[bytes]] = queue.Queue(_MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._last_problem = ""

    def put(self, command: Sequence[bytes]) -> None:
        """Returns at once; a failure is logged."""
        try:
            self._waiting.put_nowait(command)
        except queue.Full:
            self._log_problem(
                f"{describe_command(command)}: too many are waiting, so one was dropped"
            )
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="mpsbar-desktop", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            command = self._waiting.get()
            problem = run_command(command, seconds=self._seconds)
            if problem is not None:
                self._log_problem(problem)
            if self._on_end is not None:
                self._on_end(problem)

    def _log_problem(self, problem: str) -> None:
        """Logs a problem once: a broken program fails each time."""
        if problem != self._last_problem:
            self._last_problem = problem
            self._log(problem)


def _clean(text: str, most: int) -> str:
    """Keeps only printable characters and line ends, from one to `most` characters."""
    clean = "".join(c if c.isprintable() or c == "\n" else " " for c in text[:most])
    return clean + "…" if len(text) > most else clean or " "


def _encode(argument: str) -> bytes:
    return argument.encode("utf-8", "replace")


def write_delivery(check: DeliveryCheck) -> None:
    """Stores what becomes of alerts, for `mpsbar doctor`. Raises OSError."""
    write_own_json(paths.delivery_file(), {"schema": 1, **asdict(check)})


def read_delivery() -> DeliveryCheck | None:
    """Returns None if no alert was sent yet, or the file cannot be read."""
    return read_own_json(paths.delivery_file(), _MAX_BYTES, _parse_delivery)


def _parse_delivery(stored: Any) -> DeliveryCheck:
    if stored["delivery"] not in get_args(Delivery):
        raise ValueError
    time.localtime(stored["time"])  # ValueError, OverflowError: no clock shows that
    return DeliveryCheck(float(stored["time"]), stored["delivery"])
