"""Loads the extension in every kernel of this user, by one start-up file of IPython."""

import os
import re
from pathlib import Path

from mpsbar.core.errors import UserError
from mpsbar.language import _
from mpsbar.system.files import make_folders, read_text, replace_file
from mpsbar.system.ownership import require_own

FILE = Path("profile_default", "startup", "50-mpsbar.py")
_MARK = "# Written by mpsbar"
_MAX_BYTES = 1 << 20
# A profile serves all environments: one that was enabled has the agent under its other name, one
# without mpsbar uses the copy in {agent}, and must not notice if that is gone or too new for it.
# Runs in the user's namespace: no name may stay in it.
_CODE = """\
{mark} enable --jupyter; mpsbar disable --jupyter removes it. Folders made for it: {folders}
def _mpsbar_load():
    from importlib import import_module

    for name in ("mpsbar_agent.notebook", "mpsbar.agent.notebook"):
        try:
            notebook = import_module(name)
        except Exception:
            continue
        notebook.load(get_ipython())
        return
    from importlib import util

    try:
        spec = util.spec_from_file_location("_mpsbar_start", {hook!r})
        hook = util.module_from_spec(spec)
        spec.loader.exec_module(hook)
        hook.load_in_notebook({agent!r}, get_ipython())
    except Exception:
        pass


_mpsbar_load()
del _mpsbar_load
"""


class ForeignFileError(UserError):
    """There is a file of that name that mpsbar has not written."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            _("{path} was not written by mpsbar and was left unchanged").format(path=path)
        )


def enable(agent: Path) -> Path:
    """Has every kernel of the default profile load the extension; returns the start-up file.

    `agent` is the copy for environments that have none. Raises ForeignFileError, or OSError if the
    file cannot be written.
    """
    path = ipython_folder() / FILE
    require_own(path.parent)
    if os.path.lexists(path) and not _is_ours(path):
        raise ForeignFileError(path)
    folders = _read_folders(path) + _make_folders(path.parent)
    hook = str(agent / "startup_hook.py")
    code = _CODE.format(mark=_MARK, folders=folders, agent=str(agent), hook=hook)
    replace_file(path, code.encode(), mode=0o644, follow_links=False)
    return path


def disable() -> Path | None:
    """Removes what `enable` made, and its folders unless something else is in them; or OSError."""
    path = ipython_folder() / FILE
    if not _is_ours(path):
        return None
    require_own(path.parent)
    folders = _read_folders(path)
    path.unlink()
    for folder in list(path.parents)[:folders]:
        try:
            folder.rmdir()
        except OSError:
            break  # someone uses it by now
    return path


def ipython_folder() -> Path:
    """Returns where IPython itself looks; an old ~/.config/ipython counts while there is no
    ~/.ipython.
    """
    if folder := os.environ.get("IPYTHONDIR"):
        return Path(os.path.normpath(Path(folder).expanduser()))
    usual = Path.home() / ".ipython"
    old = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ipython"
    return old if old.is_dir() and not usual.exists() else usual


def _is_ours(path: Path) -> bool:
    return read_text(path, _MAX_BYTES).startswith(_MARK)


def _read_folders(path: Path) -> int:
    first = read_text(path, _MAX_BYTES).partition("\n")[0]
    found = re.search(r"Folders made for it: (\d+)$", first)
    return int(found.group(1)) if found else 0


def _make_folders(folder: Path) -> int:
    """Makes `folder` and what is missing above it; returns how many folders it made."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    make_folders(folder)
    return len(missing)
