"""One process: what it has loaded, its name, and which Python it runs.

All of it is called on the reading thread (read_timeouts), since any read may hang.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.agent.secrets import shorten_command
from mpsbar.core.machine import Process
from mpsbar.core.naming import name_process, printable
from mpsbar.core.torch_facts import mask_settings
from mpsbar.system.platform import MAX_VALUE, Computer, Details

# A process of the same size as before has loaded nothing since, nor become another program by
# exec; that is assumed so many times, then its libraries are read again.
_MAX_ASSUMED = 9
# Where a wheel's libraries lie: the environment and its version of Python.
_SITE = re.compile(r"(?P<prefix>.+)/lib/(?P<name>python3(?:\.\d+)?t?)/(?:site|dist)-packages/")
_PYTHON = re.compile(r"[Pp]ython(?:3(?:\.\d+)?t?)?")
# What `mpsbar enable` puts into an environment; beside it `mpsbar run` has its sitecustomize.
_START_FILE = "_mpsbar_start.py"
_RUN_SITE = re.compile(r".+/(?:mpsbar/agent|agent-[\w.]+)/site")
# A process connects once torch is imported: 2 to 4 s on an idle computer, far more on a busy one.
_START_SECONDS = 60.0
# Linux tells the start of a process by a boot time in whole seconds.
_CLOCK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Examination:
    """What reading one process found."""

    process: Process | None  # None: it has no framework loaded
    size: int | None = None  # of its address space then
    assumed: int = 0  # times that the libraries were taken to be the same since


def examine_process(computer: Computer, pid: int, before: Examination | None) -> Examination:
    """Reads the libraries of a process and describes it if a framework is among them."""
    # Not the first time: the first scan of hundreds of processes should be quick.
    size = None if before is None else computer.read_size(pid)
    is_same = before is not None and size is not None and size == before.size
    if before is not None and is_same and before.assumed < _MAX_ASSUMED:
        return Examination(_read_footprint(computer, before.process), size, before.assumed + 1)
    libraries = computer.read_libraries(pid)
    process = describe_process(computer, pid, libraries) if libraries else None
    return Examination(process, size)


def _read_footprint(computer: Computer, process: Process | None) -> Process | None:
    """The same process with its present footprint and the true peak."""
    if process is None:
        return None
    footprint = computer.read_footprint(process.pid)
    return replace(
        process, footprint=footprint.now, footprint_peak=footprint.peak,
        is_napping=footprint.is_napping,
        is_starting=process.is_starting and _is_young(process.started),
    )  # fmt: skip


def describe_process(computer: Computer, pid: int, libraries: dict[str, str]) -> Process:
    details = computer.read_details(pid)
    footprint = computer.read_footprint(pid)
    python, environment = find_python(details, next(iter(libraries.values())))
    if python is not None and not python.isprintable():
        python, environment = None, None  # nobody can type it, and it might harm a terminal
    variables = details.variables
    enabled = find_enabled(environment, next(iter(libraries.values())), variables)
    return Process(
        pid=pid,
        started=details.started,
        name=printable(name_process(details.command, None, variables, details.executable)),
        frameworks=tuple(framework.name for framework in FRAMEWORKS if framework.name in libraries),
        parent=details.parent,
        command=shorten_command(details.command),
        executable=details.executable and printable(details.executable, MAX_VALUE),
        python=python,
        environment=environment,
        settings=mask_settings(variables),
        footprint=footprint.now,
        footprint_peak=footprint.peak,
        footprint_kind="footprint" if computer.is_mac else "rss",
        is_napping=footprint.is_napping,
        is_enabled=enabled is not None,
        is_starting=enabled is not None
        and enabled <= details.started + _CLOCK_SECONDS
        and _is_young(details.started),
    )


def find_enabled(
    environment: str | None, library: str, variables: Mapping[str, str]
) -> float | None:
    """When the agent was put where this Python finds it at its start; None: it was not.

    No folder is listed: in Documents macOS would ask whether mpsbar may.
    """
    if _RUN_SITE.fullmatch(variables.get("PYTHONPATH", "").partition(os.pathsep)[0]):
        return 0.0
    match = _SITE.match(library)
    if environment is None or match is None:
        return None
    file = Path(environment, "lib", match["name"], "site-packages", _START_FILE)
    try:
        return file.stat().st_mtime
    except OSError:
        return None


def _is_young(started: float) -> bool:
    return time.time() - started < _START_SECONDS


def find_python(details: Details, library: str) -> tuple[str | None, str | None]:
    """The interpreter and the folder of its environment; None and None for a frozen app.

    Links are not resolved: a venv's python is a link, and the link is what matters. The place of
    `library` cannot be wrong, the command line of the process can.
    """
    if details.executable is None or not _is_python(details.executable):
        return None, None
    for candidate in _list_candidates(details, library):
        if candidate.startswith("/") and _is_python(candidate) and os.access(candidate, os.X_OK):
            return candidate, _environment(candidate)
    return details.executable, _environment(details.executable)


def _list_candidates(details: Details, library: str) -> Iterator[str]:
    claimed = list(_list_claimed(details))
    # A venv may borrow torch from elsewhere, as with --system-site-packages.
    yield from (path for path in claimed if _is_venv_of(path, details.executable))
    if match := _SITE.match(library):
        prefix, typed = match["prefix"], claimed[0].rpartition("/")[2]
        yield from (path for path in claimed if path.startswith(f"{prefix}/"))
        yield from (f"{prefix}/bin/{name}" for name in (typed, match["name"], "python3", "python"))
    yield from claimed


def _list_claimed(details: Details) -> Iterator[str]:
    """The paths that the process was started by, or may have been found at by its name."""
    started_as = details.command[0] if details.command else ""
    yield started_as
    yield details.variables.get("__PYVENV_LAUNCHER__", "")  # macOS: the stub of a framework build
    if "/" not in started_as:
        folders = details.variables.get("PATH", "").split(":")
        yield from (f"{folder}/{started_as}" for folder in folders[:50] if started_as)


def _is_venv_of(path: str, executable: str | None) -> bool:
    """Returns whether it is a venv's link to the file that runs: such a name is not made up."""
    if not path.startswith("/") or executable is None:
        return False
    has_settings = (Path(path).parent.parent / "pyvenv.cfg").exists()
    return has_settings and os.path.realpath(path) == os.path.realpath(executable)


def _environment(python: str) -> str | None:
    """Returns the folder of an environment: two above its Python, but for a framework build:
    …/Versions/3.11/Resources/Python.app/Contents/MacOS/Python belongs to …/Versions/3.11."""
    path = python.partition("/Resources/Python.app/")[0]
    return path if path != python else str(Path(python).parent.parent)


def _is_python(path: str) -> bool:
    return _PYTHON.fullmatch(path.rpartition("/")[2]) is not None
