"""mpsbar report: everything on one page, written to a file and, if asked, opened."""

import argparse
import sys

from mpsbar.core.errors import UserError

DESCRIPTION = (
    "Writes one HTML page that needs nothing else: memory over time as far as it was recorded, "
    "connected and unconnected processes, runs that ended, the last dtype probe, what to do next, "
    "and diagnostics to paste into a bug report. Prints its path. Exit code 0: written, 1: not "
    "written or not opened, 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar report --open",
    "mpsbar report -o memory.html",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="default: report.html among mpsbar's own files"
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from mpsbar.cli.doctor import check_up_pythons
    from mpsbar.cli.status import read_snapshot
    from mpsbar.desktop.programs import open_file
    from mpsbar.history.report.build import write_report
    from mpsbar.system import paths

    target = Path(options.output).expanduser() if options.output else paths.report_file()
    if options.output and not target.absolute().parent.is_dir():
        raise UserError(f"there is no folder {target.absolute().parent}: make it first")
    snapshot = read_snapshot()
    checkup = check_up_pythons(snapshot)
    try:
        file = write_report(snapshot, checkup, target)
    except OSError as error:
        raise UserError(f"couldn't write {target}: {error.strerror or error}") from error
    print(file)
    if options.open and not open_file(file):
        print("mpsbar: couldn't open it; open it in a browser yourself", file=sys.stderr)
        return 1
    return 0
