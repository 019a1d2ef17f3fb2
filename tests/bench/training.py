"""A training loop of ~250 µs steps, polled against not polled (goal: 1.001 at 1 Hz, 1.01 at 100 Hz).

The loop notes when each step ended; the clock is the machine's, so the polls' times can be laid
beside it. Three kinds of windows take turns: the loop is polled, an idle process is polled in its
stead, nothing is polled. The first against the second is what polling does inside the loop; the
first against the third has the monitor's own use of this machine's cores in it as well.

The agent answers a client that asks so often in rounds, and its allowance grows back while it is
left alone. So at 100 Hz each window begins with a lead-in that is not measured, in which the
allowance is used up, and ends with a pause in which late answers cannot fall into the next one.
At 1 Hz what counts is the time lost around one lone poll.
"""

import contextlib
import os
import random
import socket
import statistics
import time
from array import array
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

from bench.child import running
from mpsbar.agent import protocol

SECONDS = float(os.environ.get("BENCH_SECONDS", "120"))
LONE_WINDOW = 0.010
DENSE_LEAD, DENSE_WINDOW, DENSE_PAUSE = 1.2, 1.0, 0.3  # ten rounds at once are gone after 1.1 s

IDLE = "import torch, mpsbar, time; mpsbar.attach()\nwhile True: time.sleep(60)"
CODE = """
import sys, time
from array import array
import torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(32, 32)
import mpsbar
mpsbar.attach()
from mpsbar.agent.progress import optimizer_steps
optimizer_steps.count_steps(is_early=True)
assert optimizer_steps._counts_steps  # the hook of the optimizer is a part of what is measured
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
    code = CODE.format(seconds=2 * SECONDS + 5, out=str(out))
    with running(code) as (loop,), running(IDLE) as (idle,):
        clients = {POLLED: Client(loop.pid), OTHER: Client(idle.pid)}
        dense, lone = poll_dense(clients), poll_lone(clients)
        done = Path(f"{out}.done")
        while not done.exists():
            time.sleep(0.1)
    ends = array("d")
    ends.frombytes(done.read_bytes())
    step = statistics.median(b - a for a, b in pairwise(ends))
    print(f"  one step: {step * 1e6:.0f} µs (median of {len(ends)})")
    for title, against in (("inside the loop", OTHER), ("all in all", NOTHING)):
        ratio, error = compare(ends, dense, DENSE_WINDOW, against)
        print(f"  {title}, at 100 Hz: {ratio:.4f} ± {error:.4f}", end="")
        ratio, error = compare(ends, lone, LONE_WINDOW, against)
        cost, spread = (ratio - 1) * LONE_WINDOW, error * LONE_WINDOW
        print(f"; at 1 Hz: {1 + cost:.6f} ± {spread:.6f} ({cost * 1e6:.0f} µs for a poll)")


POLLED, OTHER, NOTHING = KINDS = ("polled", "other", "nothing")
Windows = list[tuple[float, str]]


class Client:
    """One connection, one question at a time, nothing else."""

    def __init__(self, pid: int) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"{os.environ['MPSBAR_RUN_DIR']}/{pid}.sock")
        self.request = protocol.request(1, "stats")

    def ask(self) -> None:
        self.send()
        self.socket.recv(65536)

    def send(self) -> None:
        self.socket.sendall(self.request)

    def drain(self) -> None:
        """Take the answers that are there; none is waited for, so that the rate is kept."""
        with contextlib.suppress(BlockingIOError):
            while self.socket.recv(65536, socket.MSG_DONTWAIT):
                pass


def poll_dense(clients: dict[str, Client]) -> Windows:
    windows: Windows = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        kind = KINDS[len(windows) % 3]
        start = time.monotonic()
        windows.append((start + DENSE_LEAD, kind))
        for tick in range(round(100 * (DENSE_LEAD + DENSE_WINDOW))):
            if client := clients.get(kind):
                client.send()
                client.drain()
            time.sleep(max(0.0, start + (tick + 1) * 0.01 - time.monotonic()))
        time.sleep(DENSE_PAUSE)
        for client in clients.values():
            client.drain()
    return windows


def poll_lone(clients: dict[str, Client]) -> Windows:
    windows: Windows = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(random.uniform(0.04, 0.08))
        windows.append((time.monotonic(), KINDS[len(windows) % 3]))
        if client := clients.get(windows[-1][1]):
            client.ask()
    return windows


Times = "array[float]"


def compare(ends: Times, windows: Windows, width: float, against: str) -> tuple[float, float]:
    """How much longer the same work takes in polled windows, triple by triple; standard error."""
    triples = [dict(zip(KINDS, rates, strict=True)) for rates in batched(ends, windows, width)]
    plain = statistics.mean(triple[NOTHING] for triple in triples)
    lost = trim([(triple[against] - triple[POLLED]) / plain for triple in triples])
    return 1 + statistics.mean(lost), statistics.stdev(lost) / len(lost) ** 0.5


def batched(ends: Times, windows: Windows, width: float) -> list[list[float]]:
    rates = [steps_in(ends, start, start + width) for start, _ in windows]
    return [rates[i : i + 3] for i in range(0, len(rates) - 2, 3)]


def steps_in(ends: Times, start: float, end: float) -> float:
    """Steps done in a window, with the parts of the steps at its edges."""

    def position(when: float) -> float:
        i = min(max(bisect_left(ends, when), 1), len(ends) - 1)
        return i - (ends[i] - when) / (ends[i] - ends[i - 1])

    return position(end) - position(start)


def trim(values: list[float]) -> list[float]:
    """Without the tenth at each end: other programs of this machine had their turn there."""
    cut = len(values) // 10
    return sorted(values)[cut : len(values) - cut]
