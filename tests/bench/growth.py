"""What 10,000 ticks leave behind, with 8 workers (goal: no object)."""

import gc
import time
import tracemalloc
from functools import partial
from pathlib import Path

import psutil

import mpsbar.monitor
from bench.child import running
from bench.tick import WORKER, WORKERS
from mpsbar.monitor import Monitor

WARM_UP, LONG_RUN = 1000, 10_000


def run(folder: Path) -> None:
    with running(WORKER, WORKERS):
        monitor = Monitor()
        for _ in range(3):
            monitor.tick()
            time.sleep(2.0)
        _print_growth(monitor)
        monitor.close()


class _Hurry:
    """Two seconds pass with every tick, so that all that is kept for minutes is full soon."""

    def __init__(self) -> None:
        self.now = time.time()
        self.monotonic, self.sleep, self.perf_counter = (
            time.monotonic,
            time.sleep,
            time.perf_counter,
        )

    def time(self) -> float:
        self.now += 2.0
        return self.now


def _print_growth(monitor: Monitor) -> None:
    """Without waiting for the workers, whose agents answer ten times a second at most."""
    monitor._workers.poll = partial(monitor._workers.poll, seconds=0.0)  # type: ignore[method-assign]
    mpsbar.monitor.time = _Hurry()  # type: ignore[assignment]
    try:
        tracemalloc.start()
        _tick_often(monitor, WARM_UP)
        before = _measure()
        _tick_often(monitor, LONG_RUN)
        more, grown, resident = (b - a for a, b in zip(before, _measure(), strict=True))
    finally:
        tracemalloc.stop()
        mpsbar.monitor.time = time
    print(
        f"  after {LONG_RUN} more ticks: {more:+d} objects, {grown / 1024:+.1f} kB allocated,"
        f" {resident / 1024:+.0f} kB resident"
    )


def _tick_often(monitor: Monitor, number: int) -> None:
    for _ in range(number):
        monitor.tick()


def _measure() -> tuple[int, int, int]:
    gc.collect()
    resident = psutil.Process().memory_info().rss
    return len(gc.get_objects()), tracemalloc.get_traced_memory()[0], resident
