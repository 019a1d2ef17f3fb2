"""Files and other apps, opened for a person. From any thread.

True says that the desktop was asked; whether something appeared, nobody tells.
"""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

ACTIVITY_MONITOR = "com.apple.ActivityMonitor"
INSTRUMENTS = "com.apple.dt.Instruments"  # comes with Xcode


def open_file(path: Path, platform: str = sys.platform) -> bool:
    """With the program the person has chosen for its kind."""
    path = path.absolute()
    if not path.exists():
        return False
    if platform != "darwin":
        return _start_xdg_open(path)
    from AppKit import NSURL, NSWorkspace

    url = NSURL.fileURLWithPath_(str(path))
    return bool(NSWorkspace.sharedWorkspace().openURL_(url))


def open_application(bundle_identifier: str, platform: str = sys.platform) -> bool:
    """False where there is no such app; only macOS has them by identifier."""
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
    nowhere = subprocess.DEVNULL
    try:
        opened = subprocess.Popen(
            [program, path], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
    except OSError:
        return False
    # It may last as long as the viewer: waited for, so that no zombie stays, but never ended.
    threading.Thread(target=opened.wait, name="mpsbar-open", daemon=True).start()
    return True
