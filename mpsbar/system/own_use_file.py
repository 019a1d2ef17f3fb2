"""The file in which a monitor over its own budget says so; `mpsbar doctor` shows it."""

import os
from typing import Any

from mpsbar.core.naming import printable
from mpsbar.system import paths
from mpsbar.system.files import read_own_json, write_own_json
from mpsbar.system.ownership import is_running

_MAX_BYTES = 4096


def write_own_use(reason: str | None) -> None:
    """The sentence of this process; None: it is within its budget again. OSError if it cannot."""
    file = paths.own_use_file()
    if reason is not None:
        write_own_json(file, {"pid": os.getpid(), "reason": reason})
    elif _read_pid_and_reason()[0] == os.getpid():  # another monitor may have written since
        file.unlink(missing_ok=True)


def read_own_use() -> str | None:
    """The sentence of a monitor that runs; None if there is none."""
    pid, reason = _read_pid_and_reason()
    if pid is None or not is_running(pid):
        return None
    return f"{reason} (process {pid})"


def _read_pid_and_reason() -> tuple[int | None, str]:
    return read_own_json(paths.own_use_file(), _MAX_BYTES, _parse) or (None, "")


def _parse(record: Any) -> tuple[int, str]:
    if not (isinstance(record["pid"], int) and 1 < record["pid"] < 2**31):
        raise ValueError
    return record["pid"], printable(str(record["reason"]), 300)
