"""The other Pythons of this machine, for what must run in anybody's."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
# For what takes long. Two of the newest: not every machine has the last one yet.
OLDEST_AND_NEWEST = (VERSIONS[0], *VERSIONS[-2:])
# For hosts that are put under load: 3.10 has the frames and the collector of 3.9, and in 3.11 the tests
# with the real torch run. `make thorough` runs them in these too.
LIKE_OTHERS = ("3.10", "3.11")
EACH_KIND = [
    pytest.param(version, marks=pytest.mark.thorough) if version in LIKE_OTHERS else version
    for version in VERSIONS
]


@cache
def find(version: str) -> str | None:
    """A working interpreter of this version: on PATH, or of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    for candidate in (*map(str, found), shutil.which(f"python{version}")):
        if candidate and _is_version(candidate, version):
            return candidate
    return None


def need(version: str) -> str:
    found = find(version)
    if found is None:
        pytest.skip(f"no Python {version} on this machine")
    return found


def _is_version(python: str, version: str) -> bool:
    code = "import sys, ctypes; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    return done.returncode == 0 and done.stdout.strip() == version
