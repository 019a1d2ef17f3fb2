"""A training loop under a limit, against the same without one (goal: 1.00 while there is room).

One process, the device in software: windows with and without the limit take turns, set by the agent
as `mpsbar limit` does. With room the allocator never notices; without it every step returns the
cache: that is what a limit costs near its end. CPU time is compared, which other programs disturb
least; on a Mac a tight limit also waits for the GPU, which is not in these figures.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import softmps

WINDOWS, STEPS = 12, 10
CODE = """
import json, sys, time
import torch
from mpsbar.agent.limit import LimitJob
torch.set_num_threads(1)
MiB = 1 << 20
net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).to("mps")
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
torch.manual_seed(0)
x = torch.randn(64, 512, device="mps")
weights = torch.empty(600 * MiB, dtype=torch.uint8, device="mps")
def set_limit(limit):
    job = LimitJob(True, limit)
    answer = None
    while answer is None: answer = job.step()
    assert answer["state"] == "done", answer
def step():
    scratch = torch.empty(520 * MiB, dtype=torch.uint8, device="mps")  # as large activations are
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    del scratch
    other = torch.empty(540 * MiB, dtype=torch.uint8, device="mps")
for _ in range(5): step()
need = torch.mps.driver_allocated_memory()
limits = {"none": None, "with room": need + 1100 * MiB, "tight": need - 300 * MiB}
times = {name: [] for name in limits}
for _ in range(%d):
    for name, limit in limits.items():
        torch.mps.empty_cache()
        set_limit(limit)
        for _ in range(2): step()
        begin = time.process_time()
        for _ in range(%d): step()
        times[name].append(time.process_time() - begin)
        set_limit(None)
print(json.dumps(times))
"""


def run(folder: Path) -> None:
    del folder
    if reason := softmps.why_not():
        print(f"  skipped: {reason}")
        return
    done = subprocess.run(
        [sys.executable, "-c", CODE % (WINDOWS, STEPS)], env=os.environ | {"SOFTMPS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"bench: {done.stderr[-500:]}")
    times = json.loads(done.stdout)
    usual = times.pop("none")
    for name, seconds in times.items():
        ratios = [a / b for a, b in zip(seconds, usual, strict=True)]
        error = statistics.stdev(ratios) / len(ratios) ** 0.5
        step = statistics.median(seconds) / STEPS
        print(
            f"  {name}: {statistics.median(ratios):.3f} ± {error:.3f} ({step * 1e3:.1f} ms a step)"
        )
