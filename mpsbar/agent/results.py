"""What `mpsbar probe` measured for this very Python, torch, system and device."""

import json
import os
import stat
import sys
from typing import Any

from . import user_folders

_LARGEST = 1 << 20
# The file that was read last: a script may ask for every tensor it makes.
_kept: "dict[tuple[str, int], dict[str, bool]]" = {}


def read_safe(torch: Any, device: str) -> "dict[str, bool]":
    """Whether each dtype may be used; empty if this Python, torch and system were not measured."""
    try:
        return _read(str(torch.__version__), device)
    except Exception:  # noqa: BLE001 - no file, another's, cut short: then nothing is known
        return {}


def _read(torch: str, device: str) -> "dict[str, bool]":
    folder = user_folders.results_folder()
    if folder is None:
        return {}
    wanted = {
        "device": device,
        "torch": torch,
        "system": user_folders.system_version(),
        "prefix": os.path.realpath(sys.prefix),
        "version": ".".join(map(str, sys.version_info[:3])),
    }
    path = os.path.join(folder, user_folders.result_name(**wanted))
    key = (path, os.stat(path).st_mtime_ns)
    if key not in _kept:
        user_folders.check(folder)
        _kept.clear()
        _kept[key] = _parse(path, wanted)
    return _kept[key]


def _parse(path: str, wanted: "dict[str, str]") -> "dict[str, bool]":
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError("it is not a file")  # a pipe would make the host wait
    with open(path, encoding="utf-8") as file:
        record = json.loads(file.read(_LARGEST))
    if any(record.get(name) != value for name, value in wanted.items()):
        return {}
    return {str(name): is_safe is True for name, is_safe in record["safe"].items()}
