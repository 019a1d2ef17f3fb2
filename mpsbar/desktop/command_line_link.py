"""Installs the command `mpsbar` of the app: a link in a folder that the user chooses."""

import os
import shlex
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mpsbar.core.errors import reason_of
from mpsbar.desktop.bundle import judge_place, read_bundle
from mpsbar.system.files import make_folders, read_bytes

NAME = "mpsbar"
_RESOURCES = "Contents/Resources"
_IN_APP = f"{_RESOURCES}/bin/mpsbar"
# For man and the shells: the same below the app's resources and beside the folder of the link.
SHELL_FILES = (
    "share/man/man1/mpsbar.1",
    "share/bash-completion/completions/mpsbar.bash",
    "share/zsh/site-functions/_mpsbar",
    "share/fish/vendor_completions.d/mpsbar.fish",
)
_PATHS = ("/etc/paths", "/etc/paths.d")  # where every shell of macOS begins
_MAX_BYTES = 64 * 1024

LinkState = Literal[
    "made",
    "was_there",
    "renewed",  # it pointed to another mpsbar.app, or to one that is gone
    "foreign",  # something else has that name: left alone
    "not_allowed",
    "no_place",  # the app itself lies on a disk image or in a temporary place
    "failed",
]


@dataclass(frozen=True, slots=True)
class Link:
    state: LinkState
    path: str  # of the link, made or not
    target: str
    on_path: bool = False  # will a shell find it there?
    detail: str = ""  # the system's own words

    @property
    def by_hand(self) -> str:
        """The command that does it with an administrator's rights."""
        parts = (str(Path(self.path).parent), self.target, self.path)
        folder, target, path = map(shlex.quote, parts)
        return f"sudo mkdir -p {folder} && sudo ln -s {target} {path}"


def find_tool() -> str | None:
    """Returns the command inside the app, which the link points to; None outside the app."""
    bundle = read_bundle()
    if bundle is None:
        return None
    tool = Path(bundle.path, _IN_APP)
    return str(tool) if tool.is_file() else None


def suggest_folders(home: str) -> tuple[str, ...]:
    """Suggests the user's own folder first: it needs no administrator."""
    return str(Path(home, ".local/bin")), "/usr/local/bin"


def install(tool: str, folder: str) -> Link:
    """Makes the link, and in a folder called bin those to the man page and the completions.

    Replaces only a link of our own.
    """
    path = str(Path(folder, NAME))
    if judge_place(tool) is not None:
        return Link("no_place", path, tool)
    try:
        state = _link(tool, path, _IN_APP)
    except PermissionError as error:
        return Link("not_allowed", path, tool, detail=error.strerror or "")
    except OSError as error:
        return Link("failed", path, tool, detail=reason_of(error))
    if state != "foreign" and Path(folder).name == "bin":
        _link_shell_files(Path(tool).parents[1], Path(folder).parent)
    return Link(state, path, tool, _is_on_path(folder))


def _link_shell_files(resources: Path, prefix: Path) -> None:
    """Links what it can: the command works without them."""
    for name in SHELL_FILES:
        with suppress(OSError):
            if (resources / name).is_file():
                _link(str(resources / name), str(prefix / name), f"{_RESOURCES}/{name}")


def _link(target: str, path: str, in_app: str) -> LinkState:
    """`in_app` is the end of what a link of ours points to."""
    make_folders(Path(path).parent)
    try:
        Path(path).symlink_to(target)
    except FileExistsError:
        return _renew(target, path, in_app)
    return "made"


def _renew(wanted: str, path: str, in_app: str) -> LinkState:
    try:
        target = os.readlink(path)  # noqa: PTH115 - a text
    except OSError:
        return "foreign"  # a file or a folder
    if target == wanted:
        return "was_there"
    if not target.endswith(f".app/{in_app}"):
        return "foreign"
    with tempfile.TemporaryDirectory(prefix=".mpsbar.", dir=Path(path).parent) as spare:
        fresh = Path(spare, NAME)
        fresh.symlink_to(wanted)
        fresh.replace(path)
    return "renewed"


def _is_on_path(folder: str) -> bool:
    """Reads /etc/paths too: an app opened from the Finder does not have the shell's PATH."""
    return folder in {*os.environ.get("PATH", "").split(os.pathsep), *_read_paths(_PATHS)}


def _read_paths(files: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for name in files:
        with suppress(OSError):
            path = Path(name)
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                lines += read_bytes(file, _MAX_BYTES).decode("utf-8", "replace").split("\n")
    return [line.strip() for line in lines if line.strip()]
