"""A limit inside a worker: what it sets, when it refuses, what it restores; MPS and MLX for real."""

import importlib.util
import signal
import sys

import pytest
from worker_kit import NO_MPS, WAIT

MiB = 1 << 20
needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
needs_mlx = pytest.mark.skipif(importlib.util.find_spec("mlx") is None, reason="no mlx here")
START = (
    WAIT
    + """
import queue, signal, sys, threading, time
import torch, mpsbar
def block(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="mps")
def try_to_take(mib):
    try: return block(mib)
    except RuntimeError as error: print("refused", str(error)[:27])
"""
)
ATTACH = "assert mpsbar.attach()\n"


def limit(worker, mib, **params):
    return worker.ask("limit", bytes=None if mib is None else mib * MiB, seconds=60, **params)


def mps(worker):
    return worker.ask("stats")["backends"]["mps"]


@needs_mps
def test_beyond_the_limit_torch_returns_its_cache_then_raises_until_the_limit_is_off(workers):
    worker = workers.start_mps(START + """
live, cached = block(600).fill_(7), block(600)
del cached
""" + ATTACH + """
wait()
second = try_to_take(800)
again = try_to_take(80)
print("live", int(live[0]), int(live[-1]), torch.mps.driver_allocated_memory() >> 20)
wait()
third = try_to_take(800)
print("third", third is not None)
wait()
""")  # fmt: skip
    answer = limit(worker, 1300)
    assert (answer["state"], answer["backends"]["mps"]["freed"]) == ("done", 0)
    assert mps(worker)["limit"] == 1300 * MiB
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.wait_line("refused") == "refused MPS backend out of memory ("
    # The cache was returned; the small one made a heap of 1 GiB, above the limit.
    assert worker.wait_line("live") == f"live 7 7 {600 + 3 + 1024}"
    answer = limit(worker, None)
    assert (answer["state"], answer["backends"]["mps"]["limit"]) == ("done", None)
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.wait_line("third") == "third True"
    assert mps(worker)["limit"] is None


@needs_mps
def test_a_limit_below_what_is_live_is_refused_also_where_a_block_pins_its_heap(workers):
    worker = workers.start_mps(START + """
blocks = [block(20) for _ in range(40)]
live = blocks[0]
del blocks
live.fill_(3)
""" + ATTACH + "wait()", SOFTMPS_GRAPHS="0")  # fmt: skip
    before = mps(worker)
    assert (before["allocated"], before["reserved"]) == (20 * MiB, 1024 * MiB)
    answer = limit(worker, 500)
    assert answer["state"] == "refused"
    assert answer["reason"] == {"code": "above", "least": 1027 * MiB, "backend": "mps"}
    assert mps(worker)["limit"] is None
    # More than torch allows: nothing is set either.
    answer = limit(worker, 9 * 1024)
    assert answer["state"] == "failed"
    assert "twice what Metal recommends" in answer["error"]
    assert limit(worker, 1100)["state"] == "done"


@needs_mps
def test_what_the_environment_has_set_is_shown_and_comes_back(workers):
    worker = workers.start_mps(
        START + "live = block(20)\n" + ATTACH + "wait()",
        PYTORCH_MPS_HIGH_WATERMARK_RATIO="0.5x", PYTORCH_MPS_LOW_WATERMARK_RATIO="0.4",
    )  # fmt: skip
    assert mps(worker)["limit"] == 2048 * MiB  # as strtod reads it
    assert limit(worker, 3000)["backends"]["mps"]["limit"] == 3000 * MiB
    assert mps(worker)["limit"] == 3000 * MiB
    assert limit(worker, None)["backends"]["mps"]["limit"] == 2048 * MiB


@needs_mps
def test_a_process_that_does_not_use_the_device_keeps_not_using_it(workers):
    worker = workers.start_mps(START + ATTACH + """
wait()
print("initialised", torch.ops.softmps.counters()["initialised"])
wait()
""")  # fmt: skip
    answer = limit(worker, 1000)
    assert (answer["state"], answer["reason"]) == ("refused", {"code": "not_in_use"})
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.wait_line("initialised") == "initialised 0"


