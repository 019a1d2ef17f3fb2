"""Programs of the desktop: run with a time-out and without a shell; files and apps opened.

All from any thread. That a file was opened means that the desktop was asked to: it does not report
whether anything appeared.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

DESKTOP_SECONDS = 20.0  # enough for a desktop that is just waking up
ACTIVITY_MONITOR = "com.apple.ActivityMonitor"
INSTRUMENTS = "com.apple.dt.Instruments"  # comes with Xcode
_NOTIFICATION_SETTINGS = "x-apple.systempreferences:com.apple.Notifications-Settings.extension"


def open_file(path: Path, platform: str = sys.platform) -> bool:
    """Opens a file with the program that the user has chosen for its kind."""
    path = path.absolute()
    if not path.exists():
        return False
    if platform != "darwin":
        return _start_xdg_open(path)
    from AppKit import NSURL, NSWorkspace

    url = NSURL.fileURLWithPath_(str(path))
    return bool(NSWorkspace.sharedWorkspace().openURL_(url))


def open_notification_settings() -> bool:
    """Opens that page of System Settings. On macOS only."""
    from AppKit import NSURL, NSWorkspace

    url = NSURL.URLWithString_(_NOTIFICATION_SETTINGS)
    return bool(NSWorkspace.sharedWorkspace().openURL_(url))


def open_application(bundle_identifier: str, platform: str = sys.platform) -> bool:
    """Opens an app of macOS by its identifier; False where there is none."""
    if platform != "darwin":
        return False
    from AppKit import NSWorkspace, NSWorkspaceOpenConfiguration

    workspace = NSWorkspace.sharedWorkspace()
    url = workspace.URLForApplicationWithBundleIdentifier_(bundle_identifier)
    if url is None:
        return False
    workspace.openApplicationAtURL_configuration_completionHandler_(
        url, NSWorkspaceOpenConfiguration.configuration(), None
    )
    return True


def _start_xdg_open(path: Path) -> bool:
    program = shutil.which("xdg-open")
    has_screen = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
    if program is None or not has_screen:
        return False
    null = subprocess.DEVNULL
    try:
        opened = subprocess.Popen(
            [program, path], stdin=null, stdout=null, stderr=null, start_new_session=True
        )
    except OSError:
        return False
    # It may last as long as the viewer: it is waited for, so that no zombie stays, never ended.
    threading.Thread(target=opened.wait, name="mpsbar-open", daemon=True).start()
    return True


def run_command(
    command: Sequence[bytes], stdin: bytes | None = None, seconds: float = DESKTOP_SECONDS
) -> str | None:
    """Runs a program to its end; returns None if it succeeded, else one sentence."""
    # Not a pipe: a child that the program leaves running (xclip does) would hold it open.
    with tempfile.TemporaryFile() as errors:
        problem = _run(command, stdin, seconds, errors)
        errors.seek(0)
        output = errors.read(500).decode("utf-8", "replace").strip()
    return problem and f"{problem} {output}".strip()


def _run(
    command: Sequence[bytes], stdin: bytes | None, seconds: float, errors: IO[bytes]
) -> str | None:
    try:
        done = subprocess.run(
            command,
            input=stdin or b"",
            stdout=subprocess.DEVNULL,
            stderr=errors,
            timeout=seconds,
            check=False,
            start_new_session=True,  # Ctrl-C in our terminal is not meant for it
        )
    except (OSError, ValueError) as error:
        return f"{describe_command(command)}: {error}"
    except subprocess.TimeoutExpired:
        return f"{describe_command(command)}: no answer within {seconds:.0f} s"
    return f"{describe_command(command)}: exit {done.returncode}" if done.returncode else None


def describe_command(command: Sequence[bytes]) -> str:
    return command[0].decode("utf-8", "replace")
