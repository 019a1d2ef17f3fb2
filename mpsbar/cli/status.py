"""mpsbar status: prints the computer and its processes as a table, JSON or one line."""

import argparse
import json
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from mpsbar import snapshot
from mpsbar.agent.frameworks import join_labels
from mpsbar.cli import on_hosts
from mpsbar.cli.arguments import parse_pid, parse_seconds
from mpsbar.cli.output import (
    is_coloured,
    line_width,
    print_each,
    print_stderr,
    treat_signals_as_ctrl_c,
)
from mpsbar.language import _

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mpsbar.core.findings import DtypeHealth, Reason
    from mpsbar.core.snapshot import Snapshot
    from mpsbar.monitor import Monitor

_READ_SECONDS = 20.0
# For --format: several status bars may ask every second, and a reading costs more than the rest.
_FRESH_SECONDS = 2.0
_MAX_LINE_BYTES = 16 * 1024

DESCRIPTION = _(
    "Shows this computer, its {frameworks} processes and, where they are connected, what "
    "their allocators hold. With a PID: a line about that process every 2 seconds, until it ends."
).format(frameworks=join_labels(_("and")))
EXAMPLES = (
    "mpsbar status --watch 2",
    "mpsbar status --wide",
    "mpsbar status 4711",
    "mpsbar status --json | jq '.workers[].held'",
    "mpsbar status --host mac1 --host mac2",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pid",
        metavar="PID",
        nargs="?",
        type=parse_pid,
        help=_("follow this process until it ends or you press Ctrl-C"),
    )
    parser.add_argument(
        "--wide",
        action="store_true",
        help=_("show all columns, even if they don't fit in the window"),
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument(
        "--json", action="store_true", help=_("print one JSON object instead of a table")
    )
    shape.add_argument(
        "--format", metavar="TEXT", help=_("print one line for status bars, such as '{held} {gpu}'")
    )
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=parse_seconds,
        const=2.0,
        help=_("repeat until Ctrl-C (default: every 2); with --json one line each time"),
    )
    on_hosts.add_host_arguments(parser)
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    given = (options.pid, options.watch, options.host, options.hosts or None)
    if options.format is not None and any(value is not None for value in given):
        options.refuse(
            _(
                "--format prints one line about this computer: it can't be combined with PID, "
                "--watch or --host"
            )
        )
    if hosts := on_hosts.find_hosts(options):
        return on_hosts.show_status(hosts, options)
    if options.format is not None:
        return _show_line(options.format)
    if options.pid is not None:
        from mpsbar.cli.follow import follow

        return follow(options.pid, options.json, options.watch)
    if options.watch is None:
        print(_render(snapshot(), options))
        return 0
    treat_signals_as_ctrl_c()
    with closing(make_recorder()) as monitor:
        print_each(_watch(monitor, options), options.json)
    return 0


def make_recorder() -> "Monitor":
    """Returns a monitor that also records history, unless the menu bar app does.

    It never frees automatically: a command that only watches must not change anything, and a
    service would keep old settings.
    """
    from mpsbar.history.recorder import Recorder
    from mpsbar.monitor import Monitor
    from mpsbar.system.settings_file import read_settings

    monitor = Monitor(recorder=Recorder(_complain))
    monitor.apply(read_settings().settings)  # so that an alert that is off isn't recorded
    return monitor


def _complain(reason: "Reason") -> None:
    from mpsbar.ui.text.startup import say_history

    print_stderr(f"mpsbar: {say_history(reason)}")


def _watch(monitor: "Monitor", options: argparse.Namespace) -> "Iterator[str]":
    snapshot = monitor.read_once()
    while True:
        yield _render(snapshot, options)
        snapshot = read_after(monitor, options.watch)


def read_after(monitor: "Monitor", seconds: float) -> "Snapshot":
    """Returns the reading after `seconds`. It also reads in between: points too far apart show no
    trend."""
    shown_at = time.monotonic() + seconds
    while True:
        left = shown_at - time.monotonic()
        time.sleep(max(0.0, min(left, _READ_SECONDS)))
        snapshot = monitor.tick()
        if left <= _READ_SECONDS:
            return snapshot


def _render(snapshot: "Snapshot", options: argparse.Namespace) -> str:
    dtypes = _read_dtypes(snapshot)
    if options.json:
        from mpsbar.ui.text.status_json import build_status

        return json.dumps(build_status(snapshot, dtypes))
    from mpsbar.ui.status_table import render_status

    width = None if options.wide else line_width()
    return render_status(snapshot, is_coloured(), dtypes, width)


def _read_dtypes(snapshot: "Snapshot") -> "DtypeHealth":
    """Returns the result of the last probe; if there is none, its code isn't imported."""
    from mpsbar.core.findings import NOT_PROBED
    from mpsbar.system.paths import probe_folder

    folder = probe_folder()
    if folder is None or not folder.is_dir():
        return NOT_PROBED
    from mpsbar.dtypes.results import find_result
    from mpsbar.dtypes.summary import build_dtypes

    return build_dtypes(find_result(snapshot))


def _show_line(text: str) -> int:
    """Prints the line of --format, from a file if it was asked for a moment ago."""
    from mpsbar.system.paths import status_line_file
    from mpsbar.ui.text.status_line import build_fields, parse_format, render_line

    parsed = parse_format(text)
    fields = _read_fields(status_line_file())
    if fields is None:
        from mpsbar.monitor import Monitor  # its import takes longer than the rest

        with closing(Monitor()) as monitor:
            fields = build_fields(monitor.tick())
        _write_fields(status_line_file(), fields)
    print(render_line(parsed, fields))
    return 0


def _read_fields(path: "Path") -> dict[str, str] | None:
    """Returns None if there are none, or if they are old or another user's."""
    from mpsbar.system.files import read_own_json
    from mpsbar.ui.text.status_line import FIELDS

    def parse(record: Any) -> dict[str, str] | None:
        age = time.time() - float(record["time"])
        fields = {str(name): str(value) for name, value in record["fields"].items()}
        # If the clock was set back, the file is from the future; it counts as old too.
        return fields if 0 <= age <= _FRESH_SECONDS and fields.keys() == FIELDS.keys() else None

    return read_own_json(path, _MAX_LINE_BYTES, parse)


def _write_fields(path: "Path", fields: dict[str, str]) -> None:
    from mpsbar.system.files import write_own_json

    with suppress(OSError):  # the next call takes its own reading
        write_own_json(path, {"time": time.time(), "fields": fields})
