"""Which Python a process runs, as a person would name it, found from the outside."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mpsbar.system.platform import Details

# Where a wheel's libraries lie: the environment and its version of Python.
_SITE = re.compile(r"(?P<prefix>.+)/lib/(?P<name>python3(?:\.\d+)?t?)/(?:site|dist)-packages/")
_PYTHON = re.compile(r"[Pp]ython(?:3(?:\.\d+)?t?)?")


def find_python(details: Details, library: str) -> tuple[str | None, str | None]:
    """The interpreter and the folder of its environment; None and None for a frozen app.

    Not resolved: a venv's python is a link, and the link is what matters. Where `library` was
    loaded from cannot be wrong, what the process says of itself can.
    """
    if details.executable is None or not _is_python(details.executable):
        return None, None
    for candidate in _candidates(details, library):
        if candidate.startswith("/") and _is_python(candidate) and os.access(candidate, os.X_OK):
            return candidate, _environment(candidate)
    return details.executable, _environment(details.executable)


def _candidates(details: Details, library: str) -> Iterator[str]:
    said = list(_said(details))
    # A venv may borrow torch from elsewhere, as with --system-site-packages.
    yield from (path for path in said if _is_venv_of(path, details.executable))
    if match := _SITE.match(library):
        prefix, typed = match["prefix"], said[0].rpartition("/")[2]
        yield from (path for path in said if path.startswith(f"{prefix}/"))
        yield from (f"{prefix}/bin/{name}" for name in (typed, match["name"], "python3", "python"))
    yield from said


def _said(details: Details) -> Iterator[str]:
    """What it was started as, by path or by name."""
    started_as = details.command[0] if details.command else ""
    yield started_as
    yield details.variables.get("__PYVENV_LAUNCHER__", "")  # macOS: what a framework's stub was
    if "/" not in started_as:
        folders = details.variables.get("PATH", "").split(":")
        yield from (f"{folder}/{started_as}" for folder in folders[:50] if started_as)


def _is_venv_of(path: str, executable: str | None) -> bool:
    """Is it a venv's link to just the file that runs? Then it cannot be a made-up name."""
    if not path.startswith("/") or executable is None:
        return False
    has_mark = (Path(path).parent.parent / "pyvenv.cfg").exists()
    return has_mark and os.path.realpath(path) == os.path.realpath(executable)


def _environment(python: str) -> str | None:
    """…/Versions/3.11/Resources/Python.app/Contents/MacOS/Python belongs to …/Versions/3.11."""
    path = python.partition("/Resources/Python.app/")[0]
    return path if path != python else str(Path(python).parent.parent)


def _is_python(path: str) -> bool:
    return _PYTHON.fullmatch(path.rpartition("/")[2]) is not None
