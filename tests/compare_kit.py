"""mpsbar.compare in a child process on the software MPS device, with planted faults."""

import json
import os
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
from fork_server import run_beside_mps, run_python
from schema_kit import check
from worker_kit import NO_MPS, ROOT, TIMEOUT

needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

# A small transformer: modules below modules, and operations of a module's own.
NET = """
import json, sys
import torch, torch.nn as nn, torch.nn.functional as F
import mpsbar
torch.set_num_threads(1)
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.qkv, self.out, self.act = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d), nn.GELU()
    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return x + self.act(self.out(F.scaled_dot_product_attention(q, k, v)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.blocks = nn.ModuleList([Block(32) for _ in range(2)])
        self.head = nn.Linear(32, 10)
    def forward(self, numbers):
        x = self.embedding(numbers)
        for block in self.blocks:
            x = block(x)
        return self.head(x.cumsum(1)[:, -1])

def step(model, numbers):
    return F.cross_entropy(model(numbers), numbers[:, 0] % 10)

net, numbers = Net(), torch.randint(0, 50, (4, 7))
"""
# A comparison collects garbage for each dtype: what `import torch` left behind need not be searched.
QUICKLY = "import gc, torch; gc.freeze()\n"
# torch imports it by itself in most comparisons, which takes a second.
LOAD_DYNAMO = run_beside_mps("import torch._dynamo")
OPTIONS = "timing=False, dtypes=['float32', 'float16', 'bfloat16']"
FORWARD = NET + f"print(mpsbar.compare(net, numbers, {OPTIONS}).to_json())\n"
TRAINING = NET + f"print(mpsbar.compare(step, net, numbers, {OPTIONS}).to_json())\n"


def run_script(script, faults="", device="mps", *, after=LOAD_DYNAMO, **variables):
    """The last line that a script printed, as JSON."""
    others = {
        k: v for k, v in os.environ.items() if not k.startswith(("MPSBAR_", "PYTORCH_", "SOFTMPS"))
    }
    cache = {k: v for k, v in os.environ.items() if k == "SOFTMPS_CACHE"}
    ours = {"SOFTMPS": "1" if device == "mps" else "0", "SOFTMPS_FAULTS": faults, "PYTHONPATH": f"{ROOT}:{ROOT}/tests",
            "MPSBAR_DISABLE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}  # fmt: skip
    done = run_python(
        [sys.executable, "-B", "-c", QUICKLY + textwrap.dedent(script)], env=others | cache | ours | variables,
        timeout=4 * TIMEOUT, cwd="/", after=after if device == "mps" else "",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return check("compare", said) if isinstance(said, dict) and "piecewise" in said else said


def run_many(jobs, **options):
    """Each job the arguments of run_script; two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: run_script(*job, **options), jobs))
