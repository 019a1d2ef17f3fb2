"""Keeps the results of the dtype probe: a JSON file for each Python, torch, system and device."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from mpsbar.agent import user_folders
from mpsbar.core.dtype_results import Probe, build_probe_json, parse_probe_json
from mpsbar.core.errors import UserError, reason_of
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.result_files import MAX_FILES, NAMED_BY, list_files, name_file, prepare_folder
from mpsbar.dtypes.verdicts import find_safe
from mpsbar.language import _
from mpsbar.system import paths
from mpsbar.system.files import log_refused, read_bytes, read_stamp, replace_file

_Record = TypeVar("_Record")
_LARGEST = 1 << 20
_COMPATIBILITY_VERSION = "10.16"  # what an old Python reads on any macOS since 11
# Another process may have probed, torch may have been upgraded.
_REREAD_SECONDS = 30.0
_VERSION = re.compile(r"^__version__ = ['\"](.{1,100})['\"]", re.MULTILINE)


def write_result(probe: Probe) -> Path | None:
    """Writes the result; returns None if it is incomplete and a complete one exists, or if it has
    no name. Raises OSError if it could not be written.
    """
    file = _find_file(probe)
    if file is None or (probe.ended != "ok" and _is_complete(file)):
        return None
    prepare_folder(file.parent)
    record = {**build_probe_json(probe), "safe": find_safe(probe)}
    replace_file(file, json.dumps(record, indent=1).encode())
    return file


def read_result(file: Path) -> Probe:
    return read_record(file, parse_probe_json, _LARGEST)


def read_record(file: Path, parse: Callable[[Any], _Record], largest: int) -> _Record:
    """Read any file that claims to be a result; a UserError says what is wrong with it."""
    try:
        return parse(json.loads(read_bytes(file, largest)))
    except OSError as error:
        text = _("couldn't read {file}: {why}")
        raise UserError(text.format(file=file, why=reason_of(error))) from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(_("{file} is incomplete or not JSON").format(file=file)) from error
    except ValueError as error:
        raise UserError(f"{file}: {error}") from error


def find_result(snapshot: Snapshot) -> Probe | None:
    """Finds the newest result of the first torch process that has one; if none runs, of any."""
    results = sorted(_read_current(), key=lambda probe: (probe.device == "cpu", -(probe.time or 0)))
    interpreters = list(_find_interpreters(snapshot))
    for python, torch in interpreters:
        for probe in results:
            if _is_of(probe, python) and torch in (None, probe.torch):
                return probe
    return next(iter(results), None) if not interpreters else None


def find_last(probe: Probe) -> Probe | None:
    """The newest complete result before this one, of the same Python and device."""
    results = [
        result
        for result in _read_all(is_quiet=True)
        if (result.device, result.prefix) == (probe.device, probe.prefix) and result.ended == "ok"
    ]
    return max(results, key=lambda result: result.time or 0.0, default=None)


def _find_interpreters(snapshot: Snapshot) -> Iterator[tuple[str, str | None]]:
    """The Pythons that run torch, with its version where it is known."""
    for worker in snapshot.workers:
        if worker.executable and worker.state != "gone" and "torch" in worker.frameworks:
            yield worker.executable, worker.frameworks["torch"]
    for process in snapshot.unconnected:
        if process.python and "torch" in process.frameworks:
            yield process.python, None


def _is_of(probe: Probe, python: str) -> bool:
    return probe.python == python or probe.prefix == os.path.realpath(Path(python).parent.parent)


def _read_current() -> Iterator[Probe]:
    """Results that still hold: for this system, and for the torch that is installed."""
    # The file name has the system in it: a file of another system need not be opened.
    return (probe for probe in _read_all(_systems()) if _is_current(probe))


def _read_all(systems: Sequence[str] = ("",), is_quiet: bool = False) -> Iterator[Probe]:
    """The results in our folder, the newest first."""
    folder = paths.probe_folder()
    try:
        files = list_files(folder, "*.json", systems)
    except OSError as problem:
        if folder is not None and not is_quiet:
            log_refused(folder, problem)
        return
    for file in files:
        with contextlib.suppress(UserError):
            yield _read_once(file, read_stamp(file))


@lru_cache(MAX_FILES)
def _read_once(file: Path, stamp: object) -> Probe:  # noqa: ARG001 - another one: it was rewritten
    return read_result(file)


def _is_current(probe: Probe) -> bool:
    if probe.system not in _systems():
        return False
    return Path(probe.python).exists() and _installed(probe) in (None, probe.torch)


def _systems() -> tuple[str, str]:
    return user_folders.system_version(), _COMPATIBILITY_VERSION


def _installed(probe: Probe) -> str | None:
    """Returns the version of torch that is installed now; None if it is not known."""
    if probe.torch_file is None:
        return None
    if not Path(probe.torch_file).exists():
        return "none"
    try:
        with Path(probe.torch_file).with_name("version.py").open(encoding="utf-8") as file:
            match = _VERSION.search(file.read(4096))
    except (OSError, ValueError):
        return None
    return match[1] if match else None


def _find_file(probe: Probe) -> Path | None:
    values = [getattr(probe, name) for name in NAMED_BY]
    return name_file(paths.probe_folder(), values) if probe.cells else None


def _is_complete(file: Path) -> bool:
    try:
        return read_result(file).ended == "ok"
    except UserError:
        return False


class LatestResult:
    """The result that holds for what runs now; read again only if something may have changed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._state: object = None
        self._read_at = float("-inf")
        self._probe: Probe | None = None

    def read(self, snapshot: Snapshot) -> Probe | None:
        """Returns the result, and the same object while nothing changes."""
        stamp = _stamp_folder()
        state = (_list_pythons(snapshot), snapshot.probing is None, stamp)
        if state != self._state or self._clock() - self._read_at > _REREAD_SECONDS:
            self._state, self._read_at = state, self._clock()
            probe = None if stamp is None else find_result(snapshot)
            if probe != self._probe:
                self._probe = probe
        return self._probe


def _list_pythons(snapshot: Snapshot) -> frozenset[str | None]:
    workers = {worker.executable for worker in snapshot.workers}
    return frozenset(workers | {process.python for process in snapshot.processes or ()})


def _stamp_folder() -> int | None:
    """When a result was last added or removed."""
    folder = paths.probe_folder()
    try:
        return None if folder is None else folder.stat().st_mtime_ns
    except OSError:
        return None
