"""A steady tick with 500 processes and 8 workers (goals: 1.2 ms of CPU, 40 times less than a plain psutil loop, 300 times less than memory_maps)."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.child import running
from mpsbar.monitor import Monitor
from mpsbar.system import this_computer
from mpsbar.system.scan import Scanner

OTHERS = 500
WORKERS = 8
ROUNDS = 20
WORKER = "import torch, mpsbar, time; mpsbar.attach()\nwhile True: time.sleep(60)"
FIELDS = ["name", "cmdline", "memory_info", "create_time"]


def run(folder: Path) -> None:
    with running(WORKER, WORKERS), crowd(OTHERS):
        first = [_first_scan() for _ in range(7)]
        monitor = Monitor()
        _warm_up(monitor)
        _print_ratios(monitor)
        _print_ends(monitor)
        print(
            f"  first scan of {len(psutil.pids())} processes: {_spread(first)} (goal: under 60 ms)"
        )
        monitor.close()


@contextmanager
def crowd(number: int) -> Iterator[None]:
    """Half are programs of a few mappings, half are Pythons without torch."""
    code = "import json, time; time.sleep(36000)"
    commands = (["sleep", "36000"], [sys.executable, "-c", code])
    processes = [subprocess.Popen(commands[index % 2]) for index in range(number)]
    time.sleep(20)  # 250 Pythons on two cores have to come up and fall asleep
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _warm_up(monitor: Monitor) -> None:
    """Until everyone has been asked twice: a steady tick is one of those that follow."""
    for _ in range(40):
        monitor.tick()
        time.sleep(2.0)


def _print_ratios(monitor: Monitor) -> None:
    """In turns and at the real pace, so that all find the same cold caches; for longer than the
    longest back-off, so that the mean holds all that comes due."""
    quiet, busy, loops, maps = [], [], [], []
    for round_ in range(ROUNDS):
        quiet.append(_cpu(monitor.tick))
        time.sleep(1.0)
        loops.append(_cpu(_psutil_loop))
        subprocess.run(["true"], check=True)  # someone new: the next tick lists all processes
        time.sleep(1.0)
        busy.append(_cpu(monitor.tick))
        if not round_ % 10:
            maps.append(_cpu(_psutil_maps))
        time.sleep(1.0)
    found, workers = monitor.latest.processes or (), monitor.latest.workers
    print(f"  {len(found)} processes with torch found, {len(workers)} of them connected")
    print(f"  psutil {', '.join(FIELDS)}: {_spread(loops)}; memory_maps: {_spread(maps)}")
    for name, ticks in (("nobody new", quiet), ("someone new", busy)):
        spent = statistics.mean(ticks)
        print(
            f"  tick with {name}: {_spread(ticks)}, mean {spent * 1e3:.2f} (goal: 1.2); psutil loop / tick"
            f" {statistics.mean(loops) / spent:.0f} (goal: 40), memory_maps / tick"
            f" {statistics.mean(maps) / spent:.0f} (goal: 300)"
        )


def _print_ends(monitor: Monitor) -> None:
    """What a tick does for ends while none comes: the same calls once more."""
    ends, snapshot = monitor._ends, monitor.latest
    assert ends is not None

    def watch() -> None:
        ends.poll()
        ends.conditions.note_reset(snapshot)
        ends.recheck(snapshot.time)
        ends.follow(snapshot)

    spent = statistics.median(_cpu(watch) for _ in range(200))
    print(f"  of it for ends: {spent * 1e6:.0f} µs, {len(snapshot.processes or ())} are watched")


def _psutil_loop() -> None:
    for process in psutil.process_iter():
        try:
            process.as_dict(FIELDS)
        except psutil.Error:
            continue


def _psutil_maps() -> None:
    for process in psutil.process_iter():
        try:
            any("libtorch" in entry.path for entry in process.memory_maps(grouped=False))
        except psutil.Error:
            continue


def _first_scan() -> float:
    scanner = Scanner(this_computer())
    start = time.perf_counter()
    scanner.scan(60)
    spent = time.perf_counter() - start
    scanner.close()
    return spent


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values) * 1e3:.2f} ms ({min(values) * 1e3:.2f} to {max(values) * 1e3:.2f})"
