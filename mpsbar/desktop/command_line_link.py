"""The command `mpsbar` of the app, for the terminal: a link in a folder that the person chose."""

import os
import shlex
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mpsbar.desktop.bundle import read_bundle
from mpsbar.desktop.login_app import is_read_only, judge_place

NAME = "mpsbar"
_IN_APP = "Contents/Resources/bin/mpsbar"
_PATHS = ("/etc/paths", "/etc/paths.d")  # where every shell of macOS begins
_MOST_BYTES = 64 * 1024

LinkState = Literal[
    "made",
    "was_there",
    "renewed",  # it led to another mpsbar.app, or to one that is gone
    "foreign",  # something else has that name: left alone
    "not_allowed",
    "no_place",  # the app itself lies where it will not stay
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
        made = f"sudo mkdir -p {shlex.quote(str(Path(self.path).parent))}"
        return f"{made} && sudo ln -s {shlex.quote(self.target)} {shlex.quote(self.path)}"


def find_tool() -> str | None:
    """What the link leads to; None outside the app."""
    bundle = read_bundle()
    if bundle is None:
        return None
    tool = Path(bundle.path, _IN_APP)
    return str(tool) if tool.is_file() else None


def suggest_folders(home: str) -> tuple[str, ...]:
    """The person's own first: it needs nobody's permission."""
    return str(Path(home, ".local/bin")), "/usr/local/bin"


def install(tool: str, folder: str) -> Link:
    """Never replaces anything but a link of our own."""
    path = str(Path(folder, NAME))
    if judge_place(tool, is_read_only(tool)) is not None:
        return Link("no_place", path, tool)
    try:
        state = _link(tool, path)
    except PermissionError as error:
        return Link("not_allowed", path, tool, detail=error.strerror or "")
    except OSError as error:
        return Link("failed", path, tool, detail=error.strerror or str(error))
    return Link(state, path, tool, _is_on_path(folder))


def _link(tool: str, path: str) -> LinkState:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        Path(path).symlink_to(tool)
    except FileExistsError:
        return _renew(tool, path)
    return "made"


def _renew(tool: str, path: str) -> LinkState:
    try:
        led_to = os.readlink(path)  # noqa: PTH115 - texts, all of these
    except OSError:
        return "foreign"  # a file or a folder
    if led_to == tool:
        return "was_there"
    if not led_to.endswith(f".app/{_IN_APP}"):
        return "foreign"
    with tempfile.TemporaryDirectory(prefix=".mpsbar.", dir=Path(path).parent) as spare:
        fresh = Path(spare, NAME)
        fresh.symlink_to(tool)
        fresh.replace(path)
    return "renewed"


def _is_on_path(folder: str) -> bool:
    """As far as can be told: an app that was opened from the Finder has not the shell's PATH."""
    known = set(os.environ.get("PATH", "").split(os.pathsep)) | set(_read_paths(_PATHS))
    return folder in known


def _read_paths(places: Iterable[str]) -> list[str]:
    found: list[str] = []
    for place in places:
        with suppress(OSError):
            path = Path(place)
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                found += file.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace").split("\n")
    return [line.strip() for line in found if line.strip()]
