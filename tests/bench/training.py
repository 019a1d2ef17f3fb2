"""A training loop of ~250 µs steps, polled against not polled (goal: 1.001 at 1 Hz, 1.01 at 100 Hz).

The loop notes when each step ended; the clock is the machine's, so the polls' times can be laid
beside it. At 100 Hz windows of 0.1 s with and without polls alternate. At 1 Hz what counts is the
time lost around one lone poll: windows that begin with one against windows that do not.
"""

import os
import random
import statistics
import time
from array import array
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

from bench.child import running
from mpsbar.client.workers import Workers

SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
LONE_WINDOW = 0.010

CODE = """
import sys, time
from array import array
import torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(48, 48), torch.nn.ReLU(), torch.nn.Linear(48, 48))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(32, 48)
import mpsbar
mpsbar.attach()
ends = array("d", bytes(8 * 2_000_000))
count, stop = 0, time.monotonic() + {seconds}
while ends[count - 1] < stop:
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    ends[count] = time.monotonic()
    count += 1
with open({out!r}, "wb") as file:
    ends[:count].tofile(file)
import os
os.rename({out!r}, {out!r} + ".done")
time.sleep(600)
"""


def run(folder: Path) -> None:
    out = folder / "steps"
    code = CODE.format(seconds=2 * SECONDS + 3, out=str(out))
    with running(code):
        workers = Workers()
        workers.poll(seconds=5)
        dense = poll_dense(workers)
        lone = poll_lone(workers)
        workers.close()
        done = Path(f"{out}.done")
        while not done.exists():
            time.sleep(0.1)
    ends = array("d")
    ends.frombytes(done.read_bytes())
    step = statistics.median(b - a for a, b in pairwise(ends))
    print(f"  one step: {step * 1e6:.0f} µs (median of {len(ends)})")
    ratio, error = compare(ends, dense, 0.1)
    print(f"  polled at 100 Hz: {ratio:.4f} ± {error:.4f}")
    ratio, error = compare(ends, lone, LONE_WINDOW)
    cost, spread = (ratio - 1) * LONE_WINDOW, error * LONE_WINDOW
    print(f"  polled at   1 Hz: {1 + cost:.6f} ± {spread:.6f} ({cost * 1e6:.0f} µs lost to a poll)")


Windows = list[tuple[float, bool]]


def poll_dense(workers: Workers) -> Windows:
    windows: Windows = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        polled = len(windows) % 2 == 0
        start = time.monotonic()
        windows.append((start, polled))
        for tick in range(10):
            if polled:
                workers.poll(seconds=0.05)
            time.sleep(max(0.0, start + (tick + 1) * 0.01 - time.monotonic()))
    return windows


def poll_lone(workers: Workers) -> Windows:
    windows: Windows = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(random.uniform(0.02, 0.04))
        polled = len(windows) % 2 == 0
        windows.append((time.monotonic(), polled))
        if polled:
            workers.poll(seconds=0.05)
    return windows


def compare(ends: array, windows: Windows, width: float) -> tuple[float, float]:  # type: ignore[type-arg]
    """How much longer the same work takes in polled windows, pair by pair, and its standard error."""
    rates = [steps_in(ends, start, start + width) for start, _ in windows]
    pairs = [
        (rates[i], rates[i + 1]) for i in range(0, len(windows) - 1, 2) if rates[i] and rates[i + 1]
    ]
    plain = statistics.mean(free for _, free in pairs)
    lost = [(free - polled) / plain for polled, free in pairs]
    lost = trim(lost)
    return 1 + statistics.mean(lost), statistics.stdev(lost) / len(lost) ** 0.5


def steps_in(ends: array, start: float, end: float) -> float:  # type: ignore[type-arg]
    """Steps done in a window, with the parts of the steps at its edges."""

    def position(when: float) -> float:
        i = min(max(bisect_left(ends, when), 1), len(ends) - 1)
        return i - (ends[i] - when) / (ends[i] - ends[i - 1])

    return position(end) - position(start)


def trim(values: list[float]) -> list[float]:
    """Without the tenth at each end: other programs of this machine had their turn there."""
    cut = len(values) // 10
    return sorted(values)[cut : len(values) - cut]
