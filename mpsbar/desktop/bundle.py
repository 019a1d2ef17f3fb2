"""Whether macOS takes this process for an app; `paths.is_in_app`: whether py2app built it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from mpsbar.desktop.programs import run_command


@dataclass(frozen=True, slots=True)
class Bundle:
    path: str
    identifier: str
    info: Mapping[str, Any]  # its Info.plist


def read_bundle() -> Bundle | None:
    """None outside an app; a framework Python lies in an app too, but in Python's own."""
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


CODESIGN = b"/usr/bin/codesign"
_SECONDS = 120.0  # every file is read


def verify(app: str, program: bytes = CODESIGN) -> str | None:
    """None when all is well, else its own words."""
    command = [program, b"--verify", b"--deep", b"--strict", b"--", os.fsencode(app)]
    return run_command(command, seconds=_SECONDS)