@needs_mps
def test_beside_a_computing_thread_it_is_busy_and_nothing_was_done(workers):
    worker = workers.start_mps(START + """
tensor = block(20)
def compute():
    while True: torch.ops.softmps.busy_(tensor, 0.05)
threading.Thread(target=compute, daemon=True).start()
""" + ATTACH + "wait()")  # fmt: skip
    answer = worker.ask_until_refused("thread_computing", "limit", bytes=2000 * MiB, seconds=0.5)
    assert answer["state"] == "busy"
    assert mps(worker)["limit"] is None


@needs_mps
def test_an_older_torch_that_cannot_tell_the_budget_says_so(workers):
    worker = workers.start_mps(
        START + "live = block(20)\n" + ATTACH + "wait()", SOFTMPS_TORCH="2.4"
    )
    answer = limit(worker, 2000, gpu_client=True)
    assert (answer["state"], answer["error"]) == ("failed", "a limit needs torch 2.5 or later")
    assert limit(worker, None, gpu_client=True)["state"] == "done"


def test_a_worker_without_mps_and_mlx_has_nothing_to_limit_and_wrong_numbers_are_errors(workers):
    worker = workers.start("import torch, mpsbar, queue; mpsbar.attach(); queue.Queue().get()")
    assert limit(worker, 1000)["reason"] == {"code": "no_limit"}
    with worker.connect() as client:
        for params in (
            {}, {"bytes": "1"}, {"bytes": True}, {"bytes": 1.5}, {"bytes": 1}, {"bytes": -1},
            {"bytes": 1 << 60}, {"bytes": [1]},
        ):  # fmt: skip
            client.send("limit", **params)
            assert client.receive()["error"]["code"] == -32602, params
        assert client.ask("hello")["methods"] == ["hello", "stats", "free", "tensors", "limit"]


def test_two_limits_asked_for_at_once_are_both_answered_and_the_last_one_holds(workers):
    if NO_MPS is not None:
        pytest.skip(NO_MPS)
    worker = workers.start_mps(START + "live = block(20)\n" + ATTACH + "wait()")
    with worker.connect() as client:
        numbers = [client.send("limit", bytes=size * MiB, seconds=60) for size in (1500, 1700)]
        answers = {answer["id"]: answer["result"] for answer in map(_receive, [client] * 2)}
    assert [answers[number]["asked"] for number in numbers] == [1500 * MiB, 1700 * MiB]
    assert mps(worker)["limit"] == 1700 * MiB


def _receive(client):
    return client.receive()


MLX = (
    WAIT
    + """
import mlx.core as mx
import mpsbar
mx.set_cache_limit(1 << 30)
memory = mx.get_memory_limit()
def array(mib):
    made = mx.zeros((mib << 18,), dtype=mx.float32)
    mx.eval(made)
    return made
signal.signal(signal.SIGUSR2, go_on)
live, cached = array(100), array(100)
del cached
assert mpsbar.attach()
while True:
    if wait() == signal.SIGUSR1: mx.set_memory_limit(777 << 20)
    cache = mx.set_cache_limit(0)
    mx.set_cache_limit(cache)
    is_first = mx.get_memory_limit() == memory
    print("limits", "first" if is_first else mx.get_memory_limit() >> 20, cache >> 20)
"""
)


