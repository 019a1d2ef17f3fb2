"""mpsbar free: give the caches of workers back, and say what was measured."""

import argparse
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from mpsbar.client.free import free_worker
from mpsbar.model.action import Freed
from mpsbar.monitor import Monitor
from mpsbar.views import outcome_words, wording


def run(options: argparse.Namespace) -> int:
    if options.all == bool(options.pids):
        text = (
            "either PIDs or --all, not both"
            if options.all
            else "name the pids of workers, or --all"
        )
        options.refuse(text)
    connected, holders = _look()
    pids = connected if options.all else list(dict.fromkeys(options.pids))

    def free(pid: int) -> Freed:
        return free_worker(pid, holders.get(pid), options.timeout)

    with ThreadPoolExecutor(max_workers=16) as pool:
        outcomes = list(pool.map(free, pids))
    if options.json:
        print(json.dumps({"schema": 1, "freed": [asdict(outcome) for outcome in outcomes]}))
    else:
        _tell(outcomes)
    return 0 if all(outcome.state == "done" for outcome in outcomes) else 1


def _look() -> tuple[list[int], dict[int, bool]]:
    """Who is connected, and who holds the GPU: some agents cannot tell that by themselves."""
    monitor = Monitor()
    try:
        return [worker.pid for worker in monitor.tick().workers], monitor.gpu_clients
    finally:
        monitor.close()


def _tell(outcomes: list[Freed]) -> None:
    if not outcomes:
        print(wording.workers_connected(0))
    for outcome in outcomes:
        name = "" if outcome.name == str(outcome.pid) else f" {outcome.name}"
        print(f"{outcome.pid}{name}: {outcome_words.freed(outcome)}")
