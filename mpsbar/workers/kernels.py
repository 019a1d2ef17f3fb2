"""The kernels that Jupyter would start, by their files, and which of them read no IPython profile.

Nothing is run: a kernel may belong to another machine, and its Python to a folder that macOS asks
about.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpsbar.core.naming import printable
from mpsbar.language import _
from mpsbar.system.files import read_bytes

_MAX_BYTES = 1 << 20
_LONGEST_NAME = 60
_SYSTEM = ("/usr/local/share/jupyter", "/usr/share/jupyter", "/opt/homebrew/share/jupyter")


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str  # of its folder: what jupyter kernelspec list shows
    title: str  # what a person chooses in Jupyter
    language: str
    command: tuple[str, ...]
    environment: dict[str, str]


def find_kernels() -> list[Kernel]:
    """Returns each name once, the first that Jupyter would find."""
    kernels: dict[str, Kernel] = {}
    for folder in _list_folders():
        for file in sorted(folder.glob("kernels/*/kernel.json")):
            kernel = read_kernel(file)
            if kernel is not None:
                kernels.setdefault(kernel.name, kernel)
    return list(kernels.values())


def read_kernel(file: Path) -> Kernel | None:
    """Returns None for what Jupyter could not start either."""
    try:
        spec = json.loads(read_bytes(file, _MAX_BYTES))
        command = tuple(map(str, spec["argv"]))
        environment = {str(k): str(v) for k, v in (spec.get("env") or {}).items()}
        title, language = str(spec.get("display_name", "")), str(spec.get("language", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    name = printable(file.parent.name, _LONGEST_NAME)
    title = printable(title, _LONGEST_NAME) or name
    return Kernel(name, title, language, command, environment) if command else None


def why_not_reached(kernel: Kernel, startup_file: Path) -> str | None:
    """Returns why this kernel will not run IPython's `startup_file`, or None if it will."""
    if kernel.language.lower() not in ("python", ""):
        return _("it does not run Python")
    if not any(word.startswith("ipykernel") for word in kernel.command):
        return _("it is not started by ipykernel")
    arguments = " ".join(kernel.command)
    if found := re.search(r"--profile[= ](\S+)", arguments):
        profile = printable(found[1], _LONGEST_NAME)
        if profile != "default":
            return _("it uses the IPython profile {profile}").format(profile=profile)
    if re.search(r"--(ipython-dir|profile-dir)\b", arguments):
        return _("it uses another IPython folder")
    folder = kernel.environment.get("IPYTHONDIR")
    if folder is not None and Path(folder).expanduser() not in startup_file.parents:
        return _("it uses another IPython folder")
    python = Path(kernel.command[0])
    if not python.is_absolute():
        return None  # the Python that Jupyter runs in
    if not python.exists():
        return _("{python} does not exist").format(python=printable(str(python), 200))
    version = _read_version(python)
    if version is not None and version < (3, 9):
        text = _("its Python is {version}; 3.9 or later is required")
        return text.format(version=f"{version[0]}.{version[1]}")
    return None


def _read_version(python: Path) -> tuple[int, int] | None:
    """Reads the version from the folders of its environment; None if they do not tell."""
    for place in (python, python.resolve()):
        for folder in place.parent.parent.glob("lib/python*.*"):
            if found := re.fullmatch(r"python(\d)\.(\d+)t?", folder.name):
                return int(found[1]), int(found[2])
    return None


def _list_folders() -> Iterator[Path]:
    """Lists where Jupyter looks, in its order; an environment's own are those of the active one."""
    yield from (Path(path) for path in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if path)
    if folder := os.environ.get("JUPYTER_DATA_DIR"):
        yield Path(folder)
    elif sys.platform == "darwin":
        yield Path.home() / "Library/Jupyter"
    else:
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
        yield Path(data, "jupyter")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            yield Path(prefix, "share/jupyter")
    yield from map(Path, _SYSTEM)
