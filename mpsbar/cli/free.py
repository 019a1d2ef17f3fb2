"""mpsbar free: free the caches of workers, and print what was measured."""

import argparse
import json
from typing import TYPE_CHECKING

from mpsbar.cli import on_hosts
from mpsbar.cli.arguments import parse_pid, parse_seconds

if TYPE_CHECKING:
    from mpsbar.core.actions import CancelFree, Free, Freed, FreeWhenPossible

DESCRIPTION = (
    "Returns the caches of connected processes to the system. Live tensors stay; a process pauses "
    "briefly, and its next steps may be slower. Exit code 0: all freed (0 bytes too; with "
    "--when-possible also: it waits), 1: one was busy or refused, 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar free 4711",
    "mpsbar free 4711 --when-possible",
    "mpsbar free --all",
    "mpsbar free --all --host mac1 --host mac2",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pids", metavar="PID", nargs="*", type=parse_pid, help="a process that mpsbar status lists"
    )
    parser.add_argument("--all", action="store_true", help="free every connected process")
    parser.add_argument("--json", action="store_true", help="print one JSON object, not text")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=parse_seconds,
        default=30.0,
        help="how long to wait for an answer (default: 30)",
    )
    later = parser.add_mutually_exclusive_group()
    later.add_argument(
        "--when-possible",
        action="store_true",
        help="a busy worker frees at the first safe moment, within 10 minutes; returns at once",
    )
    later.add_argument(
        "--cancel", action="store_true", help="end a --when-possible that still waits"
    )
    on_hosts.add_host_arguments(parser)
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    if options.all and options.pids:
        options.refuse("either PIDs or --all, not both")
    if not options.all and not options.pids:
        options.refuse("give the PIDs of connected processes, or --all")
    if options.host and (options.when_possible or options.cancel):
        options.refuse("--when-possible and --cancel are for this computer, not for a --host")
    if options.host:
        if options.pids and len(set(options.host)) > 1:
            options.refuse("a PID belongs to one host: give one --host, or --all")
        return on_hosts.free(options)
    from dataclasses import asdict

    outcomes = _free(None if options.all else list(dict.fromkeys(options.pids)), options)
    if options.json:
        print(json.dumps({"schema": 1, "freed": [asdict(outcome) for outcome in outcomes]}))
    else:
        _print(outcomes)
    fine = ("done", "waiting", "cancelled")
    return 0 if all(outcome.state in fine for outcome in outcomes) else 1


def _free(pids: list[int] | None, options: argparse.Namespace) -> "list[Freed]":
    """Free these workers, or every connected one, by the same action as a click in the menu."""
    from dataclasses import replace

    from mpsbar.monitor import Monitor

    monitor = Monitor()
    try:
        # Also for named pids: some agents do not know whether they hold the GPU, the scan does.
        snapshot = monitor.tick()
        wanted: dict[int, float | None] = {each.pid: each.started for each in snapshot.workers}
        if pids is not None:
            wanted = dict.fromkeys(pids)
        frees = [monitor.perform(_action(pid, at, options)) for pid, at in wanted.items()]
        outcomes = [free.result() for free in frees]
        names = snapshot.names
        return [replace(each, name=names.get(each.pid, each.name)) for each in outcomes]
    finally:
        monitor.close()


def _action(
    pid: int, started: float | None, options: argparse.Namespace
) -> "Free | FreeWhenPossible | CancelFree":
    from mpsbar.core.actions import CancelFree, Free, FreeWhenPossible

    if options.when_possible:
        return FreeWhenPossible(pid, started)
    return CancelFree(pid) if options.cancel else Free(pid, options.timeout, started)


def _print(outcomes: "list[Freed]") -> None:
    from mpsbar.ui.text import wording
    from mpsbar.ui.text.outcomes import freed

    if not outcomes:
        print(wording.workers_connected(0))
    for outcome in outcomes:
        name = "" if outcome.name == str(outcome.pid) else f" {outcome.name}"
        print(f"{outcome.pid}{name}: {freed(outcome)}")
    busy = [str(outcome.pid) for outcome in outcomes if outcome.state == "busy"]
    if busy:
        print(wording.how_to_free_later(busy))
