"""A LaunchAgent of macOS: a file of the user, from which launchd starts a program at login."""

import os
import plistlib
import subprocess
from contextlib import suppress
from typing import Any

from mpsbar.desktop.login import LoginFile, Owner, read_small

LAUNCHCTL = "/bin/launchctl"
# In the job's environment: that we wrote it, and how many folders we made for it.
MARK = "MPSBAR_LOGIN_ITEM"


def read_agent(label: str, owner: Owner) -> LoginFile:
    path = os.path.expanduser(f"~/Library/LaunchAgents/{label}.plist")  # noqa: PTH111 - a text
    data = read_small(path)
    if data is None:
        return LoginFile(owner, path, None, None)
    try:
        job = plistlib.loads(data)
    except Exception:  # noqa: BLE001 - plistlib raises expat's, struct's and its own
        job = {}
    job = job if isinstance(job, dict) else {}
    environment = job.get("EnvironmentVariables")
    environment = environment if isinstance(environment, dict) else {}
    return LoginFile(owner, path, job, str(environment[MARK]) if MARK in environment else None)


def find_program(agent: LoginFile) -> str:
    arguments = (agent.fields or {}).get("ProgramArguments")
    return str(arguments[0]) if isinstance(arguments, list) and arguments else ""


def build_job(label: str, command: list[str], folders_made: int) -> dict[str, Any]:
    return {
        "Label": label,
        "ProgramArguments": command,
        "RunAtLoad": True,
        # Started again after a crash, but not after Quit, SIGTERM or "runs already": those exit 0.
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
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
