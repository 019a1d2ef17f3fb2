"""Start at login, by whoever owns it here: the app, a LaunchAgent, or the autostart folder."""

import subprocess
import sys

from mpsbar.desktop import login_app, login_autostart, login_launchd
from mpsbar.desktop.bundle import read_bundle
from mpsbar.desktop.login_item import LoginStatus

__all__ = ["LoginStatus", "open_login_settings", "read_login", "turn_off", "turn_on"]

_LOGIN_ITEMS = "x-apple.systempreferences:com.apple.LoginItems-Settings.extension"


def read_login() -> LoginStatus:
    """Read anew each time: the user can change it in the system's settings."""
    if not _is_mac():
        return login_autostart.read()
    if read_bundle() is None:
        return login_launchd.read()
    status = login_app.read()
    if status.state in ("on", "needs_approval"):
        return status
    # A tool install may have been set up before the app came: it starts, so it is said.
    agent = login_launchd.read()
    return agent if agent.state == "on" else status


def turn_on() -> LoginStatus:
    """What is so afterwards; if that is not "on", its `why` tells."""
    if not _is_mac():
        return login_autostart.turn_on()
    if read_bundle() is None:
        return login_launchd.turn_on()
    status = login_app.turn_on()
    if status.state in ("on", "needs_approval") and login_launchd.is_there():
        login_launchd.turn_off()  # one owner: two would start two copies
    return status


def turn_off() -> LoginStatus:
    if not _is_mac():
        return login_autostart.turn_off()
    if read_bundle() is None:
        return login_launchd.turn_off()
    if login_launchd.is_there():
        login_launchd.turn_off()
    return login_app.turn_off()


def open_login_settings() -> bool:
    """Where the user approves it, on macOS; False if there is no such place."""
    if not _is_mac():
        return False
    if login_app.open_settings():
        return True
    command = ["/usr/bin/open", _LOGIN_ITEMS]
    try:
        return subprocess.run(command, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _is_mac() -> bool:
    return sys.platform == "darwin"
