"""mpsbar why: prints how runs ended, newest first, each with the evidence and what to do next."""

import argparse
import json
import time

from mpsbar.cli import on_hosts
from mpsbar.cli.arguments import parse_whole
from mpsbar.cli.output import print_stderr
from mpsbar.core.naming import printable
from mpsbar.language import _, ngettext

DESCRIPTION = _(
    "Shows how runs ended: finished, raised an exception, ran out of memory, were killed, crashed, "
    "newest first, each with its certainty, the evidence and next steps. Runs that ended while "
    "mpsbar was running are known best; for others it uses the records they left. Exit code 0: "
    "something was found, 1: nothing, 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar why",
    "mpsbar why train.py",
    "mpsbar why 4711 --json",
    "mpsbar why --host mac1 --host mac2",
)
_MAX_ENDS = 500
_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which", metavar="PID|NAME", nargs="?", help=_("only this process, or those of this name")
    )
    parser.add_argument("--json", action="store_true", help=_("print a JSON list, newest first"))
    parser.add_argument(
        "-n", "--number", metavar="N", type=_parse_number, default=_SHOWN,
        help=_("how many to show (default: {n})").format(n=_SHOWN),
    )  # fmt: skip
    on_hosts.add_host_arguments(parser)


def _parse_number(text: str) -> int:
    return parse_whole(text, _MAX_ENDS, _("not a number from 1 to {most}: {text!r}"))


def run(options: argparse.Namespace) -> int:
    if hosts := on_hosts.find_hosts(options):
        return on_hosts.why(hosts, options)
    from mpsbar.cli.ended_runs import build_json, choose, render
    from mpsbar.end_reader import read_all_ends
    from mpsbar.history.retention import KEEP_DAYS

    problems: list[str] = []
    ends = choose(read_all_ends(time.time(), problems.append), options.which)
    for problem in problems:
        text = _("mpsbar: the history can't be read, so runs may be missing here: {problem}")
        print_stderr(text.format(problem=printable(problem)))
    shown = ends[: options.number]
    if options.json:
        print(json.dumps([build_json(end) for end in shown]))
        return 0 if shown else 1
    if not shown:
        if not problems:
            print_stderr(_say_nothing(options.which, KEEP_DAYS))
        return 1
    print("\n\n".join(render(end) for end in shown))
    if len(ends) > len(shown):
        more = len(ends) - len(shown)
        text = ngettext(
            "{n} more in the last {days} days: mpsbar why -n {all}",
            "{n} more in the last {days} days: mpsbar why -n {all}",
            more,
        )
        print("\n" + text.format(n=more, days=KEEP_DAYS, all=len(ends)))
    return 0


def _say_nothing(which: str | None, days: int) -> str:
    if which is not None:
        return _(
            "mpsbar: no run that ended in the last {n} days matches {name!r}; "
            "to see all: mpsbar why"
        ).format(n=days, name=printable(which, 60))
    return _(
        "mpsbar knows of no run that ended in the last {n} days. To have runs recorded, connect "
        "them: mpsbar run python train.py"
    ).format(n=days)
