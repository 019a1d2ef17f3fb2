"""The path of every file that mpsbar makes, and of its resources."""

import os
import sys
from pathlib import Path

import platformdirs

from mpsbar.agent import user_folders


def data_folder() -> Path:
    """$MPSBAR_DATA_DIR, for tests, else the platform's folder for data."""
    override = os.environ.get("MPSBAR_DATA_DIR")
    return Path(override) if override else platformdirs.user_data_path("mpsbar", appauthor=False)


def is_in_app() -> bool:
    """Returns whether this is mpsbar.app (py2app sets it), where nothing may be written."""
    return getattr(sys, "frozen", None) == "macosx_app"


def resource(name: str) -> Path:
    """A file of resources/: inside the package in a wheel and in the app, beside it in a checkout
    and so in an editable install."""
    package = Path(__file__).parents[1]
    path = package / "resources" / name
    if not path.is_file() and (package.parent / "pyproject.toml").is_file():
        path = package.parent / "resources" / name
    if not path.is_file():
        raise FileNotFoundError(path)
    return path


def enabled_file() -> Path:
    """The Pythons that `mpsbar enable` was run for."""
    return data_folder() / "enabled.json"


def lock_file(name: str) -> Path:
    """Locked by the one instance of that name."""
    return data_folder() / f"{name}.lock"


def history_file() -> Path:
    """The history; SQLite has two more files beside it while it is open."""
    return data_folder() / "history.sqlite"


def report_file() -> Path:
    """The page that Open Report shows."""
    return data_folder() / "report.html"


def delivery_file() -> Path:
    """Whether macOS took the alerts of the menu bar app when it last sent one."""
    return data_folder() / "alerts.json"


def readings_file() -> Path:
    """What this computer answered at the last self-test, to attach to an issue."""
    return data_folder() / "self-test.json"


def status_line_file() -> Path:
    """The fields of the last `mpsbar status --format`, for the next one."""
    return data_folder() / "status-line.json"


def own_use_file() -> Path:
    """Why the monitor that runs refreshes less often, while it does."""
    return data_folder() / "own-use.json"


def auto_free_file() -> Path:
    """The choices of when to free single processes by itself, for all monitors that run."""
    return data_folder() / "auto-free.json"


def icon_file() -> Path:
    """Whether macOS showed the icon of the menu bar app when it last checked."""
    return data_folder() / "icon.json"


def settings_file() -> Path:
    """In $MPSBAR_CONFIG_DIR, for tests, else in the platform's folder for settings."""
    override = os.environ.get("MPSBAR_CONFIG_DIR")
    folder = override or platformdirs.user_config_path("mpsbar", appauthor=False)
    return Path(folder) / "settings.toml"


def log_file() -> Path:
    """In $MPSBAR_LOG_DIR, for tests, else in the platform's folder for logs."""
    override = os.environ.get("MPSBAR_LOG_DIR")
    return Path(override or platformdirs.user_log_path("mpsbar", appauthor=False)) / "mpsbar.log"


def probe_folder() -> Path | None:
    """The results of the dtype probe, which the agent reads too. None: this user has no home."""
    folder = user_folders.results_folder()
    return None if folder is None else Path(folder)
