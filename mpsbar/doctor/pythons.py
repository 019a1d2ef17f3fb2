"""Which Pythons of this user are worth a look, and a look at each, few at a time."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.checkup import Checkup, build_checkup
from mpsbar.doctor.rules import Device
from mpsbar.doctor.runner import inspect_python
from mpsbar.system.paths import is_in_app

MOST_PYTHONS = 8
# Each imports torch: more at once would only make a small machine swap.
_AT_ONCE = 2

Progress = Callable[[int, int], None]


def check_up(
    snapshot: Snapshot,
    pythons: list[str],
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Checkup:
    devices = inspect_pythons(pythons[:MOST_PYTHONS], on_progress, stop)
    return build_checkup(snapshot, devices, tuple(pythons[MOST_PYTHONS:]))


def find_pythons(snapshot: Snapshot, enabled: Iterable[str]) -> list[str]:
    """One path for each environment, those in use first."""
    found: dict[str, str] = {}
    for python in _candidates(snapshot, enabled):
        if python and os.path.isabs(python):  # noqa: PTH117 - a text, as all of these are
            found.setdefault(_environment(python), python)
    return list(found.values())


def inspect_pythons(
    pythons: list[str],
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> tuple[Device, ...]:
    tell = on_progress or _tell_nobody
    stop = stop or threading.Event()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mpsbar-look") as pool:
        try:
            tell(0, len(pythons))
            looks = [pool.submit(inspect_python, python, stop=stop) for python in pythons]
            for done, _ in enumerate(as_completed(looks)):
                tell(done + 1, len(looks))
        except BaseException:
            stop.set()  # Ctrl-C: what was started ends now
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(look.result() for look in looks)


def _tell_nobody(done: int, total: int) -> None:
    pass


def _candidates(snapshot: Snapshot, enabled: Iterable[str]) -> Iterator[str | None]:
    yield from (w.executable for w in snapshot.workers if w.frameworks.get("torch"))
    yield from (p.python for p in snapshot.processes or () if "torch" in p.frameworks)
    yield from enabled
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            yield str(Path(prefix, "bin", "python"))
    yield shutil.which("python3")
    if not is_in_app():  # the app's own is no Python that anybody uses
        yield sys.executable


def _environment(python: str) -> str:
    """A venv is its folder, whose python is a link to somewhere else; else the file itself."""
    folder = Path(python).parent.parent
    return str(folder if (folder / "pyvenv.cfg").exists() else Path(python).resolve())
