"""`mpsbar export` as a service from login on: a LaunchAgent, or a systemd user unit on Linux."""

import os
import plistlib
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpsbar.desktop import launch_agent
from mpsbar.desktop.launch_agent import find_program, read_agent, unload
from mpsbar.desktop.login import (
    LoginFile,
    LoginStatus,
    find_command,
    find_config_folder,
    read_small,
)
from mpsbar.system.ownership import require_own

LABEL = "io.github.mpsbar.export"
UNIT = "mpsbar-export.service"
# That we wrote it, and how many folders we made for it.
_UNIT_MARK = "X-FoldersMade="
# systemd takes no program with these in its path, quoted or not.
_NOT_IN_UNIT = "\"'\\$"


def read() -> LoginStatus:
    file = _read_file()
    command = find_program(file) if _is_mac() else str((file.fields or {}).get("command", ""))
    if problem := file.find_problem(command):
        return problem
    return file.status("on" if _is_mac() or _link(file.path).is_symlink() else "off")


def turn_on() -> LoginStatus:
    """Writes only files: the service starts at the next login, or when the user starts it."""
    file, command = _read_file(), [*find_command(), "export"]

    def build(folders_made: int) -> bytes:
        if _is_mac():
            return plistlib.dumps(build_job(command, folders_made))
        return build_unit(command, folders_made).encode()

    if not _is_mac() and set(command[0]) & set(_NOT_IN_UNIT):
        return file.status("unavailable", "odd_path", command[0])
    if refusal := file.install(command[0], build):
        return refusal
    if not _is_mac():
        try:
            _enable(file.path)
        except OSError as problem:
            return file.status("off", "not_written", problem.strerror)
    return read()


def turn_off() -> LoginStatus:
    file = _read_file()
    if file.mark is not None and not _is_mac():
        with suppress(OSError):  # `remove` says why
            _disable(file.path)  # first: it is in a folder that `remove` removes
    status = file.remove()
    if file.mark is not None and status.state == "off" and _is_mac():
        unload(LABEL)
    return status


def build_job(command: list[str], folders_made: int) -> dict[str, Any]:
    return launch_agent.build_job(LABEL, command, folders_made) | {"ProcessType": "Background"}


def build_unit(command: list[str], folders_made: int) -> str:
    lines = [
        "[Unit]",
        "Description=mpsbar export: GPU memory of machine learning processes for Prometheus",
        f"{_UNIT_MARK}{folders_made}",
        "",
        "[Service]",
        f"ExecStart={' '.join(map(quote, command))}",
        "Restart=on-failure",
        "RestartSec=10",
        "NoNewPrivileges=yes",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def quote(argument: str) -> str:
    """Quotes an argument of ExecStart that has no character of _NOT_IN_UNIT; % is doubled."""
    return '"' + argument.replace("%", "%%") + '"'


def unquote(text: str) -> str:
    """Returns the program of an ExecStart that `quote` wrote."""
    return text[1:].partition('"')[0].replace("%%", "%")


def _enable(path: str) -> None:
    """Does what `systemctl --user enable` does, which may not be there."""
    link = _link(path)
    link.parent.mkdir(mode=0o755, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(path)


def _disable(path: str) -> None:
    link = _link(path)
    require_own(link.parent)
    link.unlink(missing_ok=True)
    link.parent.rmdir()  # unless other units are in it


def _link(path: str) -> Path:
    return Path(path).parent / "default.target.wants" / UNIT


def _read_file() -> LoginFile:
    return read_agent(LABEL, "service") if _is_mac() else _read_unit()


def _read_unit() -> LoginFile:
    path = os.path.join(find_config_folder(), "systemd", "user", UNIT)  # noqa: PTH118 - a text
    data = read_small(path)
    if data is None:
        return LoginFile("service", path, None, None)
    lines = data.decode("utf-8", "replace").split("\n")
    marks = [line.removeprefix(_UNIT_MARK) for line in lines if line.startswith(_UNIT_MARK)]
    starts = [line.partition("=")[2] for line in lines if line.startswith("ExecStart=")]
    fields = {"command": unquote(starts[0])} if starts else {}
    return LoginFile("service", path, fields, marks[0] if marks else None)


def _is_mac() -> bool:
    return sys.platform == "darwin"
