"""Open at Login on macOS: SMAppService for the app, a LaunchAgent for a tool install.

SMAppService (macOS 13) is what System Settings shows. A LaunchAgent is a file of the user; an app
that finds one removes it, for two would start two copies.
"""

import plistlib
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpsbar.desktop import launch_agent
from mpsbar.desktop.bundle import judge_place, read_bundle
from mpsbar.desktop.launch_agent import find_program
from mpsbar.desktop.login import LoginFile, LoginState, LoginStatus, find_command
from mpsbar.system.files import make_folders

LABEL = "io.github.mpsbar.agent"
_LOGIN_ITEMS = "x-apple.systempreferences:com.apple.LoginItems-Settings.extension"
_ENABLED, _REQUIRES_APPROVAL = 1, 2  # of SMAppService; NotRegistered 0 and NotFound 3 are both off


def read() -> LoginStatus:
    if read_bundle() is None:
        return _read_agent_status()
    status = _read_app_status()
    if status.state in ("on", "needs_approval"):
        return status
    # A tool install may have been set up before the app came: it starts, so it is shown.
    agent = _read_agent_status()
    return agent if agent.state == "on" else status


def turn_on() -> LoginStatus:
    if read_bundle() is None:
        return turn_agent_on()
    status = _change_app("registerAndReturnError_", ("on", "needs_approval"))
    if status.state in ("on", "needs_approval") and _read_agent().mark is not None:
        _turn_agent_off()
    return status


def turn_off() -> LoginStatus:
    if read_bundle() is None:
        return _turn_agent_off()
    if _read_agent().mark is not None:
        _turn_agent_off()
    return _change_app("unregisterAndReturnError_", ("off",))


def open_settings() -> bool:
    """Opens Login Items in System Settings."""
    service = _find_service_class()
    if service is not None:
        service.openSystemSettingsLoginItems()
        return True
    try:
        command = ["/usr/bin/open", _LOGIN_ITEMS]
        return subprocess.run(command, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _read_app_status() -> LoginStatus:
    service = _find_service_class()
    if service is None:
        return LoginStatus("unavailable", "app", why="old_macos")
    bundle = read_bundle()
    path = "" if bundle is None else bundle.path
    if (why := judge_place(path)) is not None:
        return LoginStatus("unavailable", "app", path, why)
    states: dict[int, LoginState] = {_ENABLED: "on", _REQUIRES_APPROVAL: "needs_approval"}
    return LoginStatus(states.get(service.mainAppService().status(), "off"), "app", path)


def _change_app(message: str, wanted: tuple[LoginState, ...]) -> LoginStatus:
    """Judges by the status afterwards: macOS reports errors for what it has done already."""
    before = _read_app_status()
    if before.state == "unavailable" or before.state == wanted[0]:
        return before
    done, problem = getattr(_find_service_class().mainAppService(), message)(None)
    after = _read_app_status()
    if after.state in wanted:
        return after
    detail = None if done or problem is None else str(problem.localizedDescription())
    return LoginStatus(after.state, "app", after.where, "refused", detail)


def _find_service_class() -> Any:
    try:
        from ServiceManagement import SMAppService
    except (ImportError, AttributeError):  # not a Mac, or before macOS 13
        return None
    return SMAppService


def _read_agent_status() -> LoginStatus:
    agent = _read_agent()
    if problem := agent.find_problem(find_program(agent)):
        return problem
    return agent.status("needs_approval" if _is_switched_off(agent.path) else "on")


def _is_switched_off(plist: str) -> bool:
    """Returns whether the user has switched this LaunchAgent off in System Settings."""
    service = _find_service_class()
    if service is None:
        return False
    from Foundation import NSURL

    status: int = service.statusForLegacyURL_(NSURL.fileURLWithPath_(plist))
    return status == _REQUIRES_APPROVAL


def turn_agent_on() -> LoginStatus:
    """Writes only the file: loading it would start a second copy now."""
    agent, command = _read_agent(), find_command()

    def build(folders_made: int) -> bytes:
        return plistlib.dumps(build_job(command, str(_logs()), folders_made))

    if problem := agent.install(command[0], build):
        return problem
    try:
        make_folders(_logs())  # launchd may not start without
    except OSError as error:
        return agent.status("off", "not_written", error.strerror)
    return _read_agent_status()


def _turn_agent_off() -> LoginStatus:
    agent = _read_agent()
    status = agent.remove()
    if agent.mark is not None and status.state == "off":
        launch_agent.unload(LABEL)
        with suppress(OSError):
            (_logs() / "login.log").unlink(missing_ok=True)
            _logs().rmdir()  # unless the app's own log is there
    return status


def build_job(command: list[str], logs: str, folders_made: int) -> dict[str, Any]:
    log = f"{logs}/login.log"
    return launch_agent.build_job(LABEL, command, folders_made) | {
        "LimitLoadToSessionType": "Aqua",
        "ProcessType": "Interactive",  # else macOS delays the timers of the menu
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }


def _logs() -> Path:
    return Path("~/Library/Logs/mpsbar").expanduser()


def _read_agent() -> LoginFile:
    return launch_agent.read_agent(LABEL, "agent")
