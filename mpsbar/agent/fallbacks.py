"""Counts the operations that leave MPS for the CPU, for `mpsbar run --explain` and nobody else.

torch warns once in a process for all of them together; here it is told to warn each time, and the
warnings are counted. The first of each operation is shown as ever, its repetitions are not. How
long they took and how many bytes were copied only torch's own profile log knows: it is printed
after Python has ended, so the end of stderr goes to a file that `mpsbar run` reads.
"""

import atexit
import json
import os
import sys
import warnings
from types import FrameType
from typing import Any, Callable, Optional

from . import gil_io
from .conventions import EXPLAIN_VARIABLE, PROFILE_VARIABLE
from .fallback_warnings import PATTERN, is_fallback, name_operation

MAX_OPERATIONS = 100
_MAX_TEXT = 200

_counts: "dict[str, list[Any]]" = {}  # by name: how often, the line of the first
_total = 0  # of all of them, for `stats`
_pid = 0
_show: "Optional[Callable[..., Any]]" = None


def explain_at_import(name: str) -> None:
    """Begins to count once torch has been imported. Never raises."""
    try:
        if name == "torch" and _show is None and os.environ.get(EXPLAIN_VARIABLE):
            _start(sys.modules["torch"])
    except Exception:  # noqa: BLE001, S110 - the program must run as without us
        pass


def summarise() -> "list[list[Any]]":
    """Returns rows of an operation's name, count and first line; the most frequent first."""
    if _pid != os.getpid():
        return []
    rows = [[name, count, where] for name, (count, where) in _counts.items()]
    return sorted(rows, key=lambda row: -row[1])[:MAX_OPERATIONS]


def read_total() -> "Optional[int]":
    """Returns how many operations have run on the CPU, or None if nobody counts. Any thread may
    call it.
    """
    return _total if _show is not None and _pid == os.getpid() else None


def _start(torch: Any) -> None:
    global _show, _pid  # noqa: PLW0603 - there is one torch in a process
    _pid = os.getpid()
    # What the interpreter calls for each warning that passes the filters; catch_warnings leaves it.
    _show = warnings._showwarnmsg  # type: ignore[attr-defined]
    warnings._showwarnmsg = _note  # type: ignore[attr-defined]
    warnings.filterwarnings("always", message=PATTERN, category=UserWarning)
    torch.set_warn_always(True)
    atexit.register(_at_exit)
    _write(is_final=False)


def _note(message: Any) -> None:
    """Counts a fallback; shows its first and every other warning."""
    is_new = True
    try:
        text = str(message.message)
        if is_fallback(text):
            is_new = _count(text)
    except Exception:  # noqa: BLE001, S110 - shown as without us
        pass
    if is_new and _show is not None:
        _show(message)


def _count(text: str) -> bool:
    """Counts an operation, returns whether it is new, and writes the counts now and then."""
    global _pid, _total  # noqa: PLW0603
    if _pid != os.getpid():  # forked: the parent reports its own
        _pid, _total = os.getpid(), 0
        _counts.clear()
    _total += 1
    name = name_operation(text)
    entry = _counts.get(name)
    if entry is None:
        if len(_counts) >= MAX_OPERATIONS:
            return False
        entry = _counts[name] = [0, _find_line(sys._getframe(2))]
    entry[0] += 1
    if entry[0] & (entry[0] - 1) == 0:  # a process that is killed has not lost all
        _write(is_final=False)
    return bool(entry[0] == 1)


def _find_line(frame: "Optional[FrameType]") -> str:
    """Returns the innermost line that is not torch's own, as file:line."""
    folder = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", "") or "")
    while frame is not None:
        file = frame.f_code.co_filename
        is_ours = file in (__file__, warnings.__file__) or file.startswith("<frozen")
        if not is_ours and not (folder and file.startswith(folder + os.sep)):
            return f"{file[-_MAX_TEXT:]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _at_exit() -> None:
    try:
        if _pid == os.getpid():
            _write(is_final=True)
            if os.environ.get(PROFILE_VARIABLE):
                _divert_stderr()
    except Exception:  # noqa: BLE001, S110 - it ends as without us
        pass


def _write(is_final: bool) -> None:
    folder = os.environ[EXPLAIN_VARIABLE]
    torch = sys.modules.get("torch")
    record = {
        "version": 1,
        "pid": os.getpid(),
        "torch": str(getattr(torch, "__version__", "")),
        "is_final": is_final,
        "operations": summarise(),
    }
    path = os.path.join(folder, f"{os.getpid()}.json")
    gil_io.replace_file(path, json.dumps(record).encode("utf-8", "replace"))


def _divert_stderr() -> None:
    """Sends the rest of stderr to a file: torch prints its profile log after this, and `mpsbar run`
    shows what is no part of that.
    """
    sys.stderr.flush()
    path = os.path.join(os.environ[EXPLAIN_VARIABLE], f"{os.getpid()}.log")
    gil_io.replace_by_file(2, os.fsencode(path))
