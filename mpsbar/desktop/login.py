"""Start at login, by whoever owns it here: the app, a LaunchAgent, or the autostart folder."""

import subprocess
import sys

from mpsbar.desktop import login_agent, login_app, login_autostart
from mpsbar.desktop.login_status import LoginState, LoginStatus, Owner, Why
from mpsbar.desktop.open import LOGIN_ITEMS

__all__ = [
    "LoginState",
    "LoginStatus",
    "Owner",
    "Why",
    "open_login_settings",
    "read_login",
    "turn_off",
    "turn_on",
]


def read_login() -> LoginStatus:
    """Read anew each time: the user can change it in the system's settings."""
    if not _is_mac():
        return login_autostart.read()
    if not login_app.is_in_bundle():
        return login_agent.read()
    status = login_app.read()
    if status.state in ("on", "needs_approval"):
        return status
    # A tool install may have been set up before the app came: it starts, so it is said.
    agent = login_agent.read()
    return agent if agent.state == "on" else status


def turn_on() -> LoginStatus:
    """What is so afterwards; if that is not "on", its `why` tells."""
    if not _is_mac():
        return login_autostart.turn_on()
    if not login_app.is_in_bundle():
        return login_agent.turn_on()
    status = login_app.turn_on()
    if status.state in ("on", "needs_approval") and login_agent.is_there():
        login_agent.turn_off()  # one owner: two would start two copies
    return status


def turn_off() -> LoginStatus:
    if not _is_mac():
        return login_autostart.turn_off()
    if not login_app.is_in_bundle():
        return login_agent.turn_off()
    if login_agent.is_there():
        login_agent.turn_off()
    return login_app.turn_off()


def open_login_settings() -> bool:
    """Where the user approves it, on macOS; False if there is no such place."""
    if not _is_mac():
        return False
    if login_app.open_settings():
        return True
    command = ["/usr/bin/open", LOGIN_ITEMS]
    try:
        return subprocess.run(command, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _is_mac() -> bool:
    return sys.platform == "darwin"
