"""Files of the user read with care, and replaced whole or not at all."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


class NotAFile(OSError):
    """A folder, a pipe or a device stands in its place."""


class TooLarge(OSError):
    """More than was expected of it."""


def read_bytes(path: Path, most: int) -> bytes:
    """The whole file; a pipe in its place does not make us wait."""
    with open(path, "rb", opener=_open_file) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(f"it is larger than {most // 1024} KiB")
    return data


def _open_file(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile("it is not a file")
    return descriptor


def replace_file(path: Path, data: bytes) -> None:
    """At once, with its mode kept; a link is followed. After an OSError all is as it was."""
    target = Path(os.path.realpath(path))
    mode = _read_mode(target)
    if mode is not None and not mode & 0o222:
        raise PermissionError(f"{target} is read-only")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - already open
            file.write(data)
            file.flush()
            os.fchmod(descriptor, 0o600 if mode is None else mode)
            os.fsync(descriptor)
        os.replace(temporary, target)  # noqa: PTH105 - texts, both
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108 - a text
        raise
    _keep_folder(target.parent)


def _read_mode(path: Path) -> int | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise NotAFile("it is not a file")
    return stat.S_IMODE(status.st_mode)


def _keep_folder(folder: Path) -> None:
    """The new name reaches the disk too; not every file system can be asked."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
