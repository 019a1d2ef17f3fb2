"""A copy of the agent outside the app, for `mpsbar run`: what other Pythons compile lies beside it.

The app is signed, and a file more in it voids that. And it may be replaced by a newer one while a
process of days has yet to import a part of its agent.
"""

import os
import shutil
import tempfile
from pathlib import Path

from mpsbar.agent import __version__, places

_AGENT = Path(places.__file__).parent

Files = dict[Path, bytes]


def copy_agent(folder: Path) -> Path:
    """Into `folder`, once for each version; where its sitecustomize is. OSError if it cannot be."""
    files: Files = {p.relative_to(_AGENT): p.read_bytes() for p in sorted(_AGENT.rglob("*.py"))}
    place = folder / f"agent-{__version__}"
    if not _is_whole(place, files):
        try:
            _write_whole(place, files)
        except OSError:
            if not _is_whole(place, files):  # unless another mpsbar was quicker
                raise
    return place / "site"


def _is_whole(place: Path, files: Files) -> bool:
    return all(_is_same(place / name, content) for name, content in files.items())


def _is_same(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _write_whole(place: Path, files: Files) -> None:
    """Beside it first: a Python that starts just now sees all of it or the one before."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        for name, content in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
        if place.exists():
            os.rename(place, fresh / "old")  # noqa: PTH104 - it must not follow
        os.rename(fresh, place)  # noqa: PTH104
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(place / "old", ignore_errors=True)
