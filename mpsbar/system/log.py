"""The app's log: rotated, for this user only, not to be forged into, and never in the way."""

import logging
import os
import stat
import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from mpsbar.system import paths
from mpsbar.system.files import make_folder
from mpsbar.system.ownership import require_safe

_MOST_BYTES = 1_000_000
_KEPT = 3
_MOST_CHARACTERS = 8000  # of one message, or one traceback
_FORM = "%(asctime)s %(levelname)s %(threadName)s: %(message)s"


def start_log() -> logging.Logger:
    """The logger "mpsbar", writing to the log file; where that cannot be, to stderr."""
    logger = logging.getLogger("mpsbar")
    for old in logger.handlers[:]:
        logger.removeHandler(old)
        old.close()
    logger.propagate = False
    debugging = os.environ.get("MPSBAR_DEBUG", "") not in ("", "0")
    logger.setLevel(logging.DEBUG if debugging else logging.INFO)
    file, problem = paths.log_file(), None
    try:
        handler: logging.Handler = _open_handler(file)
    except OSError as error:
        handler, problem = _StderrHandler(), error
    handler.setFormatter(_Formatter(_FORM))
    logger.addHandler(handler)
    if problem is not None:
        logger.warning("no log is kept: %s: %s", file, problem.strerror or problem)
    return logger


def _open_handler(file: Path) -> logging.Handler:
    make_folder(file.parent)
    return _FileHandler(file, maxBytes=_MOST_BYTES, backupCount=_KEPT, encoding="utf-8")


class _StderrHandler(logging.Handler):
    """There may be no stderr (an app without a terminal), or one that was closed."""

    def emit(self, record: logging.LogRecord) -> None:
        _tell_stderr(self.format(record))


class _FileHandler(RotatingFileHandler):
    """For this user's eyes only; what cannot be written goes to stderr."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_open_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """The stream is opened anew next time: what it holds back would fail again and again."""
        stream, self.stream = self.stream, None
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.close()
        _tell_stderr(self.format(record))


def _open_private(path: str, flags: int) -> int:
    """For this user alone where it has to be made. Not waiting for the reader of a pipe."""
    require_safe(path)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return descriptor


def _tell_stderr(text: str) -> None:
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(text + "\n")


class _Formatter(logging.Formatter):
    """One record begins one line: names from other processes may hold newlines and escapes."""

    def format(self, record: logging.LogRecord) -> str:
        known = {"message": _message(record), "asctime": self.formatTime(record)}
        lines = [escape(_FORM % (vars(record) | known))]
        if record.exc_info and record.exc_info[0] is not None:
            lines += _indent("".join(traceback.format_exception(*record.exc_info)))
        if record.stack_info:
            lines += _indent(record.stack_info)
        return "\n".join(lines)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as problem:  # noqa: BLE001 - any object may be logged, and its str() is code
        return f"{record.msg!r} (its arguments cannot be shown: {type(problem).__name__})"


def escape(text: str) -> str:
    r"""Nothing but printable characters: a newline is \n, an escape \x1b."""
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _indent(text: str) -> list[str]:
    """A traceback keeps its lines, and its end, which says most; none looks like a record."""
    if len(text) > _MOST_CHARACTERS:
        text = "…" + text[-_MOST_CHARACTERS:]
    return ["    " + escape(line) for line in text.rstrip("\n").split("\n")]
