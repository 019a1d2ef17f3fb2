"""mpsbar doctor: checks torch in this user's Pythons; with --self-test it checks mpsbar itself."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar import __version__
from mpsbar import snapshot as read_snapshot
from mpsbar.cli.arguments import find_python
from mpsbar.cli.output import print_stderr, progress_line, show_progress
from mpsbar.core.errors import reason_of
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.snapshot import Snapshot
    from mpsbar.doctor.rules import DoctorReport

DESCRIPTION = _(
    "Checks the Pythons of running torch processes, of enabled environments, the active one and "
    "python3: torch's version, whether MPS is built and available and if not, why, the device a "
    "script would get, and harmful PYTORCH_* variables. Each is checked in a short-lived "
    "process of its own. Exit code 0: no problems, 1: a problem was found or the named Python has "
    "no torch, 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar doctor",
    "mpsbar doctor --python ~/venv/bin/python",
    "mpsbar doctor --json | jq '.pythons[].chosen'",
    "mpsbar doctor --self-test --share",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help=_("print one JSON object instead of text")
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help=_("check only this Python; with --self-test: try a small process in it"),
    )
    parser.add_argument(
        "--self-test", action="store_true", help=_("check mpsbar itself, not torch")
    )
    parser.add_argument(
        "--share", action="store_true", help=_("with --self-test: show the readings it wrote")
    )


def run(options: argparse.Namespace) -> int:
    if options.share and not options.self_test:
        print_stderr(_("mpsbar: --share requires --self-test"))
        return 2
    if options.self_test:
        return _test_self(options)
    from mpsbar.doctor.render import build_doctor_json, render_doctor, render_progress
    from mpsbar.doctor_reader import read_doctor_report

    snapshot = read_snapshot()
    named = options.python is not None
    pythons = [find_python(options.python)] if named else None
    with progress_line():
        report = read_doctor_report(
            snapshot, pythons, lambda done, total: show_progress(render_progress(done, total))
        )
    if options.json:
        print(json.dumps(build_doctor_json(report)))
    elif named:
        print(render_doctor(report, str(Path.home())))
    else:
        print(_render_whole(snapshot, report).rstrip("\n"))
    has_no_torch = all(device.ended == "no_torch" for device, _found in report.pythons)
    return 1 if report.torch_problems or (named and has_no_torch) else 0


def _render_whole(snapshot: "Snapshot", report: "DoctorReport") -> str:
    from mpsbar.doctor.diagnostics import read_versions, render_diagnostics
    from mpsbar.dtypes.results import find_result
    from mpsbar.dtypes.summary import render_brief

    dtypes = render_brief(find_result(snapshot))
    return render_diagnostics(read_versions(), snapshot, report, str(Path.home()), dtypes)


def _test_self(options: argparse.Namespace) -> int:
    from mpsbar.doctor.self_test.checks import check_all
    from mpsbar.doctor.self_test.text import build_self_test, render_self_test
    from mpsbar.doctor.self_test.worker_trial import find_torch_python

    named = options.python is not None
    python = find_python(options.python) if named else find_torch_python()
    with progress_line():
        show_progress(_("checking mpsbar; starting a process with torch takes a few seconds"))
        checks = check_all(python)
    if options.json:
        print(json.dumps(build_self_test(__version__, checks)))
    else:
        print(render_self_test(__version__, checks, str(Path.home())))
        _write_readings(python, options.share)
    return 1 if any(check.state == "fail" for check in checks) else 0


def _write_readings(python: str | None, share: bool) -> None:
    """Writes this computer's readings to a file; with `share` it prints them, so that a person sees
    what would be sent."""
    from mpsbar.doctor.self_test.readings import write_readings
    from mpsbar.doctor.self_test.text import say_readings
    from mpsbar.ui.text.wording import shorten_home

    try:
        file = write_readings(python)
    except OSError as error:
        print_stderr(
            _("mpsbar: couldn't write the readings: {problem}").format(problem=reason_of(error))
        )
        return
    print("\n" + say_readings(shorten_home(str(file), str(Path.home())), share))
    if share:
        print(file.read_text(encoding="utf-8"))
