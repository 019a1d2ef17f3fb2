"""Soak: one monitor ticks while workers come and go; objects, descriptors, threads and memory stay flat."""

import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from worker_kit import wait_for

from mpsbar.history.recorder import Recorder
from mpsbar.monitor import Monitor
from trust.faults import NURSERY, list_pids, workers_here
from trust.figures import Figures

SAMPLES = 20


def read_use() -> dict[str, int]:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return {
        "objects": len(gc.get_objects()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "RSS in kB": pages * (os.sysconf("SC_PAGE_SIZE") // 1024),
    }


def soak(seconds: float = 1e9, ticks: int = 10_000, pause: float = 0.0) -> tuple[int, int]:
    """Returns the number of ticks, and how many gave a snapshot without a problem."""
    good = made = 0
    samples: list[dict[str, int]] = []
    end, start = time.monotonic() + seconds, time.monotonic()
    with workers_here() as workers:
        nursery = workers.run(
            [sys.executable, "-c", NURSERY],
            popen={"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL},
        )
        assert nursery.process.stdin is not None
        monitor = Monitor(recorder=Recorder(print))
        number = 0
        while number < ticks and time.monotonic() < end:
            if number % 10 == 0:
                nursery.process.stdin.write(b"2\n")
                nursery.wait_line("made")
                made += 2
            snapshot = monitor.tick()
            good += snapshot.processes is not None and not snapshot.problems
            if snapshot.problems:
                print(f"  tick {number}: {snapshot.problems}")
            pids = list_pids(workers)
            for pid in random.sample(pids, max(0, len(pids) - 6)):
                os.kill(pid, signal.SIGKILL)
            number += 1
            due = number >= ticks * (len(samples) + 1) / SAMPLES
            if due or time.monotonic() - start >= seconds * (len(samples) + 1) / SAMPLES:
                samples.append(read_use())
            time.sleep(pause)
        for pid in list_pids(workers):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not monitor.tick().workers, "the end of all")
        monitor.close()
    print(f"  {number} ticks, {made} workers came and went, {time.monotonic() - start:.0f} s")
    for name in samples[0] if samples else ():
        values = [sample[name] for sample in samples]
        early, late = max(values[2 : SAMPLES // 2] or values), max(values[SAMPLES // 2 :] or values)
        print(
            f"  {name:<12} first {values[0]:>8}  first half at most {early:>8}  second half {late:>8}"
        )
        if late > early * 1.1 + 50:
            return number, 0
    return number, good


def main(seconds: float = 1800.0) -> int:
    figures = Figures("soak")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            {f"MPSBAR_{name}_DIR": f"{folder}/{name}" for name in ("DATA", "CONFIG", "LOG")}
        )
        figures.run("ticks without a problem while workers come and go", lambda: soak(seconds))
    return figures.end()
