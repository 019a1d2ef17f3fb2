"""Which Pythons were enabled, so that they can be listed and refreshed after an upgrade."""

import json

from mpsbar.system import paths
from mpsbar.system.files import is_usable, log_refused, read_bytes, replace_own_file

_MOST_BYTES = 1 << 20


def read_enabled() -> list[str]:
    """An unreadable file is an empty list: the environments themselves hold the truth."""
    file = paths.enabled_file()
    if not is_usable(file):
        return []
    try:
        pythons = json.loads(read_bytes(file, _MOST_BYTES))["pythons"]
        return [python for python in pythons if isinstance(python, str)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def remember(python: str) -> None:
    """Logged where it cannot be; the environment is enabled all the same."""
    _write([*(known for known in read_enabled() if known != python), python])


def forget(python: str) -> None:
    known = read_enabled()
    if known == [python]:
        paths.enabled_file().unlink(missing_ok=True)
    elif python in known:
        _write([other for other in known if other != python])


def _write(pythons: list[str]) -> None:
    file = paths.enabled_file()
    text = json.dumps({"schema": 1, "pythons": pythons}, indent=1)
    try:
        replace_own_file(file, text.encode())
    except OSError as problem:
        log_refused(file, problem)
