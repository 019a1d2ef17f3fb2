"""Start at login for a tool install on macOS: a LaunchAgent of the user."""

import os
import plistlib
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpsbar.desktop import login_item
from mpsbar.desktop.login_app import read_legacy_approval
from mpsbar.desktop.login_item import LoginStatus

LABEL = "io.github.mpsbar.agent"
LAUNCHCTL = "/bin/launchctl"
# In the job's environment: that we wrote it, and how many folders we made for it.
MARK = "MPSBAR_LOGIN_ITEM"


def read() -> LoginStatus:
    path, job = _path(), _read_job()
    if job is None:
        return LoginStatus("off", "agent", path)
    if not _is_ours(job):
        return LoginStatus("unavailable", "agent", path, "foreign")
    command = job.get("ProgramArguments") or [""]
    if not os.access(str(command[0]), os.X_OK):
        return LoginStatus("off", "agent", path, "command_gone", str(command[0]))
    if read_legacy_approval(path):
        return LoginStatus("needs_approval", "agent", path)
    return LoginStatus("on", "agent", path)


def is_there() -> bool:
    """One that we wrote."""
    job = _read_job()
    return job is not None and _is_ours(job)


def turn_on() -> LoginStatus:
    """Only the file: loading it would start a second copy now."""
    path, command, before = _path(), login_item.find_command(), _read_job()
    if before is not None and not _is_ours(before):
        return LoginStatus("unavailable", "agent", path, "foreign")
    if login_item.is_temporary(command[0]):
        return LoginStatus("unavailable", "agent", path, "temporary_command", command[0])
    if not command[0].isprintable():
        return LoginStatus("unavailable", "agent", path, "odd_path", command[0])

    def build(made: int) -> bytes:
        return plistlib.dumps(build_job(command, str(_logs()), made))

    try:
        login_item.install(path, build, None if before is None else _folders_made(before))
        _logs().mkdir(mode=0o700, parents=True, exist_ok=True)  # launchd may not start without
    except OSError as problem:
        return LoginStatus("off", "agent", path, "not_written", problem.strerror)
    return read()


def turn_off() -> LoginStatus:
    path, job = _path(), _read_job()
    if job is None:
        return LoginStatus("off", "agent", path)
    if not _is_ours(job):
        return LoginStatus("unavailable", "agent", path, "foreign")
    try:
        login_item.remove_file(path, _folders_made(job))
    except OSError as problem:
        return LoginStatus("on", "agent", path, "not_written", problem.strerror)
    _unload()
    with suppress(OSError):
        _log_file(_logs()).unlink(missing_ok=True)
        _logs().rmdir()  # unless the app's own log is there
    return LoginStatus("off", "agent", path)


def build_job(command: list[str], logs: str, folders_made: int) -> dict[str, Any]:
    log = str(_log_file(Path(logs)))
    return {
        "Label": LABEL,
        "ProgramArguments": command,
        "RunAtLoad": True,
        # Started again after a crash, but not after Quit or "runs already", which exit with 0.
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "LimitLoadToSessionType": "Aqua",
        "ProcessType": "Interactive",  # else the timers of the menu are held back
        "StandardOutPath": log,
        "StandardErrorPath": log,
        "EnvironmentVariables": {MARK: str(folders_made)},
    }


def _unload() -> None:
    """Not our own job: that would end us in the middle of a click; it is gone after the logout."""
    if os.environ.get("XPC_SERVICE_NAME") == LABEL:
        return
    command = [LAUNCHCTL, "bootout", f"gui/{os.getuid()}/{LABEL}"]
    # It fails if the job was not loaded, which is as good.
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, capture_output=True, timeout=20, check=False)


def _path() -> str:
    return os.path.expanduser(f"~/Library/LaunchAgents/{LABEL}.plist")  # noqa: PTH111 - a text


def _logs() -> Path:
    return Path("~/Library/Logs/mpsbar").expanduser()


def _log_file(folder: Path) -> Path:
    return folder / "login.log"


def _read_job() -> dict[str, Any] | None:
    """None if there is no file; {} if it is no job."""
    data = login_item.read_small(_path())
    if data is None:
        return None
    try:
        job = plistlib.loads(data)
    except Exception:  # noqa: BLE001 - plistlib raises expat's, struct's and its own
        return {}
    return job if isinstance(job, dict) else {}


def _is_ours(job: dict[str, Any]) -> bool:
    environment = job.get("EnvironmentVariables")
    return isinstance(environment, dict) and MARK in environment


def _folders_made(job: dict[str, Any]) -> int:
    return login_item.parse_count(str(job["EnvironmentVariables"][MARK]))
