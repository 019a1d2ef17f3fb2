"""mpsbar free: give the caches of workers back, and say what was measured."""

import argparse
import json
from dataclasses import asdict

from mpsbar.core.actions import Free, Freed
from mpsbar.monitor import Monitor
from mpsbar.ui.text import outcomes as outcome_text
from mpsbar.ui.text import wording


def run(options: argparse.Namespace) -> int:
    if options.all == bool(options.pids):
        text = (
            "either PIDs or --all, not both"
            if options.all
            else "give the PIDs of workers, or --all"
        )
        options.refuse(text)
    outcomes = _free(None if options.all else list(dict.fromkeys(options.pids)), options.timeout)
    if options.json:
        print(json.dumps({"schema": 1, "freed": [asdict(outcome) for outcome in outcomes]}))
    else:
        _tell(outcomes)
    return 0 if all(outcome.state == "done" for outcome in outcomes) else 1


def _free(pids: list[int] | None, seconds: float) -> list[Freed]:
    """Free these workers, or every connected one, as a click in the menu does."""
    monitor = Monitor()
    try:
        # Needed for named pids too: not every agent knows whether it holds the GPU, the scan does.
        workers = monitor.tick().workers
        named = [worker.pid for worker in workers] if pids is None else pids
        frees = [monitor.perform(Free(pid, seconds)) for pid in named]
        return [free.result() for free in frees]
    finally:
        monitor.close()


def _tell(outcomes: list[Freed]) -> None:
    if not outcomes:
        print(wording.workers_connected(0))
    for outcome in outcomes:
        name = "" if outcome.name == str(outcome.pid) else f" {outcome.name}"
        print(f"{outcome.pid}{name}: {outcome_text.freed(outcome)}")
