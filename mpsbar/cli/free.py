"""mpsbar free: frees the caches of workers, and prints how much was freed."""

import argparse
import json
from contextlib import closing
from typing import TYPE_CHECKING

from mpsbar.agent.conventions import ASK_SECONDS, WHEN_POSSIBLE_SECONDS
from mpsbar.cli import on_hosts
from mpsbar.cli.arguments import parse_moment, parse_seconds
from mpsbar.cli.targets import find_pids, parse_target, print_outcome
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.actions import CancelFree, Free, Freed, FreeWhenPossible
    from mpsbar.core.snapshot import Snapshot

DESCRIPTION = _(
    "Returns the caches of connected processes to the system. Live tensors stay; a process pauses "
    "briefly, and its next steps may be slower. Exit code 0: all were freed (possibly 0 bytes) or, "
    "with --when-possible, are waiting; 1: one was busy or refused; 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar free 4711",
    "mpsbar free train.py",
    "mpsbar free 4711 --when-possible",
    "mpsbar free --all",
    "mpsbar free --all --host mac1 --host mac2",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "targets",
        metavar="PID|NAME",
        nargs="*",
        type=parse_target,
        help=_(
            "a process that mpsbar status lists; a name, in upper or lower case, means every "
            "connected process of that name"
        ),
    )
    parser.add_argument("--all", action="store_true", help=_("free every connected process"))
    parser.add_argument(
        "--json", action="store_true", help=_("print one JSON object instead of text")
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=parse_seconds,
        default=ASK_SECONDS,
        help=_("how long to wait for an answer (default: {n})").format(n=f"{ASK_SECONDS:g}"),
    )
    later = parser.add_mutually_exclusive_group()
    later.add_argument(
        "--when-possible",
        action="store_true",
        help=_(
            "a busy process frees at the first safe moment, within {n} minutes; returns at once"
        ).format(n=f"{WHEN_POSSIBLE_SECONDS / 60:g}"),
    )
    later.add_argument(
        "--cancel", action="store_true", help=_("cancel a free that --when-possible left waiting")
    )
    parser.add_argument(
        "--started",
        metavar="TIME",
        type=parse_moment,
        help=_(
            "free PID only if its process started at this time (see mpsbar status --json): "
            "PIDs are reused"
        ),
    )
    on_hosts.add_host_arguments(parser)
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    if options.all and options.targets:
        options.refuse(_("either PIDs or names, or --all, not both"))
    if not options.all and not options.targets:
        options.refuse(_("give PIDs or names of connected processes, or --all"))
    if options.started is not None and [type(target) for target in options.targets] != [int]:
        options.refuse(_("--started is for one PID"))
    if hosts := on_hosts.find_hosts(options):
        if len(hosts) > 1 and any(isinstance(target, int) for target in options.targets):
            options.refuse(_("a PID belongs to one host: give one --host, a name, or --all"))
        return on_hosts.free(hosts, options)
    from dataclasses import asdict

    outcomes, snapshot = _free(options)
    if options.json:
        print(json.dumps({"schema": 1, "freed": [asdict(outcome) for outcome in outcomes]}))
    else:
        _print(outcomes, snapshot)
    fine = ("done", "waiting", "cancelled")
    return 0 if all(outcome.state in fine for outcome in outcomes) else 1


def _free(options: argparse.Namespace) -> "tuple[list[Freed], Snapshot]":
    """Frees these workers, or every connected one, by the same action as a click in the menu."""
    from mpsbar.monitor import Monitor
    from mpsbar.system.waiting import wait_for_result

    with closing(Monitor()) as monitor:
        # Also for given PIDs: some agents do not know whether their process uses the GPU, but the
        # scan does.
        snapshot = monitor.tick()
        wanted: dict[int, float | None] = {w.pid: w.started for w in snapshot.workers}
        if not options.all:
            wanted = {pid: wanted.get(pid) for pid in find_pids(options.targets, snapshot)}
        if options.started is not None:
            wanted = {pid: _local_start(pid, options.started) for pid in wanted}
        frees = [monitor.perform(_action(pid, at, options)) for pid, at in wanted.items()]
        return [wait_for_result(free) for free in frees], snapshot


def _local_start(pid: int, meant: float) -> float:
    """Returns our own reading of the start time if it matches `meant`, else `meant`."""
    from mpsbar.core.machine import SAME_START
    from mpsbar.system import this_computer

    try:
        read = this_computer().read_start(pid)
    except OSError:
        return meant
    return read if abs(read - meant) <= SAME_START else meant


def _action(
    pid: int, started: float | None, options: argparse.Namespace
) -> "Free | FreeWhenPossible | CancelFree":
    from mpsbar.core.actions import CancelFree, Free, FreeWhenPossible

    if options.when_possible:
        return FreeWhenPossible(pid, started)
    if options.cancel:
        return CancelFree(pid, started)
    return Free(pid, options.timeout, started)


def _print(outcomes: "list[Freed]", snapshot: "Snapshot") -> None:
    from mpsbar.ui.text import wording
    from mpsbar.ui.text.outcomes import say_freed

    if not outcomes:
        print(wording.workers_connected(0))
    for outcome in outcomes:
        print_outcome(outcome, say_freed(outcome), snapshot)
    later = [str(outcome.pid) for outcome in outcomes if outcome.may_come_later]
    if later:
        print(wording.how_to_free_later(later))
