"""mpsbar doctor: whether torch works in the Pythons of this user, and why not."""

import argparse
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from mpsbar.model.checkup import Checkup, build_checkup
from mpsbar.model.device import Device
from mpsbar.model.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.probe.look import look_at
from mpsbar.storage.enabled import read_enabled
from mpsbar.views.doctor import build_doctor, render_doctor, render_progress

MOST_PYTHONS = 8
# Each imports torch: more at once would only make a small machine swap.
_AT_ONCE = 2


def run(options: argparse.Namespace) -> int:
    snapshot = _read_snapshot()
    named = options.python is not None
    pythons = [_find_named(options.python)] if named else find_pythons(snapshot)
    devices = _look_at_all(pythons[:MOST_PYTHONS])
    checkup = build_checkup(snapshot, devices, tuple(pythons[MOST_PYTHONS:]))
    if options.json:
        print(json.dumps(build_doctor(checkup)))
    else:
        print(render_doctor(checkup, str(Path.home())))
    return _exit_code(checkup, named)


def find_pythons(snapshot: Snapshot) -> list[str]:
    """One path for each environment, those in use first."""
    found: dict[str, str] = {}
    for python in _candidates(snapshot):
        if python and os.path.isabs(python):  # noqa: PTH117 - a text, as all of these are
            found.setdefault(_environment(python), python)
    return list(found.values())


def _candidates(snapshot: Snapshot) -> Iterator[str | None]:
    yield from (w.executable for w in snapshot.workers if w.frameworks.get("torch"))
    yield from (p.python for p in snapshot.processes or () if "torch" in p.frameworks)
    yield from read_enabled()
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            yield str(Path(prefix, "bin", "python"))
    yield shutil.which("python3")
    yield sys.executable


def _environment(python: str) -> str:
    """A venv is its folder, whose python is a link to somewhere else; else the file itself."""
    folder = Path(python).parent.parent
    return str(folder if (folder / "pyvenv.cfg").exists() else Path(python).resolve())


def _find_named(python: str) -> str:
    python = os.path.expanduser(python)  # noqa: PTH111 - which takes text
    found = shutil.which(python) or python
    return os.path.abspath(found)  # noqa: PTH100 - resolving would leave the venv


def _read_snapshot() -> Snapshot:
    monitor = Monitor()
    try:
        return monitor.tick()
    finally:
        monitor.close()


def _look_at_all(pythons: list[str]) -> tuple[Device, ...]:
    stop = threading.Event()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mpsbar-look") as pool:
        try:
            _show_progress(0, len(pythons))
            looks = [pool.submit(look_at, python, stop=stop) for python in pythons]
            for done, _ in enumerate(as_completed(looks)):
                _show_progress(done + 1, len(looks))
        except BaseException:
            stop.set()  # Ctrl-C: what was started ends now
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            _show_progress(None, len(pythons))
    return tuple(look.result() for look in looks)


def _show_progress(done: int | None, total: int) -> None:
    """On a terminal, in one line that is gone at the end."""
    if sys.stderr is not None and sys.stderr.isatty():
        text = "" if done is None else render_progress(done, total)
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _exit_code(checkup: Checkup, named: bool) -> int:
    without = named and all(device.ended == "no_torch" for device, _ in checkup.pythons)
    return 1 if checkup.worries or without else 0
