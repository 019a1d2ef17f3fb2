"""200 workers polled in one tick (goal: under 60 ms of the monitor's CPU)."""

import statistics
import time
from pathlib import Path

from bench.child import running
from mpsbar.monitor import Monitor

NUMBER = 200
ROUNDS = 20
CODE = "import mpsbar, time; mpsbar.attach()\nwhile True: time.sleep(60)"


def run(folder: Path) -> None:
    with running(CODE, NUMBER):
        monitor = Monitor()
        for _ in range(3):
            monitor.tick()
        spent, found = [], []
        for _ in range(ROUNDS):
            start = time.process_time()
            snapshot = monitor.tick()
            spent.append((time.process_time() - start) * 1e3)
            found.append(sum(worker.state == "live" for worker in snapshot.workers))
            time.sleep(0.1)
        monitor.close()
    print(
        f"  {statistics.median(spent):.1f} ms (worst {max(spent):.1f}); {min(found)} of {NUMBER} answered"
    )
