"""What every way of starting at login shares: its status, the command, the file that holds it."""

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mpsbar.system.files import read_bytes, replace_file

LoginState = Literal["on", "off", "needs_approval", "unavailable"]
Owner = Literal["app", "agent", "autostart"]
Why = Literal[
    "disk_image",  # the app runs from the image it came in
    "translocated",  # macOS runs a downloaded app from a secret place until it is moved
    "old_macos",
    "refused",  # by the system, whose words are the detail
    "foreign",  # a file under our name that we did not write
    "not_written",  # the detail is the system's reason
    "command_gone",  # the detail is its path
    "temporary_command",  # in a cache that is emptied some day; the detail is its path
    "odd_path",  # what the format cannot hold; the detail is the path
    "disabled_by_user",  # in the desktop's own settings
]
MOST_BYTES = 64 * 1024
# Where `uvx` and `pipx run` keep what they run once. Poetry's caches are for longer.
_RUN_ONCE = re.compile(r"/(archive|environments)-v\d+/|/(\.cache|Caches)/pipx/|/pipx/\.cache/")


@dataclass(frozen=True, slots=True)
class LoginStatus:
    state: LoginState
    owner: Owner
    where: str | None = None  # the file that does it, or would
    why: Why | None = None
    detail: str | None = None


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
        return read_bytes(Path(path), MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b"" if Path(path).is_symlink() else None
    except OSError:
        return b""


def install(path: str, build: Callable[[int], bytes], made_before: int | None) -> None:
    """Write what `build` makes of the number of folders made for it; OSError leaves nothing."""
    folder = Path(path).parent
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = len(missing) if made_before is None else made_before
        # Others may read it but not write to it: launchd refuses what others may write.
        replace_file(Path(path), build(made), mode=0o644)
    except OSError:
        _remove_folders(missing)
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
