"""mpsbar status: the computer and its processes as a table or JSON, once or repeatedly."""

import argparse
import json
import sys
import time

from mpsbar.agent.frameworks import join_labels
from mpsbar.cli import on_hosts
from mpsbar.cli.arguments import parse_seconds
from mpsbar.cli.output import is_coloured
from mpsbar.core.findings import NOT_PROBED, DtypeHealth, Reason
from mpsbar.core.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.system.paths import probe_folder
from mpsbar.ui.text.status import render_status
from mpsbar.ui.text.status_json import build_status

_READ_SECONDS = 20.0
_HOME_AND_CLEAR = "\x1b[H\x1b[2J"

DESCRIPTION = (
    f"Shows this computer, its {join_labels('and')} processes and, where they are connected, what "
    "their allocators hold."
)
EXAMPLES = (
    "mpsbar status --watch 2",
    "mpsbar status --json | jq '.workers[].held'",
    "mpsbar status --host mac1 --host mac2",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print one JSON object, not a table")
    shape.add_argument(
        "--format", metavar="TEXT", help="print one line for status bars, such as '{held} {gpu}'"
    )
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=parse_seconds,
        const=2.0,
        help="repeat until Ctrl-C (default: every 2); with --json one line each time",
    )
    on_hosts.add_host_arguments(parser)


def run(options: argparse.Namespace) -> int:
    if options.host:
        return on_hosts.show_status(options)
    if options.format is not None:
        from mpsbar.cli import status_line

        return status_line.run(options.format)
    if options.watch is None:
        _show(read_snapshot(), options.json)
        return 0
    monitor = make_recorder()
    try:
        _watch(monitor, options.json, options.watch)
    finally:
        monitor.close()
    return 0


def read_snapshot() -> Snapshot:
    """One reading, which writes nothing."""
    monitor = Monitor()
    try:
        return monitor.read_once()
    finally:
        monitor.close()


def make_recorder() -> Monitor:
    """A monitor that also records history, unless the menu bar app does."""
    from mpsbar.history.recorder import Recorder
    from mpsbar.system.settings_file import read_settings

    monitor = Monitor(recorder=Recorder(_complain))
    monitor.apply(read_settings().settings)  # an alert that is switched off is not recorded
    return monitor


def _complain(reason: Reason) -> None:
    from mpsbar.ui.text.startup import say_history

    print(f"mpsbar: {say_history(reason)}", file=sys.stderr)


def _watch(monitor: Monitor, as_json: bool, seconds: float) -> None:
    """Repeat until Ctrl-C: in place on a terminal, one after the other in a pipe."""
    in_place = sys.stdout.isatty() and not as_json
    snapshot = monitor.read_once()
    try:
        while True:
            if in_place:
                sys.stdout.write(_HOME_AND_CLEAR)
            _show(snapshot, as_json)
            if not in_place and not as_json:
                print()
            sys.stdout.flush()
            snapshot = _read_after(monitor, seconds)
    except KeyboardInterrupt:
        return


def _read_after(monitor: Monitor, seconds: float) -> Snapshot:
    """Reads in between too: points too far apart show no trend."""
    shown_at = time.monotonic() + seconds
    while True:
        left = shown_at - time.monotonic()
        time.sleep(max(0.0, min(left, _READ_SECONDS)))
        snapshot = monitor.tick()
        if left <= _READ_SECONDS:
            return snapshot


def _show(snapshot: Snapshot, as_json: bool) -> None:
    dtypes = _read_dtypes(snapshot)
    if as_json:
        print(json.dumps(build_status(snapshot, dtypes)))
    else:
        print(render_status(snapshot, is_coloured(), dtypes))


def _read_dtypes(snapshot: Snapshot) -> DtypeHealth:
    """The last probe; without one its code is not even imported."""
    folder = probe_folder()
    if folder is None or not folder.is_dir():
        return NOT_PROBED
    from mpsbar.dtypes.results import find_result
    from mpsbar.dtypes.summary import build_dtypes

    return build_dtypes(find_result(snapshot))
