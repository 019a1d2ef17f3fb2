"""The file that starts us at login: the command in it, written whole, removed without a trace."""

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 64 * 1024
# Where `uvx` and `pipx run` keep what they run once. Poetry's caches are for longer.
_RUN_ONCE = re.compile(r"/(archive|environments)-v\d+/|/(\.cache|Caches)/pipx/|/pipx/\.cache/")


def find_command() -> list[str]:
    """As the user started it: the shim in ~/.local/bin outlives the environment behind it."""
    started = sys.argv[0]
    if Path(started).name != "mpsbar":
        started = "" if Path(started).name == "__main__.py" else shutil.which("mpsbar") or ""
    elif os.sep not in started:
        started = shutil.which(started) or started
    if started:
        return [os.path.abspath(started)]  # noqa: PTH100 - resolving would leave the shim
    return [os.path.abspath(sys.executable), "-m", "mpsbar"]  # noqa: PTH100


def is_temporary(command: str) -> bool:
    return _RUN_ONCE.search(command) is not None


def read_small(path: str) -> bytes | None:
    """None if there is none; what is no small file is as good as foreign: b""."""
    try:
        with open(path, "rb", opener=_open_file) as file:
            data = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return b"" if Path(path).is_symlink() else None
    except OSError:
        return b""
    return data if len(data) <= MOST_BYTES else b""


def _open_file(path: str, flags: int) -> int:
    """Not waiting for the writer of a pipe that stands in its place."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("not a file")
    return descriptor


def install(path: str, build: Callable[[int], bytes], made_before: int | None) -> None:
    """Write what `build` makes of the number of folders made for it; OSError leaves nothing."""
    folder = Path(path).parent
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, build(len(missing) if made_before is None else made_before))
    except OSError:
        _remove_folders(missing)
        raise


def write_file(path: str, data: bytes) -> None:
    """Whole or not at all; through a link, if it is one."""
    target = os.path.realpath(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".mpsbar.", dir=os.path.dirname(target))  # noqa: PTH120
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - already open
            file.write(data)
            file.flush()
            os.fchmod(descriptor, 0o644)  # launchd refuses what others may write
            os.fsync(descriptor)
        os.replace(temporary, target)  # noqa: PTH105 - texts, both
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def remove_file(path: str, folders_made: int) -> None:
    """And the folders we made for it, unless something else is in them by now."""
    Path(path).unlink(missing_ok=True)
    _remove_folders(list(Path(path).parents)[:folders_made])


def parse_count(text: str) -> int:
    """How many folders a mark speaks of; it lies in a file that anybody may have edited."""
    return min(int(text), 3) if text.isascii() and text.isdigit() and len(text) < 3 else 0


def _remove_folders(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
