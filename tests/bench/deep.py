"""`mpsbar probe --deep` on the CPU (goal: all operations × 12 dtypes within 40 s; 20 times the rate of sample_inputs()).

The whole probe as the command runs it; then both ways to a first sample, on the same cells in turn, in one child.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from mpsbar.dtypes.deep_runner import DeepRunner

# Every tenth operation: sample_inputs() alone would take minutes for all of them.
PEER = """
import itertools, json, os, sys, time, types
os.nice(19)
sys.modules.setdefault("expecttest", types.ModuleType("expecttest")).TestCase = object
import torch
from torch.testing._internal.common_methods_invocations import op_db
public = direct = cells = 0
def first(make):
    start = time.perf_counter()
    try:
        list(itertools.islice(make(), 1))
    except Exception:
        return None
    return time.perf_counter() - start
for op in op_db[::10]:
    for dtype in (torch.float32, torch.float16, torch.int64):
        ways = [lambda: op.sample_inputs("cpu", dtype), lambda: op.sample_inputs_func(op, "cpu", dtype, False)]
        took = [first(way) for way in ways]
        if None not in took:
            public, direct, cells = public + took[0], direct + took[1], cells + 1
print(json.dumps([public, direct, cells]))
"""


def run(folder: Path) -> None:
    os.environ["MPSBAR_DATA_DIR"] = str(folder / "data")
    probe = DeepRunner([sys.executable], "cpu", restart=True).run(lambda progress: None)
    if probe.ended != "ok" or not probe.seconds:
        raise SystemExit(f"bench: the deep probe ended as {probe.ended}: {probe.error}")
    print(
        f"  {len(probe.cells)} cells in {probe.seconds:.1f} s: {len(probe.cells) / probe.seconds:.0f} a second"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEER], stdout=subprocess.PIPE, text=True, check=True
    )
    public, direct, cells = json.loads(done.stdout.splitlines()[-1])
    print(f"  a first sample: {1e3 * public / cells:.2f} ms by sample_inputs(), {1e3 * direct / cells:.2f} ms"
          f" by sample_inputs_func (mean of {cells} cells): {public / direct:.0f} times the rate")  # fmt: skip
