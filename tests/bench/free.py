"""From the click to the bytes being free, on idle workers (goal: under 50 ms)."""

import statistics
import time
from pathlib import Path

import softmps

from bench.child import running
from mpsbar.workers.request import free_worker

ROUNDS = 20
# A person's clicks. Twenty in a row would measure the agent's pace, ten rounds of answers a second,
# of which a click takes two: about 0.2 s each then.
BETWEEN_CLICKS = 0.5
MPS = """
import torch, queue, mpsbar
a = torch.ones(1 << 20, device="mps")
mpsbar.attach()
queue.Queue().get()
"""
LOOP = """
import torch, asyncio, mpsbar
a = torch.ones(1 << 20, device="mps")
mpsbar.attach()
asyncio.run(asyncio.Event().wait())
"""
MLX = """
import mlx.core as mx, mpsbar, time
a = mx.ones((1 << 20,)); mx.eval(a)
mpsbar.attach()
while True: time.sleep(60)
"""


def run(folder: Path) -> None:
    kinds = {"MLX, main in time.sleep": (MLX, {})}
    if softmps.why_not() is None:
        kinds["MPS (software), main in queue.get"] = (MPS, {"SOFTMPS": "1"})
        kinds["MPS (software), idle event loop"] = (LOOP, {"SOFTMPS": "1"})
    for name, (code, extra) in kinds.items():
        with running(code, **extra) as (child,):
            time.sleep(0.5)
            times = [measure(child.pid) for _ in range(ROUNDS)]
        print(f"  {name}: {statistics.median(times):.1f} ms (worst {max(times):.1f} of {ROUNDS})")


def measure(pid: int) -> float:
    time.sleep(BETWEEN_CLICKS)
    start = time.perf_counter()
    outcome = free_worker(pid)
    milliseconds = (time.perf_counter() - start) * 1e3
    if outcome.state != "done":
        raise SystemExit(f"bench: {outcome}")
    return milliseconds
