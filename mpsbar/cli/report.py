"""mpsbar report: everything on one page, written to a file and, if asked, opened."""

import argparse
import sys
from pathlib import Path

from mpsbar.cli.doctor import check_up_all
from mpsbar.core.errors import UserError
from mpsbar.desktop.programs import open_file
from mpsbar.history.report.build import write_report
from mpsbar.monitor import Monitor
from mpsbar.system import paths


def run(options: argparse.Namespace) -> int:
    monitor = Monitor()
    try:
        snapshot = monitor.read_once()
    finally:
        monitor.close()
    target = Path(options.output).expanduser() if options.output else paths.report_file()
    checkup = check_up_all(snapshot)
    try:
        file = write_report(snapshot, checkup, target)
    except OSError as error:
        raise UserError(f"{target} could not be written: {error.strerror or error}") from error
    print(file)
    if options.open and not open_file(file):
        print("mpsbar: no program opened it: open it in a browser yourself", file=sys.stderr)
        return 1
    return 0
