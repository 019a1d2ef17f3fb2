"""The app's log file: rotated, readable by this user only; names of processes cannot forge lines.

A log that cannot be written never stops the app.
"""

import logging
import os
import stat
import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler

from mpsbar.agent.secrets import mask
from mpsbar.core.errors import reason_of
from mpsbar.system import paths
from mpsbar.system.files import make_folder
from mpsbar.system.ownership import require_safe

_MAX_BYTES = 1_000_000
_OLD_FILES = 3
_MAX_CHARACTERS = 8000  # of one message, or one traceback
_FORM = "%(asctime)s %(levelname)s %(threadName)s: %(message)s"


def start_log() -> logging.Logger:
    """Sets up the logger "mpsbar": it writes to the log file, or to stderr if it cannot."""
    logger = logging.getLogger("mpsbar")
    for old in logger.handlers[:]:
        logger.removeHandler(old)
        old.close()
    logger.propagate = False
    debugging = os.environ.get("MPSBAR_DEBUG", "") not in ("", "0")
    logger.setLevel(logging.DEBUG if debugging else logging.INFO)
    file, problem = paths.log_file(), None
    try:
        make_folder(file.parent)
        handler: logging.Handler = _FileHandler(
            file, maxBytes=_MAX_BYTES, backupCount=_OLD_FILES, encoding="utf-8"
        )
    except OSError as error:
        handler, problem = _StderrHandler(), error
    handler.setFormatter(_Formatter(_FORM))
    logger.addHandler(handler)
    if problem is not None:
        logger.warning("couldn't open the log %s: %s", file, reason_of(problem))
    return logger


class _StderrHandler(logging.Handler):
    """Writes to stderr if there is one: an app without a terminal has none."""

    def emit(self, record: logging.LogRecord) -> None:
        _write_stderr(self.format(record))


class _FileHandler(RotatingFileHandler):
    """A file that only this user can read; what cannot be written goes to stderr."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_open_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Closes the stream, so that it is opened anew: its buffer would fail again and again."""
        stream, self.stream = self.stream, None
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.close()
        _write_stderr(self.format(record))


def _open_private(path: str, flags: int) -> int:
    """Makes a file for this user alone; a pipe in its place does not make us wait."""
    require_safe(path)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return descriptor


def _write_stderr(text: str) -> None:
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(text + "\n")


class _Formatter(logging.Formatter):
    """One record is one line, without keys: what others wrote may have newlines and escapes."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {"message": _message(record), "asctime": self.formatTime(record)}
        lines = [escape(mask(_FORM % (vars(record) | fields)))]
        if record.exc_info and record.exc_info[0] is not None:
            lines += _indent(mask("".join(traceback.format_exception(*record.exc_info))))
        if record.stack_info:
            lines += _indent(record.stack_info)
        return "\n".join(lines)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as problem:  # noqa: BLE001 - any object may be logged, and its str() is code
        return f"{record.msg!r} (its arguments cannot be shown: {type(problem).__name__})"


def escape(text: str) -> str:
    r"""Makes all characters printable: a newline is \n, an escape \x1b."""
    if len(text) > _MAX_CHARACTERS:
        text = text[:_MAX_CHARACTERS] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _indent(text: str) -> list[str]:
    """The lines of a traceback, indented so that none looks like a record; its end matters most."""
    if len(text) > _MAX_CHARACTERS:
        text = "…" + text[-_MAX_CHARACTERS:]
    return ["    " + escape(line) for line in text.rstrip("\n").split("\n")]
