"""The app bundle: whether macOS treats this process as an app, where it lies, its signature.

`paths.is_in_app` is another question: whether py2app built the program that runs.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from mpsbar.desktop.programs import run_command

CODESIGN = b"/usr/bin/codesign"
_CODESIGN_SECONDS = 120.0  # it reads every file


@dataclass(frozen=True, slots=True)
class Bundle:
    path: str
    identifier: str
    info: Mapping[str, Any]  # its Info.plist


def read_bundle() -> Bundle | None:
    """Returns None outside an app; a framework Python lies in an app too, which is Python's own."""
    try:
        from Foundation import NSBundle
    except ImportError:
        return None
    bundle = NSBundle.mainBundle()
    identifier, path = bundle.bundleIdentifier(), PurePath(str(bundle.bundlePath() or ""))
    is_app = path.suffix == ".app" and path.name != "Python.app"
    if not identifier or not is_app or str(identifier).startswith("org.python."):
        return None
    return Bundle(str(path), str(identifier), bundle.infoDictionary() or {})


def judge_place(path: str) -> Literal["translocated", "disk_image"] | None:
    """Returns why an app at this path will be gone after a restart; None if it stays."""
    if "/AppTranslocation/" in path:
        return "translocated"
    if path.startswith("/Volumes/") and _is_read_only(path):
        return "disk_image"
    return None


def _is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def verify_signature(app: str) -> str | None:
    """Returns None if the signature is valid, else what codesign says."""
    command = [CODESIGN, b"--verify", b"--deep", b"--strict", b"--", os.fsencode(app)]
    return run_command(command, seconds=_CODESIGN_SECONDS)
