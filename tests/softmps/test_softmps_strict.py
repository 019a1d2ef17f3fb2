"""A release that overlaps an op ends the process, and nothing else does."""

import signal
from pathlib import Path

import pytest
from device_child import Child, answer_of, run_child

# The op lasts far longer than the other thread needs to begin; nothing is timed.
START = """
import threading, time, torch
ops = torch.ops.softmps
x = torch.ones(4, device="mps")
def wait_for(name, value):
    while ops.counters()[name] < value:
        time.sleep(0.01)
def beside(work, *args):
    thread = threading.Thread(target=work, args=args)
    thread.start()
    return thread
"""


@pytest.mark.parametrize("release", ["torch.mps.empty_cache()", "torch.accelerator.empty_cache()"])
def test_release_during_an_op_of_another_thread(usable: None, release: str) -> None:
    done = run_child(f"{START}\nbeside(ops.busy_, x, 60)\nwait_for('in_flight', 1)\n{release}")
    assert done.returncode == -signal.SIGABRT
    assert done.stderr.splitlines()[0] == (
        "softmps: a release began while another thread was in the op softmps::busy_; "
        "on real MPS this can crash (SOFTMPS_STRICT)"
    )


def test_op_that_begins_during_a_release(usable: None, tmp_path: Path) -> None:
    # empty_cache keeps the GIL while it waits for the queue, so the op must come from code that
    # needs none: a script that is first busy outside any op, until long after the release began.
    for lasts in (2.0, 20.0):  # on a busy machine the release may come too late for the shorter one
        script = tmp_path / "script.py"  # whose source torch.jit reads
        script.write_text(f"""{START}
@torch.jit.script
def later(host: torch.Tensor, device: torch.Tensor):
    busy = torch.ops.softmps.busy_(host, {lasts})
    return device.neg(), busy, host, device  # to let go of one would need the GIL
ops.work_(x, {10 * lasts})
beside(later, torch.ones(1), x)
wait_for("host_busy", 1)
torch.mps.empty_cache()
""")
        done = run_child(f"import runpy; runpy.run_path({str(script)!r})", SOFTMPS_QUEUE="1")
        if done.returncode:
            break
    assert done.returncode == -signal.SIGABRT
    assert "softmps: the op aten::neg began on another thread while a release ran" in done.stderr


def test_an_op_that_waits_behind_another_is_in_flight_too(device: Child) -> None:
    assert (
        device.ask("""
    x = torch.ones(4, device="mps")
    most = 0
    for lasts in (0.5, 5.0, 30.0):  # on a busy machine the second may come after the first
        threads = [threading.Thread(target=ops.busy_, args=(x, lasts)) for _ in range(2)]
        [t.start() for t in threads]
        while any(t.is_alive() for t in threads):
            most = max(most, counters()["in_flight"])
            time.sleep(0.01)
        if most == 2: break
    answer = most
    """)
        == 2
    )


def test_level_0_only_counts_and_never_hangs(usable: None) -> None:
    overlaps, clean = answer_of(
        f"""{START}
import json
for lasts in (0.5, 5.0, 30.0):  # on a busy machine it may be over before the release
    thread = beside(ops.busy_, x, lasts)
    wait_for("in_flight", 1)
    torch.mps.empty_cache()
    thread.join()
    overlaps = ops.counters()["overlaps"]
    if overlaps: break
stop = threading.Event()
def compute():
    while not stop.is_set():
        own = x + 1
        own.neg()
threads = [beside(compute) for _ in range(3)]
for _ in range(300):
    for _ in range(10):
        torch.mps.empty_cache()  # keeps the GIL, which an op that ends may need
    time.sleep(0.001)
stop.set()
[thread.join() for thread in threads]
print(json.dumps([overlaps, bool((x == 1).all())]))
""",
        SOFTMPS_STRICT="0",
    )
    assert (overlaps, clean) == (1, True)


def test_level_2_aborts_off_the_main_thread(usable: None) -> None:
    code = f"{START}\ntorch.mps.empty_cache()\nbeside(torch.mps.empty_cache).join()"
    done = run_child(code, SOFTMPS_STRICT="2")
    assert done.returncode == -signal.SIGABRT
    assert done.stderr.startswith("softmps: a release was called off the main thread\n")


def test_releases_that_overlap_nothing_go_well(device: Child) -> None:
    assert device.ask("""
    import os
    w = torch.ones(8, 8, device="mps", requires_grad=True)
    for _ in range(20):
        (w @ w).relu().sum().backward()
        torch.mps.empty_cache()
    threads = [threading.Thread(target=torch.mps.empty_cache) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    answer = [counters()["overlaps"], counters()["off_main"], counters()["empties"]]
    """) == [0, 4, 24]


def test_frees_and_allocations_of_other_threads_are_no_ops(device: Child) -> None:
    assert (
        device.ask("""
    stop = threading.Event()
    def churn():
        while not stop.is_set():
            blocks = [block(n * 1000) for n in range(1, 20)]
            del blocks
    thread = threading.Thread(target=churn)
    thread.start()
    for _ in range(200):
        torch.mps.empty_cache()
        time.sleep(0)
    stop.set(); thread.join()
    answer = counters()["overlaps"]
    """)
        == 0
    )


def test_memory_given_back_within_an_op_is_no_release(device: Child) -> None:
    assert device.ask("""
    torch.mps.set_per_process_memory_fraction(0.5)
    x = torch.ones(100 * MiB // 4, device="mps")
    for _ in range(5):
        block(990 * MiB)
        x = x + 1  # has no room beside the cached block
        answer = [counters()["overlaps"], counters()["empties"], x[0].item()]
    """) == [0, 0, 6]
