"""mpsbar report: writes one HTML page and, if asked, opens it."""

import argparse
from typing import TYPE_CHECKING

from mpsbar.cli import on_hosts
from mpsbar.cli.output import print_stderr, progress_line, show_progress
from mpsbar.core.errors import UserError, reason_of
from mpsbar.language import _

if TYPE_CHECKING:
    from pathlib import Path

DESCRIPTION = _(
    "Writes one self-contained HTML page: memory over time as far as it was recorded, "
    "connected and unconnected processes, runs that ended, the last dtype probe, what to do next, "
    "and diagnostics to paste into a bug report. For other hosts: their computers, processes and "
    "runs that ended. Prints its path. Exit code 0: written, 1: not "
    "written or not opened, 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar report --open",
    "mpsbar report -o memory.html",
    "mpsbar report --host mac1 --host mac2 -o macs.html",
)
_MAX_ENDS = 20  # of each host


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=_("default: report.html in mpsbar's data folder")
    )
    parser.add_argument("--open", action="store_true", help=_("open it in the browser"))
    on_hosts.add_host_arguments(parser)


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from mpsbar.desktop.programs import open_file
    from mpsbar.system import paths

    target = Path(options.output).expanduser() if options.output else paths.report_file()
    if options.output and not target.absolute().parent.is_dir():
        raise UserError(
            _("{folder} does not exist: create it first").format(folder=target.absolute().parent)
        )
    hosts = on_hosts.find_hosts(options)
    try:
        file = _write_of_hosts(hosts, options, target) if hosts else _write(target)
    except OSError as error:
        raise UserError(
            _("couldn't write {file}: {problem}").format(file=target, problem=reason_of(error))
        ) from error
    print(file)
    if options.open and not open_file(file):
        print_stderr(_("mpsbar: couldn't open it; open it in a browser yourself"))
        return 1
    return 0


def _write(target: "Path") -> "Path":
    from mpsbar import snapshot as read_snapshot
    from mpsbar.doctor.render import render_progress
    from mpsbar.doctor_reader import read_doctor_report
    from mpsbar.end_reader import read_all_ends
    from mpsbar.history.report.build import write_report

    snapshot = read_snapshot()
    ends = read_all_ends(snapshot.time)
    with progress_line():
        doctor_report = read_doctor_report(
            snapshot, None, lambda done, total: show_progress(render_progress(done, total))
        )
    return write_report(snapshot, doctor_report, target, ends)


def _write_of_hosts(hosts: list[str], options: argparse.Namespace, target: "Path") -> "Path":
    from mpsbar.history.report.build import write_hosts_report
    from mpsbar.ui.text.hosts import say_silence

    with on_hosts.asking(options) as questions:
        readings = on_hosts.ask_statuses(hosts, options, questions)
        answered = [reading.host for reading in readings if reading.status is not None]
        ends = on_hosts.ask_ends(answered, options, questions, None, _MAX_ENDS)
    for reading in readings:
        if reading.status is None:
            print_stderr(f"mpsbar: {reading.host}: {say_silence(reading)}")
    return write_hosts_report(readings, ends, target)
