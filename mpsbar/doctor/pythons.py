"""Finds the Pythons of this user and inspects torch in each, in a few child processes at a time."""

import importlib.resources
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.core.dtype_results import parse_text
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.doctor_child import MARK
from mpsbar.doctor.parse import parse_device
from mpsbar.doctor.rules import Device, DoctorReport, build_doctor_report
from mpsbar.system.child_process import ChildAnswer, classify_start, start_script
from mpsbar.system.installed_pythons import (
    find_installed,
    has_framework,
    is_usable_shim,
    list_active,
)
from mpsbar.system.paths import is_in_app
from mpsbar.system.waiting import as_completed

MAX_PYTHONS = 8
# Each imports torch: more at once would only make a small machine swap.
_AT_ONCE = 2
# Enough to import torch from a slow disk, on a busy machine.
_INSPECT_SECONDS = 60.0
_MAX_ANSWERS = 32
_SCRIPT = importlib.resources.files("mpsbar.doctor") / "doctor_child.py"

OnInspected = Callable[[int, int], None]  # done, total


def inspect_all(
    snapshot: Snapshot,
    pythons: list[str],
    on_progress: OnInspected | None = None,
    stop: threading.Event | None = None,
) -> DoctorReport:
    devices = inspect_pythons(pythons[:MAX_PYTHONS], on_progress, stop)
    return build_doctor_report(snapshot, devices, tuple(pythons[MAX_PYTHONS:]))


def find_pythons(snapshot: Snapshot, enabled: Iterable[str]) -> list[str]:
    """Finds where torch may be, a path for each environment: the active one, then those in use."""
    return _find(snapshot, enabled, {"torch"})


def find_usable(snapshot: Snapshot, enabled: Iterable[str]) -> list[str]:
    """Finds the Pythons that have any framework, by their files."""
    pythons = _find(snapshot, enabled, {framework.name for framework in FRAMEWORKS})
    return [python for python in pythons if has_framework(Path(python).parent.parent)]


def _find(snapshot: Snapshot, enabled: Iterable[str], frameworks: set[str]) -> list[str]:
    pythons: dict[str, str] = {}
    for python in _list_candidates(snapshot, enabled, frameworks):
        if python and os.path.isabs(python):  # noqa: PTH117 - a text, as all of these are
            pythons.setdefault(_find_environment(python), python)
    return list(pythons.values())


def inspect_pythons(
    pythons: list[str],
    on_progress: OnInspected | None = None,
    stop: threading.Event | None = None,
) -> tuple[Device, ...]:
    stop = stop or threading.Event()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mpsbar-inspect") as pool:
        try:
            if on_progress is not None:
                on_progress(0, len(pythons))
            futures = [pool.submit(inspect_python, python, stop=stop) for python in pythons]
            for done, _ in enumerate(as_completed(futures), 1):
                if on_progress is not None:
                    on_progress(done, len(futures))
        except BaseException:
            stop.set()  # Ctrl-C ends the child processes now
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(future.result() for future in futures)


def inspect_python(
    python: str, seconds: float = _INSPECT_SECONDS, stop: threading.Event | None = None
) -> Device:
    """Inspect one Python. Never raises: no such file, a crash and a hang are answers."""
    try:
        return _inspect(python, seconds, stop or threading.Event())
    except (OSError, ValueError) as error:
        ended = classify_start(error)
        text = None if ended == "no_python" else parse_text(str(error), 1000)
        return Device(python, ended, error=text)


def _inspect(python: str, seconds: float, stop: threading.Event) -> Device:
    answers: list[ChildAnswer] = []
    with start_script(python, _SCRIPT, MARK) as child:
        child.allow(seconds)
        for received in child.read_answers():
            answers += received[: _MAX_ANSWERS - len(answers)]
            if stop.is_set():
                return Device(python, "stopped")
    return parse_device(python, answers, child.tail, None if child.has_hung else child.code)


def _list_candidates(
    snapshot: Snapshot, enabled: Iterable[str], frameworks: set[str]
) -> Iterator[str | None]:
    yield from list_active()
    yield from (w.executable for w in snapshot.workers if frameworks & w.frameworks.keys())
    yield from (p.python for p in snapshot.processes or () if frameworks.intersection(p.frameworks))
    yield from enabled
    python3 = shutil.which("python3")
    if sys.platform != "darwin" or (python3 is not None and is_usable_shim(python3)):
        yield python3
    if sys.platform == "darwin":
        yield from find_installed(Path.home())
    if not is_in_app():  # nobody uses the app's own Python
        yield sys.executable


def _find_environment(python: str) -> str:
    """Returns the folder of a venv, whose python is a link elsewhere; else the file itself."""
    folder = Path(python).parent.parent
    return str(folder if (folder / "pyvenv.cfg").exists() else Path(python).resolve())
