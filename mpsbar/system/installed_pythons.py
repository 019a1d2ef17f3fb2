"""Finds what a shell has activated, and the Pythons that are installed on a Mac: none is run.

An app has launchd's PATH, on which there is only Apple's python3: a program that opens a dialog to
install the Command Line Tools where they are missing.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.system.files import read_text

APPLE_PYTHON = "/usr/bin/python3"
XCODE_SELECT = "/usr/bin/xcode-select"
_SELECT_SECONDS = 5.0
_MAX_BYTES = 1 << 20
# Below the root: Homebrew's on both chips, python.org's.
_SYSTEM = (
    "opt/homebrew/bin/python3*",
    "usr/local/bin/python3*",
    "Library/Frameworks/Python.framework/Versions/3*/bin/python3",
)
# Below the home: pyenv's and uv's.
_HOME = (".pyenv/versions/*/bin/python", ".local/share/uv/python/*/bin/python3")
# What conda, mamba and their distributions call their folder, below the home and below /opt.
_CONDA = ("miniforge3", "mambaforge", "miniconda3", "anaconda3", "micromamba", "mamba", "conda")
_CONDA_SYSTEM = ("opt", "usr/local")
_KERNELS = (
    "Library/Jupyter/kernels",
    ".local/share/jupyter/kernels",
    "usr/local/share/jupyter/kernels",
    "opt/homebrew/share/jupyter/kernels",
)


def list_active() -> Iterator[str]:
    """Lists what a person has activated in this shell, which comes before all that is guessed."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            yield str(Path(prefix, "bin", "python"))


def find_installed(home: Path, root: Path = Path("/")) -> list[str]:
    """Finds Pythons with a framework that mpsbar watches, each environment once."""
    pythons: dict[str, str] = {}
    for python in _list_files(home, root):
        prefix = python.parent.parent
        if os.access(python, os.X_OK) and has_framework(prefix):
            pythons.setdefault(str(prefix.resolve()), str(python))
    return list(pythons.values())


def has_framework(prefix: Path) -> bool:
    """Returns whether torch or another framework lies in its packages."""
    names = {framework.module.partition(".")[0] for framework in FRAMEWORKS}
    sites = prefix.glob("lib/python3*/site-packages")
    return any((site / name).is_dir() for site in sites for name in names)


def is_usable_shim(python: str, xcode_select: str = XCODE_SELECT) -> bool:
    """Returns False only for Apple's python3 where the Command Line Tools are missing."""
    if os.path.realpath(python) != os.path.realpath(APPLE_PYTHON):
        return True
    try:
        done = subprocess.run(
            [xcode_select, "-p"], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_SELECT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _list_files(home: Path, root: Path) -> Iterator[Path]:
    yield from _read_kernels([*(home / k for k in _KERNELS[:2]), *(root / k for k in _KERNELS[2:])])
    for prefix in _list_conda(home, root):
        yield prefix / "bin/python"
    for pattern in _HOME:
        yield from sorted(home.glob(pattern), reverse=True)
    for pattern in _SYSTEM:
        files = (path for path in root.glob(pattern) if not path.name.endswith("-config"))
        yield from sorted(files, reverse=True)


def _list_conda(home: Path, root: Path) -> Iterator[Path]:
    """The environments that conda lists for this user, then those in the usual folders."""
    listed = read_text(home / ".conda/environments.txt", _MAX_BYTES).split("\n")
    yield from (Path(line) for line in listed if line.startswith("/"))
    folders = [home / name for name in _CONDA]
    folders += [root / folder / name for folder in _CONDA_SYSTEM for name in _CONDA]
    folders += sorted((root / "opt/homebrew/Caskroom").glob("*/base"))  # miniforge, miniconda, …
    folders.append(home / ".local/share/mamba")
    for base in folders:
        yield base
        yield from sorted(base.glob("envs/*"))


def _read_kernels(folders: Iterable[Path]) -> Iterator[Path]:
    """The Pythons that Jupyter would start."""
    for folder in folders:
        for file in sorted(folder.glob("*/kernel.json")):
            try:
                program = Path(json.loads(read_text(file, _MAX_BYTES))["argv"][0])
            except (ValueError, KeyError, IndexError, TypeError, RecursionError):
                continue
            if program.is_absolute():
                yield program
