"""Which mpsbar this is, and what it runs on: for a bug report."""

import platform
from importlib.metadata import PackageNotFoundError, version

from mpsbar import __version__

_PARTS = ("rumps", "pyobjc-core", "textual")


def read_versions() -> str:
    """0.1.0 · Python 3.11.7 · rumps 0.4.0"""
    words = [__version__, f"Python {platform.python_version()}"]
    for name in _PARTS:
        try:
            words.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return " · ".join(words)
