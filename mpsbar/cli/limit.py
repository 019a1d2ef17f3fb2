"""mpsbar limit: sets or removes a memory limit of a running worker."""

import argparse
import json
from contextlib import closing

from mpsbar.agent.frameworks import join_limitable
from mpsbar.cli.arguments import explain_limit, parse_pid
from mpsbar.cli.targets import print_outcome
from mpsbar.core.errors import UserError
from mpsbar.language import _

_OFF = "off"

DESCRIPTION = _(
    "Limits the {devices} memory of a running process. {meaning} A limit below what is in use is "
    "refused. A limit that a program set itself can't be read. mpsbar run --limit is more exact, "
    "because it applies from the start. Exit code 0: set, 1: busy or refused, 2: wrong arguments."
).format(devices=join_limitable(_("or")), meaning=explain_limit(is_running=True))
EXAMPLES = (
    "mpsbar limit 4711 24GB",
    "mpsbar limit 4711 75%",
    "mpsbar limit 4711 off",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", metavar="PID", type=parse_pid, help=_("a process in mpsbar status"))
    parser.add_argument(
        "limit",
        metavar="SIZE|off",
        help=_("24GB, 1500MB, a percentage of Metal's budget such as 75%%, or off"),
    )
    parser.add_argument(
        "--json", action="store_true", help=_("print one JSON object instead of text")
    )
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from mpsbar.core.actions import Limit
    from mpsbar.core.health import find_budget
    from mpsbar.core.limits import parse_limit
    from mpsbar.monitor import Monitor
    from mpsbar.system.waiting import wait_for_result

    with closing(Monitor()) as monitor:
        # Some agents do not know whether their process uses the GPU, but the scan does.
        snapshot = monitor.read_once() if "%" in options.limit else monitor.tick()
        workers = tuple(worker for worker in snapshot.workers if worker.pid == options.pid)
        try:
            is_off = options.limit.lower() == _OFF
            limit = None if is_off else parse_limit(options.limit, find_budget(snapshot, workers))
        except UserError as complaint:
            options.refuse(str(complaint))
        started = workers[0].started if workers else None
        outcome = wait_for_result(monitor.perform(Limit(options.pid, limit, started)))
    if options.json:
        print(json.dumps({"schema": 1, "limited": asdict(outcome)}))
    else:
        from mpsbar.ui.text.outcomes import say_limited

        print_outcome(outcome, say_limited(outcome), snapshot)
    return 0 if outcome.state == "done" else 1
