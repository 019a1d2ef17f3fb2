"""mpsbar config: where the settings are, what they are, and what is wrong with them."""

import argparse
import os
import sys

from mpsbar.system import paths
from mpsbar.system.settings_file import read_settings
from mpsbar.ui.text.settings import render_settings, settings_are_well


def run(options: argparse.Namespace) -> int:
    return {"path": _tell_path, "print": _print, "validate": _validate}[options.what]()


def _tell_path() -> int:
    print(paths.settings_file())
    return 0


def _print() -> int:
    """Also with mistakes in them: what is in force then is just what one wants to know."""
    loaded = read_settings()
    for complaint in loaded.complaints:
        print(f"mpsbar: {complaint}", file=sys.stderr)
    print(render_settings(loaded))
    return 0


def _validate() -> int:
    loaded = read_settings()
    for complaint in loaded.complaints:
        print(complaint)
    if loaded.complaints:
        return 1
    print(settings_are_well(loaded, os.path.lexists(loaded.file)))
    return 0
