"""Every file we ever make, and those that come along, in one place."""

import os
import sys
from pathlib import Path

import platformdirs

from mpsbar.agent import places


def data_folder() -> Path:
    """$MPSBAR_DATA_DIR, for tests, else the platform's place."""
    override = os.environ.get("MPSBAR_DATA_DIR")
    return Path(override) if override else platformdirs.user_data_path("mpsbar", appauthor=False)


def is_in_app() -> bool:
    """Do we run in mpsbar.app, into which nothing may be written? py2app says so."""
    return getattr(sys, "frozen", None) == "macosx_app"


def resource(name: str) -> Path:
    """A file of resources/: inside the package in a wheel and in the app, which has it unzipped;
    beside it in a checkout, which an editable install uses too."""
    package = Path(__file__).parents[1]
    path = package / "resources" / name
    if not path.is_file() and (package.parent / "pyproject.toml").is_file():
        path = package.parent / "resources" / name
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def enabled_file() -> Path:
    """The Pythons that `mpsbar enable` was asked for."""
    return data_folder() / "enabled.json"


def lock_file(name: str) -> Path:
    """Held by the one instance of that name."""
    return data_folder() / f"{name}.lock"


def history_file() -> Path:
    """What the one recorder wrote; SQLite keeps two more beside it while it is open."""
    return data_folder() / "history.sqlite"


def report_file() -> Path:
    """The page that the menu's Open Report shows."""
    return data_folder() / "report.html"


def icon_file() -> Path:
    """What the menu bar app last saw of its own icon."""
    return data_folder() / "icon.json"


def settings_file() -> Path:
    """In $MPSBAR_CONFIG_DIR, for tests, else the platform's place."""
    override = os.environ.get("MPSBAR_CONFIG_DIR")
    folder = override or platformdirs.user_config_path("mpsbar", appauthor=False)
    return Path(folder) / "settings.toml"


def log_file() -> Path:
    """In $MPSBAR_LOG_DIR, for tests, else the platform's place."""
    override = os.environ.get("MPSBAR_LOG_DIR")
    return Path(override or platformdirs.user_log_path("mpsbar", appauthor=False)) / "mpsbar.log"


def probe_folder() -> Path | None:
    """What the dtype probe measured: where the agent looks too. None: this user has no home."""
    folder = places.results_folder()
    return None if folder is None else Path(folder)
