"""What the dtype probe measured: one JSON file for each interpreter, torch, system and device."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from mpsbar.agent import places
from mpsbar.core.dtype_results import Probe, build_record, parse_record
from mpsbar.core.errors import UserError
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.verdicts import find_safe
from mpsbar.system import paths
from mpsbar.system.atomic_file import read_bytes, replace_file
from mpsbar.system.owned_files import is_usable, tell_refused
from mpsbar.system.ownership import require_safe

_LARGEST = 1 << 20
_MOST = 16
_TOLD_BY_OLD_PYTHONS = "10.16"  # for any macOS since 11
# Another process may have probed, torch may have been upgraded.
_RELIED_ON_SECONDS = 30.0
_VERSION = re.compile(r"^__version__ = ['\"](.{1,100})['\"]", re.MULTILINE)


def write_result(probe: Probe) -> Path | None:
    """None: there is a whole result already, and this one has holes, or it cannot be named.
    OSError: it could not be kept."""
    file = _find_file(probe)
    if file is None or (probe.ended != "ok" and _is_whole(file)):
        return None
    places.prepare(str(file.parent))
    require_safe(file.parent)
    record = {**build_record(probe), "safe": find_safe(probe)}
    replace_file(file, json.dumps(record, indent=1).encode())
    return file


def read_result(file: Path) -> Probe:
    """A UserError says what is wrong with the file, which may be anybody's: it is only shown."""
    try:
        return parse_record(json.loads(read_bytes(file, _LARGEST)))
    except OSError as error:
        raise UserError(f"couldn't read {file}: {error.strerror or error}") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{file} is incomplete or not JSON") from error
    except ValueError as error:
        raise UserError(f"{file}: {error}") from error


def find_result(snapshot: Snapshot) -> Probe | None:
    """The last of the first torch process that was probed; with none running, the last of all."""
    results = sorted(_read_current(), key=lambda probe: (probe.device == "cpu", -(probe.time or 0)))
    asked = list(_interpreters(snapshot))
    for python, torch in asked:
        for probe in results:
            if _is_of(probe, python) and torch in (None, probe.torch):
                return probe
    return next(iter(results), None) if not asked else None


def _interpreters(snapshot: Snapshot) -> Iterator[tuple[str, str | None]]:
    """Paths of Pythons, with the version of their torch where it is known."""
    for worker in snapshot.workers:
        if worker.executable and worker.state != "gone" and "torch" in worker.frameworks:
            yield worker.executable, worker.frameworks["torch"]
    for process in snapshot.unconnected:
        if process.python and "torch" in process.frameworks:
            yield process.python, None


def _is_of(probe: Probe, python: str) -> bool:
    return probe.python == python or probe.prefix == os.path.realpath(Path(python).parent.parent)


def _read_current() -> Iterator[Probe]:
    """Those that this system, and as far as can be seen from outside this torch, still is."""
    folder = paths.probe_folder()
    if folder is None:
        return
    files: list[Path] = []
    try:
        places.check(str(folder))
        # The name tells the system too: of another one need not even be opened.
        fitting = [
            file for file in folder.glob("*.json") if any(s in file.name for s in _systems())
        ]
        files = sorted(fitting, key=lambda file: -file.stat().st_mtime)
    except FileNotFoundError:
        return
    except OSError as problem:
        tell_refused(folder, problem)
        return
    for file in files[:_MOST]:
        with contextlib.suppress(UserError):
            if not is_usable(file):
                continue
            probe = read_result(file)
            if _is_current(probe):
                yield probe


def _is_current(probe: Probe) -> bool:
    if probe.system not in _systems():
        return False
    return Path(probe.python).exists() and _installed(probe) in (None, probe.torch)


def _systems() -> tuple[str, str]:
    return places.system_version(), _TOLD_BY_OLD_PYTHONS


def _installed(probe: Probe) -> str | None:
    """The version that torch's folder names now; None: cannot be seen."""
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
    folder = paths.probe_folder()
    told = (probe.device, probe.torch, probe.system, probe.prefix, probe.version)
    if folder is None or not all(told) or not probe.cells:
        return None
    return folder / places.result_name(*(str(value) for value in told))


def _is_whole(file: Path) -> bool:
    try:
        return read_result(file).ended == "ok"
    except UserError:
        return False


class LatestResult:
    """The probe that holds for what runs now, read again only when something may have changed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: object = None
        self._read_at = float("-inf")
        self._probe: Probe | None = None

    def read(self, snapshot: Snapshot) -> Probe | None:
        """The very same object while nothing changes."""
        asked = (_pythons(snapshot), snapshot.probing is None, _stamp())
        if asked != self._asked or self._clock() - self._read_at > _RELIED_ON_SECONDS:
            self._asked, self._read_at = asked, self._clock()
            found = None if _stamp() is None else find_result(snapshot)
            if found != self._probe:
                self._probe = found
        return self._probe


def _pythons(snapshot: Snapshot) -> frozenset[str | None]:
    workers = {worker.executable for worker in snapshot.workers}
    return frozenset(workers | {process.python for process in snapshot.processes or ()})


def _stamp() -> int | None:
    """When a result came or went."""
    folder = paths.probe_folder()
    try:
        return None if folder is None else folder.stat().st_mtime_ns
    except OSError:
        return None
