"""Random workloads under a limit: what is held, that nothing live is lost, and the same results."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from thorough import two_sizes
from worker_kit import NO_MPS, ROOT

from mpsbar.core.limits import HEAP, find_watermarks
from mpsbar.core.torch_facts import HIGH, LOW

MiB = 1 << 20
BUDGET = 4096 * MiB
LIMIT = 2600 * MiB
# One heap of torch for small and middle sizes: above the low watermark large ones are exact.
SMALL_HEAP = 32 * MiB

# Takes and drops tensors and computes as told, in a process of its own; each tensor is marked at
# both ends and in the middle, and read at every step. Prints the largest excess over the limit, and
# all that was read and computed, to the bit.
CHILD = """
import json, sys
from mpsbar.agent.limit import LimitJob
from mpsbar.agent.backends import mlx as mlx_backend, mps as mps_backend

def run(take, compute, read, drop_all, held, live, limit, steps):
    blocks, seen, results, refused, excess = {}, [], [], 0, 0
    for number, (kind, value) in enumerate(steps):
        if kind in ("take", "compute"):
            try:
                if kind == "take": blocks[number] = take(value, number % 251)
                else: results.append(compute(value).hex())
            except RuntimeError as error:
                if "out of memory" not in str(error): raise
                refused += 1
        elif blocks:
            blocks.pop(sorted(blocks)[value % len(blocks)])
        if limit is not None and live() <= limit: excess = max(excess, held() - limit)
        for key, block in blocks.items():
            marks = read(block)
            assert marks == [key % 251] * 3, (key, marks)
        seen.append(sorted(blocks))
    results += [read(block) for block in blocks.values()]
    blocks.clear()
    drop_all()
    return {"refused": refused, "excess": excess, "seen": seen, "results": results}

def set_limit(limit):
    # The agent's own job, on this very main thread.
    job = LimitJob(True, limit)
    answer = None
    while answer is None: answer = job.step()
    assert answer["state"] == "done", answer

if sys.argv[1] == "mlx":
    import mlx.core as mx
    mx.set_cache_limit(1 << 34)
    def take(size, mark):
        made = mx.full((size,), mark, dtype=mx.uint8)
        mx.eval(made)
        return made
    def compute(n):
        x = mx.arange(n * n, dtype=mx.float32).reshape(n, n) / n**2
        return mx.tanh(x @ x).sum().item()
    read = lambda block: [block[at].item() for at in (0, block.shape[0] // 2, -1)]
    held = lambda: mx.get_active_memory() + mx.get_cache_memory()
    live, drop_all = mx.get_active_memory, mx.clear_cache
else:
    import torch
    def take(size, mark):
        made = torch.empty(size, dtype=torch.uint8, device="mps")
        made[0] = made[size // 2] = made[-1] = mark
        return made
    def compute(n):
        x = torch.arange(n * n, dtype=torch.float32, device="mps").reshape(n, n) / n**2
        return float(torch.tanh(x @ x).sum())
    read = lambda block: [int(block[at]) for at in (0, block.numel() // 2, -1)]
    held = torch.mps.driver_allocated_memory
    live, drop_all = torch.mps.current_allocated_memory, torch.mps.empty_cache
    torch.ones(1, device="mps")

for line in sys.stdin:
    task = json.loads(line)
    if task["set"]: set_limit(task["limit"])
    found = run(take, compute, read, drop_all, held, live, task["limit"], task["steps"])
    print(json.dumps(found), flush=True)
    if task["set"]: set_limit(None)
"""
SIZES = some.sampled_from(
    [1, 4096, MiB, 3 * MiB, 9 * MiB, 12 * MiB, 90 * MiB, 300 * MiB, 700 * MiB]
)
STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("take"), SIZES),
        some.tuples(some.just("drop"), some.integers(0, 20)),
        some.tuples(some.just("compute"), some.sampled_from([8, 96])),
    ),
    min_size=5,
    max_size=40,
)
# Without a limit this leaves a cache of several GB behind, and little that is live.
HOARD = [*[("take", 700 * MiB)] * 7, *[("drop", 0)] * 6, ("compute", 96), ("take", 12 * MiB)]
two_sizes_of_examples = two_sizes("examples", small=[4], whole=[50])


def check_workloads(check: Any, examples: int) -> None:
    """Call it with so many random workloads, and with the one that hoards most."""
    quiet = settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    quiet(given(steps=STEPS)(example(steps=HOARD)(check)))()


class Runner:
    def __init__(self, kind: str, **variables: str) -> None:
        import os

        env = os.environ | {"PYTHONPATH": str(ROOT), "SOFTMPS_GRAPHS": "0"} | variables
        if kind == "mps":
            env |= {"SOFTMPS": "1", "SOFTMPS_MEMORY": str(BUDGET)}
        self._child = subprocess.Popen(
            [sys.executable, "-c", CHILD, kind], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, steps: Any, limit: int | None, is_set: bool) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps({"steps": steps, "limit": limit, "set": is_set}) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, "the child has ended"
        return json.loads(line)

    def end(self) -> None:
        self._child.kill()
        self._child.wait()


def run_all(kind: str, **variables: str) -> Iterator[Runner]:
    runner = Runner(kind, **variables)
    yield runner
    runner.end()


@pytest.fixture(scope="module")
def mps() -> Iterator[Runner]:
    if NO_MPS is not None:
        pytest.skip(NO_MPS)
    yield from run_all("mps")


@pytest.fixture(scope="module")
def started_with_a_limit() -> Iterator[Runner]:
    if NO_MPS is not None:
        pytest.skip(NO_MPS)
    high, low = find_watermarks(LIMIT, BUDGET)
    yield from run_all("mps", **{HIGH: high, LOW: low})


@pytest.fixture(scope="module")
def mlx() -> Iterator[Runner]:
    if importlib.util.find_spec("mlx") is None:
        pytest.skip("no mlx here")
    yield from run_all("mlx")


@two_sizes_of_examples
def test_a_live_limit_on_mps_holds_up_to_one_heap(mps, examples):
    def check(steps):
        limited = mps.ask(steps, LIMIT, True)
        assert limited["excess"] <= HEAP
        free = mps.ask(steps, None, False)
        if not limited["refused"]:
            assert (limited["seen"], limited["results"]) == (free["seen"], free["results"])

    check_workloads(check, examples)


@two_sizes_of_examples
def test_a_limit_from_the_start_on_mps_holds_up_to_a_small_heap(started_with_a_limit, examples):
    def check(steps):
        assert started_with_a_limit.ask(steps, LIMIT, False)["excess"] <= SMALL_HEAP

    check_workloads(check, examples)


def test_without_a_limit_much_more_is_held(mps):
    """So the tests above can fail."""
    assert mps.ask(HOARD, LIMIT, False)["excess"] > HEAP


@two_sizes_of_examples
def test_a_limit_on_mlx_holds_up_to_its_cache_limit_and_refuses_nothing(mlx, examples):
    """MLX for the CPU looks at its cache limit alone, a quarter of the limit."""

    def check(steps):
        steps = [(kind, min(value, 90 * MiB) if kind == "take" else value) for kind, value in steps]
        limit = 256 * MiB
        limited = mlx.ask(steps, limit, True)
        assert limited["refused"] == 0
        assert limited["excess"] <= limit // 4
        free = mlx.ask(steps, None, False)
        assert (limited["seen"], limited["results"]) == (free["seen"], free["results"])

    check_workloads(check, examples)
