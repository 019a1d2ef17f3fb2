"""Open at Login on macOS: SMAppService for the app, a LaunchAgent for a tool install.

SMAppService (macOS 13) is what System Settings shows. A LaunchAgent is a file of the user; an app
that finds one removes it, for two would start two copies.
"""

import os
import plistlib
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpsbar.desktop.bundle import judge_place, read_bundle
from mpsbar.desktop.login import LoginFile, LoginState, LoginStatus, find_command, read_small
from mpsbar.system.files import make_folders

LABEL = "io.github.mpsbar.agent"
LAUNCHCTL = "/bin/launchctl"
# In the job's environment: that we wrote it, and how many folders we made for it.
MARK = "MPSBAR_LOGIN_ITEM"
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
    if agent.fields is None:
        return agent.status("off")
    if agent.is_foreign:
        return agent.status("unavailable", "foreign")
    command = str((agent.fields.get("ProgramArguments") or [""])[0])
    if not os.access(command, os.X_OK):
        return agent.status("off", "command_gone", command)
    return agent.status("needs_approval" if _is_switched_off(agent.path) else "on")


def _is_switched_off(plist: str) -> bool:
    """Whether the user has switched this LaunchAgent off in System Settings."""
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
        unload(LABEL)
        with suppress(OSError):
            (_logs() / "login.log").unlink(missing_ok=True)
            _logs().rmdir()  # unless the app's own log is there
    return status


def build_job(command: list[str], logs: str, folders_made: int) -> dict[str, Any]:
    log = f"{logs}/login.log"
    return {
        "Label": LABEL,
        "ProgramArguments": command,
        "RunAtLoad": True,
        # Started again after a crash, but not after Quit or "runs already", which exit with 0.
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "LimitLoadToSessionType": "Aqua",
        "ProcessType": "Interactive",  # else macOS delays the timers of the menu
        "StandardOutPath": log,
        "StandardErrorPath": log,
        "EnvironmentVariables": {MARK: str(folders_made)},
    }


def unload(label: str) -> None:
    """Unloads the job; not our own, which would end us during a click: logging out does that."""
    if os.environ.get("XPC_SERVICE_NAME") == label:
        return
    command = [LAUNCHCTL, "bootout", f"gui/{os.getuid()}/{label}"]
    # It fails if the job was not loaded.
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, capture_output=True, timeout=20, check=False)


def _logs() -> Path:
    return Path("~/Library/Logs/mpsbar").expanduser()


def _read_agent() -> LoginFile:
    path = os.path.expanduser(f"~/Library/LaunchAgents/{LABEL}.plist")  # noqa: PTH111 - a text
    data = read_small(path)
    if data is None:
        return LoginFile("agent", path, None, None)
    try:
        job = plistlib.loads(data)
    except Exception:  # noqa: BLE001 - plistlib raises expat's, struct's and its own
        job = {}
    job = job if isinstance(job, dict) else {}
    environment = job.get("EnvironmentVariables")
    environment = environment if isinstance(environment, dict) else {}
    return LoginFile("agent", path, job, str(environment[MARK]) if MARK in environment else None)
