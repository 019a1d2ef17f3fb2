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
from contextlib import suppress
from pathlib import Path

from worker_kit import wait_for

from mpsbar.history.recorder import Recorder
from mpsbar.monitor import Monitor
from trust.faults import NURSERY
from trust.figures import Figures
from trust.places import list_pids, workers_here

SAMPLES = 20
TICKS, SECONDS = 10_000, 1800.0
# By how much the second half may be above the first, as a share and as a number. Up to eight workers
# are connected when a sample is taken.
LEEWAY = {
    "objects": (0.03, 500),
    "descriptors": (0.0, 8),
    "threads": (0.0, 1),
    "RSS in kB": (0.03, 1024),
}


def read_use() -> dict[str, int]:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return {
        "objects": len(gc.get_objects()),
        "descriptors": sum(not is_of_living(name) for name in os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "RSS in kB": pages * (os.sysconf("SC_PAGE_SIZE") // 1024),
    }


def is_of_living(descriptor: str) -> bool:
    """Whether it is kept for a process that runs: how many do is up to the rest of the machine."""
    try:
        link = os.readlink(f"/proc/self/fd/{descriptor}")
        if link == "anon_inode:[pidfd]":
            lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii").splitlines()
            return int(next(line.split()[1] for line in lines if line.startswith("Pid:"))) > 0
    except FileNotFoundError:
        return True  # of the listing itself
    parts = link.split("/")
    return parts[-1] == "statm" and Path("/proc", parts[2]).exists()


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # killed before; its socket is not removed yet
            os.kill(pid, signal.SIGKILL)


def find_growth(samples: list[dict[str, int]]) -> list[str]:
    """Names of what was higher in the second half than in the first, whose first fifth is the start-up."""
    half, grown = len(samples) // 2, []
    for name, (share, number) in LEEWAY.items():
        values = [sample[name] for sample in samples]
        early, late = max(values[len(values) // 10 : half] or values), max(values[half:] or values)
        print(f"  {name:<12} first {values[0]:>8}  first half at most {early:>8}  second {late:>8}")
        print(f"    {' '.join(map(str, values))}")
        if late > early * (1 + share) + number:
            grown.append(name)
    return grown


def soak(seconds: float = 0.0, ticks: int = TICKS) -> tuple[int, int]:
    """At least that long and at least that many ticks, evenly spread.

    Returns the number of ticks, and how many gave a snapshot without a problem; none if anything grew.
    """
    good = made = number = 0
    samples: list[dict[str, int]] = []
    start = time.monotonic()
    with workers_here() as workers:
        nursery = workers.run(
            [sys.executable, "-c", NURSERY],
            popen={"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL},
        )
        assert nursery.process.stdin is not None
        monitor = Monitor(recorder=Recorder(print))
        while number < ticks or time.monotonic() < start + seconds:
            if number % 10 == 0:
                nursery.process.stdin.write(b"2\n")
                nursery.wait_line("made")
                made += 2
            snapshot = monitor.tick()
            good += snapshot.processes is not None and not snapshot.problems
            if snapshot.problems:
                print(f"  tick {number}: {snapshot.problems}", flush=True)
            pids = list_pids(workers)
            kill(random.sample(pids, max(0, len(pids) - 6)))
            number += 1
            elapsed = time.monotonic() - start
            share = min(number / ticks, elapsed / seconds if seconds else 1.0)
            if share >= (len(samples) + 1) / SAMPLES:
                samples.append(read_use())
            time.sleep(max(0.0, seconds * number / ticks - elapsed))
        kill(list_pids(workers))
        wait_for(lambda: not monitor.tick().workers, "the end of all")
        monitor.close()
    print(f"  {number} ticks, {made} workers came and went, {time.monotonic() - start:.0f} s")
    grown = find_growth(samples)
    if grown:
        print(f"  not level: {', '.join(grown)}")
    return number, 0 if grown else good


def main(seconds: float = SECONDS) -> int:
    """A shorter time has as many fewer ticks."""
    figures = Figures("soak")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            {f"MPSBAR_{name}_DIR": f"{folder}/{name}" for name in ("DATA", "CONFIG", "LOG")}
        )
        figures.run(
            "ticks without a problem while workers come and go",
            lambda: soak(seconds, round(TICKS * seconds / SECONDS)),
        )
    return figures.end()
