"""Every file we ever make, in one place."""

import os
from pathlib import Path

import platformdirs

from mpsbar.agent import places


def data_folder() -> Path:
    """$MPSBAR_DATA_DIR, for tests, else the platform's place."""
    override = os.environ.get("MPSBAR_DATA_DIR")
    return Path(override) if override else platformdirs.user_data_path("mpsbar", appauthor=False)


def enabled_file() -> Path:
    """The Pythons that `mpsbar enable` was asked for."""
    return data_folder() / "enabled.json"


def probe_folder() -> Path | None:
    """What the dtype probe measured: where the agent looks too. None: this user has no home."""
    folder = places.results_folder()
    return None if folder is None else Path(folder)
