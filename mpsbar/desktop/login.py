"""Open at Login: its status, and what login_macos and login_linux share.

On macOS the app registers itself and a tool install writes a LaunchAgent; on Linux it is an entry
in the desktop's autostart folder.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from mpsbar.system.files import make_folders, read_bytes, replace_file
from mpsbar.system.ownership import require_own

LoginState = Literal["on", "off", "needs_approval", "unavailable"]
Owner = Literal["app", "agent", "autostart", "service"]
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
MAX_BYTES = 64 * 1024
# Where `uvx` and `pipx run` put what they run once. Poetry's caches are for longer.
_RUN_ONCE = re.compile(r"/(archive|environments)-v\d+/|/(\.cache|Caches)/pipx/|/pipx/\.cache/")


@dataclass(frozen=True, slots=True)
class LoginStatus:
    state: LoginState
    owner: Owner
    where: str | None = None  # the file that does it, or would
    why: Why | None = None
    detail: str | None = None


def read_login() -> LoginStatus:
    """Reads the status anew each time: the user can change it in the system's settings."""
    status: LoginStatus = _platform().read()
    return status


def turn_on() -> LoginStatus:
    """Returns the status afterwards; if it is not "on", its `why` is the reason."""
    status: LoginStatus = _platform().turn_on()
    return status


def turn_off() -> LoginStatus:
    """Returns the status afterwards."""
    status: LoginStatus = _platform().turn_off()
    return status


def open_login_settings() -> bool:
    """Opens the pane where the user approves it, on macOS; False if there is no such pane."""
    return bool(_platform().open_settings())


def _platform() -> ModuleType:
    if sys.platform == "darwin":
        from mpsbar.desktop import login_macos

        return login_macos
    from mpsbar.desktop import login_linux

    return login_linux


@dataclass(frozen=True, slots=True)
class LoginFile:
    """The file that starts mpsbar at login, as it was read: a LaunchAgent or an autostart entry."""

    owner: Owner
    path: str
    fields: dict[str, Any] | None  # None: there is no file; {}: it cannot be parsed
    mark: str | None  # that we wrote it: the number of folders we made for it

    @property
    def is_foreign(self) -> bool:
        return self.fields is not None and self.mark is None

    def status(
        self, state: LoginState, why: Why | None = None, detail: str | None = None
    ) -> LoginStatus:
        return LoginStatus(state, self.owner, self.path, why, detail)

    def find_problem(self, command: str) -> LoginStatus | None:
        """Returns why it starts nothing: no file, one that is not ours, or its command is gone."""
        if self.fields is None:
            return self.status("off")
        if self.is_foreign:
            return self.status("unavailable", "foreign")
        if not os.access(command, os.X_OK):
            return self.status("off", "command_gone", command)
        return None

    def install(
        self, command: str, build: Callable[[int], bytes], forbidden: str = "\0"
    ) -> LoginStatus | None:
        """Writes what `build` makes of the number of folders made for it; else says why not.

        `forbidden` is a character that the file's format cannot hold in a command.
        """
        if self.is_foreign:
            return self.status("unavailable", "foreign")
        if _RUN_ONCE.search(command):
            return self.status("unavailable", "temporary_command", command)
        if forbidden in command or not command.isprintable():
            return self.status("unavailable", "odd_path", command)
        folder = Path(self.path).parent
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        try:
            require_own(folder)
            make_folders(folder)
            made = len(missing) if self.mark is None else parse_count(self.mark)
            # Others may read it but not write to it: launchd refuses what others may write.
            replace_file(Path(self.path), build(made), mode=0o644)
        except OSError as problem:
            _remove_folders(missing)
            return self.status("off", "not_written", problem.strerror)
        return None

    def remove(self) -> LoginStatus:
        """Removes the file, and the folders we made for it unless something else is in them."""
        if self.mark is None:
            return self.status("unavailable", "foreign") if self.is_foreign else self.status("off")
        try:
            require_own(Path(self.path).parent)
            Path(self.path).unlink(missing_ok=True)
        except OSError as problem:
            return self.status("on", "not_written", problem.strerror)
        _remove_folders(list(Path(self.path).parents)[: parse_count(self.mark)])
        return self.status("off")


def find_command() -> list[str]:
    """Returns the command as typed: a shim in ~/.local/bin outlives the environment behind it."""
    typed = sys.argv[0]
    if Path(typed).name != "mpsbar":
        typed = "" if Path(typed).name == "__main__.py" else shutil.which("mpsbar") or ""
    elif os.sep not in typed:
        typed = shutil.which(typed) or typed
    if typed:
        return [os.path.abspath(typed)]  # noqa: PTH100 - resolving would leave the shim
    return [os.path.abspath(sys.executable), "-m", "mpsbar"]  # noqa: PTH100


def find_config_folder() -> str:
    """Returns $XDG_CONFIG_HOME if it is absolute, as its specification requires; else ~/.config."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(config):  # noqa: PTH117 - a text
        return config
    return os.path.expanduser("~/.config")  # noqa: PTH111


def read_small(path: str) -> bytes | None:
    """Returns None if there is no file, b"" if it is no small file, which counts as foreign."""
    try:
        return read_bytes(Path(path), MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b"" if Path(path).is_symlink() else None
    except OSError:
        return b""


def parse_count(text: str) -> int:
    """Returns the number of folders in a mark; anybody may have edited the file it is in."""
    return min(int(text), 3) if text.isascii() and text.isdigit() and len(text) < 3 else 0


def _remove_folders(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
