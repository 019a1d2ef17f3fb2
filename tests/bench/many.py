"""1,000 real workers on one computer: the tick, the first scan, a page of the exporter, memory."""

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil

from mpsbar.fleet.exporter import Exporter
from mpsbar.monitor import Monitor

WORKERS, ROUNDS, TIMEOUT = 1000, 15, 120.0
# One import of torch, then forks: they share its memory. Each runs an agent of its own.
CODE = """
import os, sys, time, torch, mpsbar
kept = torch.ones(1 << 18)
for number in range(int(sys.argv[1])):
    if not os.fork():
        mpsbar.attach()
        while True: time.sleep(3600)
time.sleep(3600)
"""


def run(folder: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", CODE, str(WORKERS)], start_new_session=True
    )
    try:
        _wait(Path(os.environ["MPSBAR_RUN_DIR"]))
        _print_ticks()
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


def _wait(run_dir: Path) -> None:
    until = time.monotonic() + TIMEOUT
    while len(list(run_dir.glob("*.sock"))) < WORKERS:
        assert time.monotonic() < until, "the workers did not come up"
        time.sleep(0.5)


def _print_ticks() -> None:
    before = psutil.Process().memory_info().rss
    monitor = Monitor()
    first = _cpu(monitor.tick)
    for _ in range(5):
        time.sleep(2.0)
        monitor.tick()
    exporter, ticks, pages = Exporter(monitor), [], []
    exporter.render()
    for _ in range(ROUNDS):
        time.sleep(2.0)
        ticks.append(_cpu(monitor.tick))
        pages.append(_cpu(exporter.render))
    page, workers = exporter.render(), monitor.latest.workers
    answered = sum(worker.state == "live" for worker in workers)
    grown = (psutil.Process().memory_info().rss - before) / 2**20
    series = sum(not line.startswith(b"#") for line in page.splitlines())
    print(f"  {len(workers)} workers, {answered} answered; the first tick {first:.0f} ms of CPU")
    print(
        f"  then a tick {statistics.median(ticks):.0f} ms of CPU ({min(ticks):.0f} to {max(ticks):.0f}),"
        f" a page {statistics.median(pages):.0f} ms ({len(page) / 1e6:.2f} MB, {series} series);"
        f" the monitor and exporter {grown:.0f} MB (load {os.getloadavg()[0]:.0f})"
    )
    monitor.close()


def _cpu(work) -> float:  # type: ignore[no-untyped-def]
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)