@needs_mlx
def test_mlx_gets_its_memory_and_cache_limit_and_both_back(workers):
    worker = workers.start(MLX)

    def read(number=signal.SIGUSR2):
        worker.process.send_signal(number)
        return worker.wait_line("limits")

    answer = limit(worker, 240)
    assert answer["state"] == "done"
    assert answer["backends"]["mlx"] == {
        "limit": 240 * MiB, "held": pytest.approx(100 * MiB, abs=MiB),
        "freed": pytest.approx(100 * MiB, abs=MiB),
    }  # fmt: skip
    assert read() == "limits 240 60"
    assert limit(worker, 80)["reason"]["code"] == "above"
    assert read() == "limits 240 60"
    assert limit(worker, None)["state"] == "done"
    assert read() == "limits first 1024"
    # What the program sets later is its own: it is not shown as ours, nor taken back.
    limit(worker, 240)
    assert read(signal.SIGUSR1) == "limits 777 60"
    assert worker.ask("stats")["backends"]["mlx"]["limit"] is None
    limit(worker, None)
    assert read() == "limits 777 60"


@needs_mlx
def test_on_metal_mlx_is_limited_beside_a_running_evaluation(workers):
    """There a limit is only a number: nothing waits, and nothing is released by us."""
    worker = workers.start("""
import sys
real, sys.platform = sys.platform, "darwin"
import mpsbar.agent.backends.mlx
sys.platform = real
import threading, time
import mlx.core as mx
calls = []
class Metal:
    limits = {"set_memory_limit": 1000, "set_cache_limit": 2000}
    def __init__(self, name): self.name = name
    def __call__(self, value):
        calls.append((self.name, value >> 20))
        old, self.limits[self.name] = self.limits[self.name], value
        return old
for name in Metal.limits: setattr(mx, name, Metal(name))
mx.get_memory_limit = lambda: Metal.limits["set_memory_limit"]
mx.clear_cache = lambda: calls.append("clear_cache")
mx.eval(mx.ones((64, 64)))
def forever():
    while True: mx.eval(mx.ones((64, 64)) @ mx.ones((64, 64)))
threading.Thread(target=forever, daemon=True).start()
assert mpsbar.attach()
while True:
    time.sleep(0.1)
    print(calls)
""")
    assert limit(worker, 300)["reason"] == {"code": "not_known"}
    answer = limit(worker, 300, gpu_client=True)
    assert answer["state"] == "done"
    line = worker.wait_line("set_cache_limit")
    assert "('set_memory_limit', 300)" in line and "('set_cache_limit', 75)" in line
    assert "clear_cache" not in line


@needs_mlx
@pytest.mark.skipif(sys.platform == "darwin", reason="there MLX is on Metal")
def test_on_the_cpu_mlx_is_not_limited_beside_a_running_evaluation(workers):
    """There a new limit waits for it, and stops all threads as long."""
    worker = workers.start("""
import threading, time
import mlx.core as mx
import mpsbar
first = mx.set_memory_limit(1 << 33)
mx.set_memory_limit(first)
def forever():
    while True: mx.eval(mx.ones((64, 64)) @ mx.ones((64, 64)))
threading.Thread(target=forever, daemon=True, name="evaluator").start()
assert mpsbar.attach()
while True:
    time.sleep(0.1)
    print("as at first" if mx.get_memory_limit() == first else "another")
""")
    worker.wait_line("as at first")
    answer = worker.ask_until_refused("thread_unproven", "limit", bytes=300 * MiB, seconds=1)
    assert answer["state"] == "busy"
    assert "evaluator" in answer["reason"]["where"]
    assert worker.ask("stats")["backends"]["mlx"]["limit"] is None


def test_run_with_a_limit_reaches_mlx_at_its_import_whatever_came_before(workers):
    for module in ("torch", "mlx.core"):
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"no {module} here")
    command = [sys.executable, "-m", "mpsbar", "run", "--limit", "200MB", sys.executable, "-c", """
import torch
import mlx.core as mx
print("limits", mx.get_memory_limit() >> 20, mx.set_cache_limit(0) >> 20)
"""]  # fmt: skip
    worker = workers.run(command)
    # MLX's own cache limit is 32 MB on the CPU, which stays: 50 would be more.
    assert worker.wait_line("limits") == "limits 200 32"
    assert "PyTorch is not limited" in worker.end()
