"""mpsbar status: one look, or one after the other."""

import argparse
import json
import os
import sys
import time

from mpsbar.core.findings import NOT_PROBED, DtypeHealth, Reason
from mpsbar.core.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.system.paths import probe_folder
from mpsbar.ui.text.status import render_status
from mpsbar.ui.text.status_json import build_status

_LOOK_SECONDS = 20.0
_HOME_AND_CLEAR = "\x1b[H\x1b[2J"


def run(options: argparse.Namespace) -> int:
    if options.format is not None:
        from mpsbar.cli import status_line

        return status_line.run(options.format)
    # One look leaves nothing behind; who stays also keeps what was seen, where no menu bar does.
    monitor = Monitor() if options.watch is None else make_recording_monitor()
    try:
        if options.watch is None:
            _show(monitor.read_once(), options.json)
        else:
            _watch(monitor, options.json, options.watch)
    finally:
        monitor.close()
    return 0


def make_recording_monitor() -> Monitor:
    from mpsbar.history.recorder import Recorder
    from mpsbar.system.settings_file import read_settings

    monitor = Monitor(recorder=Recorder(_complain))
    monitor.apply(read_settings().settings)  # an alert that is switched off is not recorded
    return monitor


def _complain(reason: Reason) -> None:
    from mpsbar.ui.text.startup import say_history

    print(f"mpsbar: {say_history(reason)}", file=sys.stderr)


def _watch(monitor: Monitor, as_json: bool, seconds: float) -> None:
    """Until Ctrl-C: in place on a terminal, one after the other in a pipe."""
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
            snapshot = _look_later(monitor, seconds)
    except KeyboardInterrupt:
        return


def _look_later(monitor: Monitor, seconds: float) -> Snapshot:
    """Looks between the shown ones too: a trend cannot be told from points too far apart."""
    shown_at = time.monotonic() + seconds
    while True:
        left = shown_at - time.monotonic()
        time.sleep(max(0.0, min(left, _LOOK_SECONDS)))
        snapshot = monitor.tick()
        if left <= _LOOK_SECONDS:
            return snapshot


def _show(snapshot: Snapshot, as_json: bool) -> None:
    dtypes = _read_dtypes(snapshot)
    if as_json:
        print(json.dumps(build_status(snapshot, dtypes)))
    else:
        print(render_status(snapshot, is_coloured(), dtypes))


def _read_dtypes(snapshot: Snapshot) -> DtypeHealth:
    """Who never probed does not wait for the import of what would read it."""
    folder = probe_folder()
    if folder is None or not folder.is_dir():
        return NOT_PROBED
    from mpsbar.dtypes.results import find_result
    from mpsbar.dtypes.summary import build_dtypes

    return build_dtypes(find_result(snapshot))


def is_coloured() -> bool:
    """On a terminal, unless the user wants none (no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stdout.isatty()
