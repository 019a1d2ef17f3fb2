"""A stats answer while ten bars are open (goal: under 60 µs of the agent's own work), and a step.

The agent's thread is not asked over its socket here: what counts is what it does inside the host,
which is the CPU time of the thread that answers. A step is torch's smallest, with and without the
hook that counts it.
"""

import subprocess
import sys
from pathlib import Path

BARS = 10
ANSWERS = """
import io, statistics, sys, time
import torch
from tqdm import tqdm
from mpsbar.agent import methods
from mpsbar.agent.progress.reader import ProgressReader

def cost(call, rounds=30, calls=200):
    spent = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(calls):
            call()
        spent.append((time.thread_time() - start) / calls * 1e6)
    return min(spent), statistics.median(spent)

def show(title, call):
    least, median = cost(call)
    print(f"  {title}: {median:.0f} µs (least {least:.0f})", flush=True)

show("stats without a bar", lambda: methods.stats({}))
bars = [tqdm(total=100, file=io.StringIO()) for _ in range(int(sys.argv[1]))]
for number, bar in enumerate(bars):
    bar.update(number)
reader = ProgressReader()
show(f"reading {len(bars)} bars alone", reader.read)
show(f"stats with {len(bars)} bars", lambda: methods.stats({}))
"""
STEPS = """
import statistics, sys, time
import torch
from mpsbar.agent.progress import optimizer_steps
torch.set_num_threads(1)
model = torch.nn.Linear(2, 2)
model(torch.ones(1, 2)).sum().backward()
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
hooks = vars(sys.modules["torch.optim.optimizer"])["_global_optimizer_post_hooks"]
optimizer_steps.count_steps(is_early=True)
hook = dict(hooks)

def spend(calls=500):
    start = time.thread_time()
    for _ in range(calls):
        optimizer.step()
    return (time.thread_time() - start) / calls * 1e9

spend()
differences, plain = [], []
for _ in range(100):
    hooks.clear()
    without = spend()
    hooks.update(hook)
    plain.append(without)
    differences.append(spend() - without)
print(f"  the hook in a step of {statistics.median(plain) / 1e3:.1f} µs: "
      f"{statistics.median(differences):.0f} ns (median of {len(differences)} pairs)")
"""


def run(folder: Path) -> None:
    for code in (ANSWERS, STEPS):
        subprocess.run([sys.executable, "-c", code, str(BARS)], check=True, cwd=folder)
