"""The files of results, of the probe and the deep probe: their names, and which may be read."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpsbar.agent import user_folders
from mpsbar.system.files import is_usable
from mpsbar.system.ownership import require_safe

MAX_FILES = 16
# What a result holds for, in the order of user_folders.result_name.
NAMED_BY = ("device", "torch", "system", "prefix", "version")


def name_file(folder: Path | None, values: Iterable[Any]) -> Path | None:
    """The file for these values of NAMED_BY; None if one is missing, or the folder."""
    texts = [str(value) for value in values if value]
    if folder is None or len(texts) < len(NAMED_BY):
        return None
    return folder / user_folders.result_name(*texts)


def prepare_folder(folder: Path) -> None:
    """Makes the folder for this user alone; OSError says why it cannot be used."""
    user_folders.prepare(str(folder))
    require_safe(folder)


def list_files(folder: Path | None, pattern: str, words: Sequence[str] = ("",)) -> list[Path]:
    """The files of a folder with one of the words in their name, the newest first.

    OSError if others could have changed them; a folder that is not there has none.
    """
    if folder is None:
        return []
    try:
        user_folders.check(str(folder))
        fitting = [file for file in folder.glob(pattern) if any(w in file.name for w in words)]
        files = sorted(fitting, key=lambda file: -file.stat().st_mtime)
    except FileNotFoundError:
        return []
    return [file for file in files[:MAX_FILES] if is_usable(file)]
