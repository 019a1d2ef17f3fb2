"""mpsbar free: free the caches of workers, and print what was measured."""

import argparse
import json
from dataclasses import asdict, replace

from mpsbar.cli import on_hosts
from mpsbar.cli.arguments import parse_pid, parse_seconds
from mpsbar.core.actions import CancelFree, Free, Freed, FreeWhenPossible
from mpsbar.monitor import Monitor
from mpsbar.ui.text import outcomes as outcome_text
from mpsbar.ui.text import wording

DESCRIPTION = (
    "Returns the caches of workers to the system. Live tensors stay; the process pauses briefly, "
    "and its next steps may be slower. Exit code 0: all freed (0 bytes too), 1: one was busy or "
    "refused, 2: wrong arguments; with --when-possible also 0 while it waits."
)
EXAMPLES = (
    "mpsbar free 4711",
    "mpsbar free 4711 --when-possible",
    "mpsbar free --all",
    "mpsbar free --all --host mac1 --host mac2",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pids", metavar="PID", nargs="*", type=parse_pid, help="a process in mpsbar status"
    )
    parser.add_argument("--all", action="store_true", help="free every connected worker")
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
        options.refuse("give the PIDs of workers, or --all")
    if options.host and (options.when_possible or options.cancel):
        options.refuse("--when-possible and --cancel are for this computer, not for a --host")
    if options.host:
        if options.pids and len(set(options.host)) > 1:
            options.refuse("a PID belongs to one host: give one --host, or --all")
        return on_hosts.free(options)
    outcomes = _free(None if options.all else list(dict.fromkeys(options.pids)), options)
    if options.json:
        print(json.dumps({"schema": 1, "freed": [asdict(outcome) for outcome in outcomes]}))
    else:
        _print(outcomes)
    fine = ("done", "waiting", "cancelled")
    return 0 if all(outcome.state in fine for outcome in outcomes) else 1


def _free(pids: list[int] | None, options: argparse.Namespace) -> list[Freed]:
    """Free these workers, or every connected one, by the same action as a click in the menu."""
    monitor = Monitor()
    try:
        # Also for named pids: some agents do not know whether they hold the GPU, the scan does.
        snapshot = monitor.tick()
        wanted = [worker.pid for worker in snapshot.workers] if pids is None else pids
        frees = [monitor.perform(_action(pid, options)) for pid in wanted]
        outcomes = [free.result() for free in frees]
        names = snapshot.names
        return [replace(each, name=names.get(each.pid, each.name)) for each in outcomes]
    finally:
        monitor.close()


def _action(pid: int, options: argparse.Namespace) -> Free | FreeWhenPossible | CancelFree:
    if options.when_possible:
        return FreeWhenPossible(pid)
    return CancelFree(pid) if options.cancel else Free(pid, options.timeout)


def _print(outcomes: list[Freed]) -> None:
    if not outcomes:
        print(wording.workers_connected(0))
    for outcome in outcomes:
        name = "" if outcome.name == str(outcome.pid) else f" {outcome.name}"
        print(f"{outcome.pid}{name}: {outcome_text.freed(outcome)}")
    busy = [str(outcome.pid) for outcome in outcomes if outcome.state == "busy"]
    if busy:
        print(wording.how_to_free_later(busy))
