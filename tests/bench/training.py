"""A training loop of ~250 µs steps, polled against not polled (goal: 1.001 at 1 Hz, 1.01 at 100 Hz).

The loop notes when each step ended; the clock is the machine's, so the polls' times can be laid
beside it. Three kinds of windows take turns: the loop is polled, an idle process is polled in its
stead, nothing is polled. The first against the second is what polling does inside the loop; the
first against the third has the monitor's own use of this machine's cores in it as well.

The agent answers a client that asks so often in rounds, and its allowance grows back while it is
left alone. So at 100 Hz each window begins with a lead-in that is not measured, in which the
allowance is used up, and ends with a pause in which late answers cannot fall into the next one.
At 1 Hz what counts is the time lost around one lone poll.

Each of the two rates is measured until the standard error is small against the goal, whatever the
ratio is by then, or until its time is over: a busy computer is not quieter after four minutes.
"""

import contextlib
import os
import random
import socket
import statistics
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from bench.child import running
from mpsbar.agent import protocol

SECONDS = float(os.environ.get("BENCH_SECONDS", "120"))  # at most, for both together
LONE_SHARE = 0.4
LONE_WINDOW = 0.010
DENSE_LEAD, DENSE_WINDOW, DENSE_PAUSE = 1.2, 1.0, 0.3  # ten rounds at once are gone after 1.1 s
LONE_GOAL, DENSE_GOAL = 1.001, 1.01
ENOUGH = 0.1  # the standard error, of what the goal allows
MIN_TRIPLES = 10
CHECK_SECONDS = 5.0
MAX_STEPS = 2_000_000

POLLED, OTHER, NOTHING = KINDS = ("polled", "other", "nothing")
Windows = list[tuple[float, str]]
Times = "array[float]"

IDLE = "import torch, mpsbar, time; mpsbar.attach()\nwhile True: time.sleep(60)"
CODE = """
import mmap, time
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
with open({steps!r}, "r+b") as file:
    ends = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
for count in range(len(ends)):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    ends[count] = time.monotonic()
time.sleep(600)
"""


def run(folder: Path) -> None:
    steps = folder / "steps"
    steps.touch()
    os.truncate(steps, 8 * MAX_STEPS)
    lone_seconds, lone_goal = LONE_SHARE * SECONDS, 1 + (LONE_GOAL - 1) / LONE_WINDOW
    with running(CODE.format(steps=str(steps))) as (loop,), running(IDLE) as (idle,):
        clients = {POLLED: Client(loop.pid), OTHER: Client(idle.pid)}
        lone = measure(steps, poll_lone, clients, LONE_WINDOW, lone_goal, lone_seconds)
        dense = measure(
            steps, poll_dense, clients, DENSE_WINDOW, DENSE_GOAL, SECONDS - lone_seconds
        )
        ends = read_ends(steps)
    step = statistics.median(b - a for a, b in pairwise(ends))
    print(f"  one step: {step * 1e6:.0f} µs (median of {len(ends)})")
    for title, against in (("inside the loop", OTHER), ("all in all", NOTHING)):
        ratio, error = compare(ends, dense, DENSE_WINDOW, against)
        words = judge(ratio, error, DENSE_GOAL)
        print(f"  {title}, at 100 Hz: {ratio:.4f} ± {error:.4f}, {words}", end="")
        ratio, error = compare(ends, lone, LONE_WINDOW, against)
        cost, spread = (ratio - 1) * LONE_WINDOW, error * LONE_WINDOW
        words = judge(1 + cost, spread, LONE_GOAL)
        print(f"; at 1 Hz: {1 + cost:.6f} ± {spread:.6f} ({cost * 1e6:.0f} µs for a poll), {words}")


def judge(ratio: float, error: float, goal: float) -> str:
    if ratio + 2 * error <= goal:
        return "goal met"
    return "goal missed" if ratio - 2 * error > goal else "too noisy to tell"


def read_ends(steps: Path) -> Times:
    """When each step ended, so far: the file is as long as it may become, with zeros at its end."""
    ends = array("d")
    ends.frombytes(steps.read_bytes())
    return ends[: bisect_left(ends, True, key=lambda when: when == 0.0)]


def measure(
    steps: Path,
    poll: "Callable[[dict[str, Client], Windows], None]",
    clients: "dict[str, Client]",
    width: float,
    goal: float,
    seconds: float,
) -> Windows:
    """Windows in threes, until they tell enough or the time is over."""
    windows: Windows = []
    end = time.monotonic() + seconds
    check = time.monotonic() + CHECK_SECONDS
    while time.monotonic() < end:
        poll(clients, windows)
        if len(windows) < 3 * MIN_TRIPLES or time.monotonic() < check:
            continue
        ends = read_ends(steps)
        errors = [compare(ends, windows, width, against)[1] for against in (OTHER, NOTHING)]
        if max(errors) <= ENOUGH * (goal - 1):
            break
        check = time.monotonic() + CHECK_SECONDS
    return windows


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


def poll_dense(clients: dict[str, Client], windows: Windows) -> None:
    for kind in KINDS:
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


def poll_lone(clients: dict[str, Client], windows: Windows) -> None:
    for kind in KINDS:
        time.sleep(random.uniform(0.04, 0.08))
        windows.append((time.monotonic(), kind))
        if client := clients.get(kind):
            client.ask()
    time.sleep(LONE_WINDOW)


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
