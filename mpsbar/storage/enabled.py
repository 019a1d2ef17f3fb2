"""Which Pythons were enabled, so that they can be listed and refreshed after an upgrade."""

import json
import os
from pathlib import Path

from mpsbar.storage import paths


def read_enabled() -> list[str]:
    """An unreadable file is an empty list: the environments themselves hold the truth."""
    try:
        pythons = json.loads(paths.enabled_file().read_text(encoding="utf-8"))["pythons"]
        return [python for python in pythons if isinstance(python, str)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def remember(python: str) -> None:
    _write([*(known for known in read_enabled() if known != python), python])


def forget(python: str) -> None:
    left = [known for known in read_enabled() if known != python]
    if left:
        _write(left)
    else:
        paths.enabled_file().unlink(missing_ok=True)


def _write(pythons: list[str]) -> None:
    file = paths.enabled_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary: Path = file.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps({"schema": 1, "pythons": pythons}, indent=1), encoding="utf-8")
    temporary.replace(file)
