"""mpsbar doctor: whether torch works in this user's Pythons, and if not, why; the self-test."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from mpsbar import __version__
from mpsbar.cli.arguments import find_python
from mpsbar.cli.output import show_progress
from mpsbar.cli.status import read_snapshot
from mpsbar.core.machine import Problem
from mpsbar.core.snapshot import Snapshot
from mpsbar.desktop.icon_visibility import draws_no_icon, read_icon
from mpsbar.desktop.notifications import read_delivery
from mpsbar.doctor.diagnostics import read_versions, render_diagnostics
from mpsbar.doctor.pythons import check_up, find_pythons
from mpsbar.doctor.render import build_doctor, render_doctor, render_progress
from mpsbar.doctor.rules import Checkup
from mpsbar.dtypes.results import find_result
from mpsbar.dtypes.summary import render_brief
from mpsbar.system.own_use_file import read_own_use
from mpsbar.ui.text.wording import shorten_home
from mpsbar.workers.environments import read_enabled

DESCRIPTION = (
    "Checks the Pythons of running torch processes, of enabled environments, the active one and "
    "python3: torch's version, whether MPS is built and available and if not, why, the device a "
    "script would get, and PYTORCH_* variables that do harm. Each is checked in a short-lived "
    "process of its own. Exit code 0: all well, 1: a problem was found or the named Python has no "
    "torch, 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar doctor",
    "mpsbar doctor --python ~/venv/bin/python",
    "mpsbar doctor --json | jq '.pythons[].chosen'",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object, not text")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--python", metavar="PATH", help="check only this Python")
    choice.add_argument("--self-test", action="store_true", help="check mpsbar itself, not torch")
    parser.add_argument(
        "--share", action="store_true", help="with --self-test: show the readings it wrote"
    )


def run(options: argparse.Namespace) -> int:
    if options.share and not options.self_test:
        print("mpsbar: --share needs --self-test", file=sys.stderr)
        return 2
    if options.self_test:
        return _test_self(options.json, options.share)
    snapshot = read_snapshot()
    named = options.python is not None
    pythons = [find_python(options.python)] if named else find_pythons(snapshot, read_enabled())
    checkup = _check_up(snapshot, pythons)
    if options.json:
        print(json.dumps(build_doctor(checkup)))
    else:
        home = str(Path.home())
        dtypes = render_brief(find_result(snapshot))
        whole = render_diagnostics(read_versions(), snapshot, checkup, home, dtypes)
        print(render_doctor(checkup, home) if named else whole.rstrip("\n"))
    has_no_torch = all(device.ended == "no_torch" for device, _ in checkup.pythons)
    return 1 if checkup.worries or (named and has_no_torch) else 0


def _test_self(as_json: bool, share: bool) -> int:
    from mpsbar.doctor.self_test.checks import check_all
    from mpsbar.doctor.self_test.text import build_self_test, render_self_test

    checks = check_all()
    if as_json:
        print(json.dumps(build_self_test(__version__, checks)))
    else:
        print(render_self_test(__version__, checks, str(Path.home())))
        _write_readings(share)
    return 1 if any(check.state == "fail" for check in checks) else 0


def _write_readings(share: bool) -> None:
    """Write what this computer answered; with `share` show it, so that nothing is sent unseen."""
    from mpsbar.doctor.self_test.readings import write_readings
    from mpsbar.doctor.self_test.text import say_readings

    try:
        file = write_readings()
    except OSError as error:
        print(f"mpsbar: couldn't write the readings: {error.strerror or error}", file=sys.stderr)
        return
    print("\n" + say_readings(shorten_home(str(file), str(Path.home())), share))
    if share:
        print(file.read_text(encoding="utf-8"))


def check_up_all(snapshot: Snapshot) -> Checkup:
    """Check every Python that is worth it, with progress on a terminal."""
    return _check_up(snapshot, find_pythons(snapshot, read_enabled()))


def _check_up(snapshot: Snapshot, pythons: list[str]) -> Checkup:
    try:
        checkup = check_up(
            snapshot, pythons, lambda done, total: show_progress(render_progress(done, total))
        )
    finally:
        show_progress("")
    if own_use := read_own_use():
        problems = (*checkup.problems, Problem("own use", own_use))
        checkup = replace(checkup, problems=problems)
    no_icon = draws_no_icon() if sys.platform == "darwin" else None
    return replace(checkup, icon=read_icon(), no_icon=no_icon, alerts=read_delivery())
