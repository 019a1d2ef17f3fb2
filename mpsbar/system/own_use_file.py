"""What a monitor says of itself while it is over its budget, for `mpsbar doctor`."""

import json
import os
from contextlib import suppress

from mpsbar.core.naming import printable
from mpsbar.system import paths
from mpsbar.system.files import is_usable, read_bytes, replace_own_file
from mpsbar.system.ownership import is_running

_MAX_BYTES = 4096


def write_own_use(reason: str | None) -> None:
    """The sentence of this process; None: it is within its budget again. OSError if it cannot."""
    file = paths.own_use_file()
    if reason is not None:
        replace_own_file(file, json.dumps({"pid": os.getpid(), "reason": reason}).encode())
    elif _read()[0] == os.getpid():  # another monitor may have written since
        file.unlink(missing_ok=True)


def read_own_use() -> str | None:
    """The sentence of a monitor that runs; None if there is none."""
    pid, reason = _read()
    if pid is None or not is_running(pid):
        return None
    return f"{reason} (process {pid})"


def _read() -> tuple[int | None, str]:
    if is_usable(paths.own_use_file()):
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            record = json.loads(read_bytes(paths.own_use_file(), _MAX_BYTES))
            if isinstance(record["pid"], int) and 1 < record["pid"] < 2**31:
                return record["pid"], printable(str(record["reason"]), 300)
    return None, ""
