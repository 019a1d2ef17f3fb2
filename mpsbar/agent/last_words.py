"""Writes a small record of how Python exited, which `mpsbar why` and the monitor read.

It is written in an atexit callback, so a process that is killed leaves none, which is evidence too.
No hook of the host is used: Python itself keeps an unhandled exception in sys.last_value.
"""

import ctypes
import errno
import json
import os
import re
import struct
import sys
import time
from types import TracebackType
from typing import Any, Callable, Optional

from . import fallback_warnings, gil_io, memory, user_folders
from .backends import IN_USE, NOT_KNOWN, mps
from .conventions import (
    ENDED_FOLDER,
    ENDED_NAME,
    MAX_ENDED_FILES,
    MAX_FALLBACKS,
    NO_LAST_WORDS,
)
from .secrets import cut_options, find_module, has_value, is_code, mask, shorten_home, shorten_title

_MAX_REMOVED = 20  # of the oldest files, at each end
MAX_TEXT = 200
_MAX_NAME = 100
_MAX_FRAMES = 5000
# struct proc_bsdinfo of macOS's libproc: the start in seconds and microseconds.
_BSD_INFO = struct.Struct("=120xQQ")
_BSD_INFO_FLAVOR = 3
_HOME = r"/(?:Users|home)/[^/\s'\":,;)\]]+|/root(?=/|\b)"

_attached = 0.0
_started: "Optional[float]" = None


def note_start() -> None:
    """Notes when the agent starts: the pid alone would not tell two processes apart."""
    global _attached, _started  # noqa: PLW0603 - there is one agent in a process
    _attached = time.time()
    _started = read_start(_attached)  # now: at its end the host waits


def is_on() -> bool:
    return os.environ.get("MPSBAR_LAST_WORDS", "").strip().lower() not in (
        "0", "false", "no", "off",
    )  # fmt: skip


def write_record(directory: str, hello: "Callable[[], dict[str, Any]]") -> bool:
    """Writes the record into a folder of the run directory. Never raises, prints or waits.

    `hello` describes this process. Returns False if no descriptor was free for the file.
    """
    try:
        if is_on() and not os.path.lexists(os.path.join(directory, NO_LAST_WORDS)):
            _write(os.path.join(directory, ENDED_FOLDER), _mask_texts(_build(hello(), time.time())))
    except Exception as problem:  # noqa: BLE001 - the host must end as without us
        return getattr(problem, "errno", None) not in (errno.EMFILE, errno.ENFILE)
    return True


def _build(hello: "dict[str, Any]", now: float) -> "dict[str, Any]":
    return {
        "version": 1,
        **{name: hello[name] for name in ("pid", "parent", "notebook", "frameworks")},
        "executable": cut_options(hello["executable"] or ""),
        "command": _shorten_command(hello["argv"]),
        "started": _started,
        "attached": _attached,
        "ended": now,
        "memory": _read_memory(),
        **_read_fallbacks(),
        "error": _find_error(),
    }


def read_start(
    now: float, platform: str = sys.platform, library: Any = gil_io._libc
) -> "Optional[float]":
    """Returns when this process started, in seconds since the epoch; None where the system does not
    say.
    """
    try:
        if platform == "darwin":
            memory, size = ctypes.create_string_buffer(_BSD_INFO.size), _BSD_INFO.size
            library.proc_pidinfo(os.getpid(), _BSD_INFO_FLAVOR, ctypes.c_uint64(0), memory, size)
            seconds, microseconds = _BSD_INFO.unpack(memory)
            return seconds + microseconds / 1e6 if seconds else None
        fields = gil_io.read_file(b"/proc/self/stat").rpartition(b")")[2].split()
        since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        # Not by the time of the boot: that moves when the clock is set.
        return now - max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)
    except Exception:  # noqa: BLE001 - the record is written without it
        return None


def _mask_texts(value: Any) -> Any:
    """Masks every text of the record: it stays on the disk for days, and none may have a password
    or a key.
    """
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, (list, tuple)):
        return [_mask_texts(item) for item in value]
    if isinstance(value, dict):
        return {name: _mask_texts(item) for name, item in value.items()}
    return value


def _read_memory() -> "dict[str, int]":
    try:
        return memory.read_memory()
    except Exception:  # noqa: BLE001 - a framework that is half gone already
        return {}


