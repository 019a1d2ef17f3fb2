"""mpsbar's own files, used only where nobody but this user and root can change them.

What they say decides which Pythons are looked at and what is shown; a folder may be another user's
where $HOME or an MPSBAR_…_DIR leads there. A folder that was there before is never changed.
"""

import logging
from pathlib import Path

from mpsbar.system.atomic_file import replace_file
from mpsbar.system.ownership import NotTrusted, require_safe

_log = logging.getLogger("mpsbar")
_told: set[str] = set()


def make_folder(folder: Path) -> None:
    """For this user alone where it has to be made; NotTrusted if somebody else can change it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_safe(folder)


def replace_owned(path: Path, data: bytes) -> None:
    """As replace_file; NotTrusted if somebody else can change the folder."""
    make_folder(path.parent)
    replace_file(path, data)


def is_usable(path: Path) -> bool:
    """False where somebody else can change it, which is logged; what is not there is usable."""
    try:
        require_safe(path)
    except NotTrusted as problem:
        tell_refused(path, problem)
        return False
    except OSError:
        pass  # whoever opens it will say why it cannot be
    return True


def tell_refused(path: Path, problem: OSError) -> None:
    """Once for each file. A command without a log says it on stderr."""
    words = f"mpsbar will not use {path}: {problem.strerror or problem}"
    if words not in _told:
        _told.add(words)
        _log.warning("%s", words)
