"""Is this process an app of its own, or a Python that runs one?"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any


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


def read_bundle_identifier() -> str | None:
    bundle = read_bundle()
    return None if bundle is None else bundle.identifier