def _read_fallbacks() -> "dict[str, Any]":
    """Returns what `mpsbar run --explain` counted; without it that module is not imported, and only
    the first is known: its name and line, None, or CUT.
    """
    fallbacks = sys.modules.get(f"{__package__}.fallbacks")
    if fallbacks is not None:
        return {"fallbacks": fallbacks.summarise()[:MAX_FALLBACKS], "fallback_seen": None}
    seen: Any = fallback_warnings.CUT
    try:
        may_have_some = mps.state(None) in (IN_USE, NOT_KNOWN)
        seen = fallback_warnings.find_first() if may_have_some else None
    except Exception:  # noqa: BLE001, S110 - a framework that is half gone already
        pass
    return {"fallbacks": [], "fallback_seen": seen}


def _find_error() -> "Optional[dict[str, Any]]":
    """Describes the exception that Python printed last, and whether it is what ended the main
    script.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        return None
    trace = getattr(error, "__traceback__", None) or getattr(sys, "last_traceback", None)
    return {
        "type": _name_type(type(error)),
        "text": _first_line(error),
        "where": _find_place(trace),
        "is_main": _is_of_main(trace),
    }


def _name_type(kind: type) -> str:
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", "?")
    full = name if module in ("builtins", "__main__") else f"{module}.{name}"
    return full[:_MAX_NAME]


def _first_line(error: BaseException) -> str:
    """Returns the first line of an error's text; Python has called str() already, to print the
    traceback.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the host's own class
        return ""
    # Cut before anything else: it may be as long as a batch. A home may lie across the cut.
    start = text[: 4 * MAX_TEXT]
    if len(start) < len(text):
        # A key that the cut goes through is not known by its shape any more.
        start = start.rpartition(" ")[0] or start
    line = start.lstrip().partition("\n")[0]
    line = shorten_home(mask(line), user_folders._homes.get(os.geteuid()), anywhere=True)
    # Compiled only where there is a path: the host waits.
    return (re.sub(_HOME, "~", line) if "/" in line else line)[:MAX_TEXT]


def _find_place(trace: Optional[TracebackType]) -> str:
    """Returns the file, without its folder, and the line of the innermost frame."""
    if trace is None:
        return ""
    steps = 0
    while trace.tb_next is not None and steps < _MAX_FRAMES:
        trace, steps = trace.tb_next, steps + 1
    name = os.path.basename(trace.tb_frame.f_code.co_filename)
    return f"{name[:_MAX_NAME]}:{trace.tb_lineno}"


def _is_of_main(trace: Optional[TracebackType]) -> bool:
    """Returns whether it went through the whole main script: nobody is left then who could catch
    it.

    A prompt, a notebook and pytest leave an exception behind too and go on.
    """
    if hasattr(sys, "ps1") or sys.flags.interactive:
        return False
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == "runpy":  # python -m
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    main = getattr(sys.modules.get("__main__"), "__dict__", None)
    is_typed = code.co_filename.startswith("<") and code.co_filename not in ("<string>", "<stdin>")
    is_main = trace.tb_frame.f_globals is main and code.co_name == "<module>"
    return is_main and not is_typed


def _shorten_command(command: "list[str]") -> "list[str]":
    """Keeps Python, its options and what it runs; no arguments of the program, which may be
    secrets.
    """
    kept = [shorten_title(argument)[:300] for argument in command[:1]]
    arguments = iter(command[1:20])
    for argument in arguments:
        if not argument.startswith("-"):
            return [*kept, argument[:300]]
        if is_code(argument):
            return [*kept, "-c"]
        kept.append(argument[:300])
        module = find_module(argument)
        if module == "" or has_value(argument):
            kept.extend(value[:300] for value in [next(arguments, None)] if value is not None)
        if module is not None:
            break
    return kept


def _write(folder: str, record: "dict[str, Any]") -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    user_folders.check(folder)
    _remove_oldest(folder)
    name = ENDED_NAME % (int(record["ended"] * 1000), record["pid"])
    data = json.dumps(record).encode("utf-8", "replace")
    gil_io.replace_file(os.path.join(folder, name), data)


def _remove_oldest(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) < MAX_ENDED_FILES:
        return
    for name in sorted(names, key=lambda name: name.lstrip("."))[
        : min(_MAX_REMOVED, len(names) - MAX_ENDED_FILES + 1)
    ]:
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass
