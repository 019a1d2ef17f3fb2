"""The one way to write a file: whole or not at all; and mpsbar's own files, read only where safe.

What mpsbar's own files hold decides which Pythons are started and what is shown, so they are used
only where nobody but this user and root can change them: a folder may be another user's where $HOME
or an MPSBAR_…_DIR points there. A folder that existed before is never changed.
"""

import json
import logging
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from mpsbar.agent import user_folders
from mpsbar.core.errors import reason_of
from mpsbar.language import _
from mpsbar.system.ownership import NotTrustedError, require_safe

_log = logging.getLogger("mpsbar")
_logged: set[str] = set()
# What json and a parser raise where a file holds something else than we write.
_NOT_OURS = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)

Parsed = TypeVar("Parsed")


class NotAFileError(OSError):
    """There is a folder, a pipe or a device where a file was expected."""


class TooLargeError(OSError):
    """The file is larger than anything we would have written."""


class DamagedFileError(OSError):
    """The file holds something else than we would have written."""


def read_bytes(path: Path, most: int) -> bytes:
    """Reads the whole file; a pipe in its place does not make us wait."""
    with open(path, "rb", opener=_open_file) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLargeError(_("it is larger than {n} KiB").format(n=most // 1024))
    return data


def read_text(path: Path, most: int) -> str:
    """Reads the whole file; "" where it cannot be read."""
    try:
        return read_bytes(path, most).decode("utf-8", "replace")
    except OSError:
        return ""


def read_stamp(path: Path) -> object:
    """Differs from an earlier one once somebody has written the file; None: it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _open_file(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFileError(_("it is not a file"))
    return descriptor


def replace_file(
    path: Path, data: bytes, *, mode: int | None = None, follow_links: bool = True
) -> None:
    """Writes the whole file at once; after an OSError everything is as it was.

    A file that exists keeps its mode and must not be read-only; a new one is for this user alone.
    A `mode`, less the umask, overrides both.
    """
    target = Path(os.path.realpath(path)) if follow_links else path
    old_mode = _read_mode(target) if mode is None else None
    if old_mode is not None and not old_mode & 0o222:
        raise PermissionError(_("{file} is read-only").format(file=target))
    make_folders(target.parent)
    # No suffix that a reader of the folder looks for: Python runs *.pth, IPython runs *.py.
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if mode is None else mode)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - already open
            file.write(data)
            file.flush()
            if old_mode is not None:
                os.fchmod(descriptor, old_mode)
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _read_mode(path: Path) -> int | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(_("it is not a file"))
    return stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    """Makes the new name reach the disk too; not every file system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folders(folder: Path) -> None:
    """Makes a folder and those missing above it, for this user alone whatever the umask."""
    user_folders.make_folders(str(folder))


def make_folder(folder: Path) -> None:
    """Makes a folder for this user alone.

    Raises NotTrustedError, and makes nothing, if somebody else can change it or what is above it:
    root must leave nothing in another user's home.
    """
    require_safe(folder)
    make_folders(folder)
    require_safe(folder)


def replace_own_file(path: Path, data: bytes) -> None:
    """Writes one of mpsbar's own files; NotTrustedError if somebody else can change its folder."""
    make_folder(path.parent)
    replace_file(path, data)


def write_own_json(path: Path, record: Any) -> None:
    replace_own_file(path, json.dumps(record, indent=1).encode())


def read_own_json(path: Path, most: int, parse: Callable[[Any], Parsed]) -> Parsed | None:
    """Returns what one of mpsbar's own files holds, as `parse` makes it; it may raise what a lookup
    or a conversion raises. None if the file is missing, or cannot be used, which is logged.
    """
    return read_json(path, most, parse) if is_usable(path) else None


def read_json(path: Path, most: int, parse: Callable[[Any], Parsed]) -> Parsed | None:
    """Reads as read_own_json does, for a file in a folder that the caller has checked."""
    try:
        return _load_json(path, most, parse)
    except FileNotFoundError:
        return None
    except OSError as problem:
        log_refused(path, problem)
        return None


def read_json_to_change(path: Path, most: int, parse: Callable[[Any], Parsed]) -> Parsed | None:
    """Reads as read_own_json does, for whoever writes the file anew, so that nothing in it is lost.

    A damaged one is renamed first, and if it cannot be read or renamed, that is an OSError.
    """
    try:
        require_safe(path)
        return _load_json(path, most, parse)
    except FileNotFoundError:
        return None
    except (DamagedFileError, NotAFileError, TooLargeError) as problem:
        text = "%s can't be used (%s); it was renamed to %s, and a new one is started"
        _log.warning(text, path, problem, move_aside(path))
        return None


def _load_json(path: Path, most: int, parse: Callable[[Any], Parsed]) -> Parsed:
    data = read_bytes(path, most)
    try:
        return parse(json.loads(data))
    except _NOT_OURS:
        raise DamagedFileError(_("it is damaged")) from None


def move_aside(path: Path) -> Path:
    """Renames a damaged file (or the link) to a name that is free."""
    day = time.strftime("%Y-%m-%d")
    for number in range(1, 1000):
        suffix = f"broken-{day}" + (f"-{number}" if number > 1 else "")
        target = path.with_name(f"{path.name}.{suffix}")
        if not os.path.lexists(target):
            return path.rename(target)
    raise FileExistsError(_("there are too many damaged files"))


def is_usable(path: Path) -> bool:
    """Returns False, and logs it, if somebody else can change the file; a missing one is usable."""
    try:
        require_safe(path)
    except NotTrustedError as problem:
        log_refused(path, problem)
        return False
    except OSError:
        pass  # whoever opens the file gets the reason
    return True


def log_refused(path: Path, problem: OSError) -> None:
    """Logs each problem once; a folder that is not trusted is one for all its files.

    A command without a log file prints it on stderr.
    """
    reason = reason_of(problem)
    key = reason if isinstance(problem, NotTrustedError) else f"{path}: {reason}"
    if key not in _logged:
        _logged.add(key)
        _log.warning("mpsbar will not use %s: %s", path, reason)
