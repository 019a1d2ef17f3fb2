"""The Pythons of this user that may have torch, those in use first."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpsbar.model.snapshot import Snapshot


def find_pythons(snapshot: Snapshot, enabled: Iterable[str]) -> list[str]:
    """One path for each environment: of torch processes, enabled, active, on PATH, our own."""
    found: dict[str, str] = {}
    for python in _candidates(snapshot, enabled):
        if python and os.path.isabs(python):  # noqa: PTH117 - a text, as all of these are
            found.setdefault(_environment(python), python)
    return list(found.values())


def _candidates(snapshot: Snapshot, enabled: Iterable[str]) -> Iterator[str | None]:
    yield from (w.executable for w in snapshot.workers if w.frameworks.get("torch"))
    yield from (p.python for p in snapshot.processes or () if "torch" in p.frameworks)
    yield from enabled
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            yield str(Path(prefix, "bin", "python"))
    yield shutil.which("python3")
    yield sys.executable


def _environment(python: str) -> str:
    """A venv is its folder, whose python is a link to somewhere else; else the file itself."""
    folder = Path(python).parent.parent
    return str(folder if (folder / "pyvenv.cfg").exists() else Path(python).resolve())
