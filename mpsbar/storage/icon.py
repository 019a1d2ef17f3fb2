"""The last look of the app at its own icon, kept for other commands to tell."""

import json
from dataclasses import asdict

from mpsbar.model.icon import IconSight
from mpsbar.model.text import printable
from mpsbar.storage import paths
from mpsbar.storage.replace import NotAFile, TooLarge, read_bytes, replace_file

_MOST_BYTES = 10_000


def write_icon(sight: IconSight) -> None:
    """OSError if it cannot be kept."""
    replace_file(paths.icon_file(), json.dumps({"schema": 1, **asdict(sight)}).encode())


def read_icon() -> IconSight | None:
    """None: never looked, or what was kept cannot be read."""
    try:
        told = json.loads(read_bytes(paths.icon_file(), _MOST_BYTES))
        doubt = told["doubt"]
        words = None if doubt is None else printable(str(doubt), 40)
        return IconSight(float(told["time"]), words, printable(str(told["details"]), 500))
    except (OSError, NotAFile, TooLarge, ValueError, KeyError, TypeError):
        return None
