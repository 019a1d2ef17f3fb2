"""How a process was started, from psutil: its arguments, environment, executable and parent."""

import os
from collections.abc import Callable
from typing import TypeVar

import psutil

from mpsbar.system.platform import MAX_VALUE, Details, parse_command, parse_variables

T = TypeVar("T")

# AccessDenied also while a program is in an exec. The others come where psutil's C code meets a
# sysctl that failed without an error number (psutil #2854, mended after 7.2).
_NO_ANSWER = (psutil.AccessDenied, OSError, SystemError, RuntimeError)


def read_details(pid: int, started: float) -> Details:
    """Raises ProcessLookupError; what else cannot be read is left out.

    psutil keeps Python's lock while the kernel answers, so a hang here would stop every thread. It
    is therefore asked only after `libproc` has read the same address space without that lock.
    """
    try:
        process = psutil.Process(pid)
        arguments = _ask(process.cmdline) or []
        variables = _ask(process.environ) or {}
        executable = _ask(process.exe) or ""
        parent = _ask(process.ppid)
    except psutil.NoSuchProcess:  # a zombie too
        raise ProcessLookupError(f"{pid} has ended") from None
    # psutil has no limits but the kernel's, which is 1 MB for both together.
    return Details(
        started=started,
        parent=parent,
        command=parse_command(map(os.fsencode, arguments)),
        executable=os.fsencode(executable)[:MAX_VALUE].decode(errors="replace") or None,
        variables=parse_variables(os.fsencode(f"{k}={v}") for k, v in variables.items()),
    )


def _ask(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except _NO_ANSWER:
        return None
