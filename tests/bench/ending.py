"""The record that the agent leaves when its host ends, in fresh processes (goal: under 2 ms).

A process ends once: what counts is the first time, when nothing of it is in the CPU's caches, with
the modules of torch and transformers to look at.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

import softmps

ROUNDS = 10
CODE = """
import sys, time
import torch
from transformers import AutoModelForCausalLM, Trainer
import mpsbar
assert mpsbar.attach()
x = torch.randn(500, 500, device=sys.argv[1])
for _ in range(20):
    x = (x @ x).softmax(0)  # the work of a host: what it does is in the caches, not the agent
from mpsbar.agent import fallback_warnings, last_words

def time_call(module, name):
    call = getattr(module, name)
    def timed(*arguments):
        wall, cpu = time.perf_counter(), time.thread_time()
        result = call(*arguments)
        spent[name] = (time.perf_counter() - wall, time.thread_time() - cpu, result)
        return result
    setattr(module, name, timed)

def report(*arguments):
    is_left = leave(*arguments)
    wall, cpu, _ = spent["leave"]
    looked, _, found = spent.get("find_first", (0.0, 0.0, None))
    print(wall * 1e3, cpu * 1e3, looked * 1e3, found == fallback_warnings.CUT, len(sys.modules))
    return is_left

spent = {}
time_call(fallback_warnings, "find_first")
time_call(last_words, "leave")
leave, last_words.leave = last_words.leave, report
"""


def run(folder: Path) -> None:
    devices = {"cpu": {}, "mps": {"SOFTMPS": "1"}}
    if reason := softmps.why_not():
        print(f"  no MPS: {reason}")
        del devices["mps"]
    for device, extra in devices.items():
        rounds = [measure(device, extra) for _ in range(ROUNDS)]
        wall, cpu, look, cut, modules = zip(*rounds, strict=True)
        print(
            f"  {device}: {statistics.median(wall):.2f} ms ({min(wall):.2f} to {max(wall):.2f}), "
            f"of CPU {statistics.median(cpu):.2f} (least {min(cpu):.2f}), the look for fallbacks "
            f"{statistics.median(look):.2f}, cut {sum(cut)} times (median of {ROUNDS}, "
            f"{max(modules)} modules)",
            flush=True,
        )


def measure(device: str, extra: dict[str, str]) -> tuple[float, float, float, bool, int]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, device], env=os.environ | extra, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    wall, cpu, look, cut, modules = done.stdout.split()
    return float(wall), float(cpu), float(look), cut == "True", int(modules)
