"""mpsbar doctor: whether torch works in the Pythons of this user, and why not."""

import argparse
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from mpsbar.cli import self_test
from mpsbar.core.snapshot import Snapshot
from mpsbar.desktop.icon_visibility import draws_no_icon, read_icon
from mpsbar.doctor.diagnostics import read_versions, render_diagnostics
from mpsbar.doctor.pythons import check_up, find_pythons
from mpsbar.doctor.render import build_doctor, render_doctor, render_progress
from mpsbar.doctor.rules import Checkup
from mpsbar.dtypes.results import find_result
from mpsbar.dtypes.summary import render_brief
from mpsbar.monitor import Monitor
from mpsbar.workers.environments import read_enabled


def run(options: argparse.Namespace) -> int:
    if options.self_test:
        return self_test.run(options.json)
    snapshot = _read_snapshot()
    named = options.python is not None
    pythons = [find_named(options.python)] if named else find_pythons(snapshot, read_enabled())
    checkup = _check_up(snapshot, pythons)
    if options.json:
        print(json.dumps(build_doctor(checkup)))
    else:
        home = str(Path.home())
        dtypes = render_brief(find_result(snapshot))
        whole = render_diagnostics(read_versions(), snapshot, checkup, home, dtypes)
        print(render_doctor(checkup, home) if named else whole.rstrip("\n"))
    return _exit_code(checkup, named)


def check_up_all(snapshot: Snapshot) -> Checkup:
    """Every Python that is worth a look, with progress on a terminal."""
    return _check_up(snapshot, find_pythons(snapshot, read_enabled()))


def _check_up(snapshot: Snapshot, pythons: list[str]) -> Checkup:
    try:
        checkup = check_up(snapshot, pythons, _show_progress)
    finally:
        _show_progress(None, len(pythons))
    no_icon = draws_no_icon() if sys.platform == "darwin" else None
    return replace(checkup, icon=read_icon(), no_icon=no_icon)


def find_named(python: str) -> str:
    python = os.path.expanduser(python)  # noqa: PTH111 - which takes text
    found = shutil.which(python) or python
    return os.path.abspath(found)  # noqa: PTH100 - resolving would leave the venv


def _read_snapshot() -> Snapshot:
    monitor = Monitor()
    try:
        return monitor.tick()
    finally:
        monitor.close()


def _show_progress(done: int | None, total: int) -> None:
    """On a terminal, in one line that is gone at the end."""
    if sys.stderr is not None and sys.stderr.isatty():
        text = "" if done is None else render_progress(done, total)
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _exit_code(checkup: Checkup, named: bool) -> int:
    without = named and all(device.ended == "no_torch" for device, _ in checkup.pythons)
    return 1 if checkup.worries or without else 0
