"""Files of the user read with care, and replaced whole or not at all."""

import os
import stat
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


def replace_file(
    path: Path, data: bytes, *, mode: int | None = None, follow_links: bool = True
) -> None:
    """Write the whole file at once; after an OSError everything is as it was.

    A file that exists keeps its mode and must not be read-only; a new one is for this user alone.
    A `mode`, less the umask, overrides both.
    """
    target = Path(os.path.realpath(path)) if follow_links else path
    kept = _read_mode(target) if mode is None else None
    if kept is not None and not kept & 0o222:
        raise PermissionError(f"{target} is read-only")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # No suffix that a reader of the folder looks for: Python runs *.pth, IPython runs *.py.
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if mode is None else mode)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - already open
            file.write(data)
            file.flush()
            if kept is not None:
                os.fchmod(descriptor, kept)
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
        raise NotAFile("it is not a file")
    return stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    """The new name reaches the disk too; not every file system can be asked."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
