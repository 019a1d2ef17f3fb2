"""A Free on MPS: what it gives back, what it tells, what it never calls, and its deadline."""

import signal
import subprocess

import pytest
from worker_kit import NO_MPS, WAIT, wait_for

pytestmark = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

MiB = 1 << 20
START = (
    WAIT
    + """
import gc, os, queue, signal, sys, threading, time
import torch, mpsbar
counters = torch.ops.softmps.counters
def block(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="mps")
"""
)
ATTACH = "assert mpsbar.attach()\n"


def go_on(worker):
    worker.process.send_signal(signal.SIGUSR1)


def test_freed_is_measured_and_a_live_block_pins_its_heap(workers):
    # Two heaps of 32 MiB; one block of 4 MiB stays alive in the first.
    worker = workers.start_mps(START + """
blocks = [block(4) for _ in range(16)]
live = blocks[0].fill_(7)
del blocks
""" + ATTACH + """
wait()
print("live", int(live.sum()) == 7 * (4 << 20))
""", SOFTMPS_GRAPHS="0")  # fmt: skip
    before = worker.ask("stats")["backends"]["mps"]
    report = worker.ask("free")["backends"]["mps"]
    after = worker.ask("stats")["backends"]["mps"]
    assert (before["reserved"], before["allocated"]) == (64 * MiB, 4 * MiB)
    assert (after["reserved"], after["allocated"]) == (32 * MiB, 4 * MiB)
    assert report["freed"] == 32 * MiB == before["driver"] - after["driver"]
    assert (report["before"], report["after"]) == (before["driver"], after["driver"])
    go_on(worker)
    assert worker.wait_line("live") == "live True"


def test_freed_is_what_this_release_gave_back_however_long_it_waited(workers):
    # Refused at first, after its preparations; then the process needs 32 MiB more.
    worker = workers.start_mps(START + """
from mpsbar.agent import idle_check
held = idle_check.keep_gil
def refuse(sleep):
    block(4)
    idle_check.keep_gil = held
    raise idle_check.NotIdleError("slow", "once")
idle_check.keep_gil = refuse
live = torch.ones(8, device="mps")
""" + ATTACH + "while True: pass", SOFTMPS_GRAPHS="0")  # fmt: skip
    report = worker.ask("free")["backends"]["mps"]
    assert report["freed"] == 32 * MiB


def test_garbage_in_cycles_is_collected_on_main_and_given_back(workers):
    worker = workers.start_mps(START + """
gc.disable()
class Cycle:
    def __init__(self): self.me, self.block = self, block(4)
    def __del__(self): print("collected on", threading.current_thread().name)
Cycle()
""" + ATTACH + "while True: pass", SOFTMPS_GRAPHS="0")  # fmt: skip
    assert worker.ask("stats")["backends"]["mps"]["allocated"] == 4 * MiB
    answer = worker.ask("free")
    assert answer["backends"]["mps"]["freed"] == 32 * MiB
    assert (answer["collected"], answer["main_was_waiting"]) == (True, False)
    assert worker.wait_line("collected") == "collected on MainThread"


def test_no_finalizer_runs_on_the_agents_thread(workers):
    worker = workers.start_mps(START + """
gc.disable()
class Cycle:
    def __init__(self): self.me = self
    def __del__(self): print("collected on", threading.current_thread().name)
Cycle()
block(4)
""" + ATTACH + "wait(); gc.collect()")  # fmt: skip
    report = wait_for(lambda: off_main(worker), "main in its wait")
    assert report["on_main"] is False
    answer = worker.ask("free")
    assert (answer["collected"], answer["main_was_waiting"]) == (False, True)
    go_on(worker)
    assert worker.wait_line("collected") == "collected on MainThread"


def off_main(worker):
    report = worker.ask("tensors") and worker.ask("free")["backends"]["mps"]
    return report if report["on_main"] is False else None


COUNT_CALLS = """
calls = []
def count(name):
    real = getattr(torch._C, name)
    def counted(*args):
        calls.append(name)
        return real(*args)
    setattr(torch._C, name, counted)
FORBIDDEN = ["_mps_deviceSynchronize", "_mps_synchronizeEvent", "_mps_waitForEvent",
    "_mps_acquireEvent", "_mps_recordEvent", "_accelerator_emptyHostCache",
    "_accelerator_synchronizeDevice", "_mps_profilerStartTrace", "_mps_setMemoryFraction"]
for name in FORBIDDEN: count(name)
"""


def test_the_agent_never_synchronizes_nor_runs_an_op_nor_empties_the_host_cache(workers):
    worker = workers.start_mps(START + COUNT_CALLS + """
live = torch.ones(1000, device="mps", requires_grad=True)
(live * 2).sum().backward()
block(4)
before = counters()["ops"]
""" + ATTACH + """
wait()
after = counters()
print("calls", calls, after["ops"] - before, after["synchronize"], after["empties"])
torch.mps.synchronize()
print("counted", calls)
""")  # fmt: skip
    for _ in range(3):
        for method in ("hello", "stats", "free", "tensors"):
            worker.ask(method)
    go_on(worker)
    assert worker.wait_line("calls") == "calls [] 0 0 3"
    assert worker.wait_line("counted") == "counted ['_mps_deviceSynchronize']"


def test_a_device_that_is_not_used_is_not_touched(workers):
    worker = workers.start_mps(START + COUNT_CALLS + """
for name in ["_mps_emptyCache", "_mps_currentAllocatedMemory", "_mps_driverAllocatedMemory",
    "_mps_recommendedMaxMemory", "_mps_is_available", "_accelerator_getDeviceStats",
    "_accelerator_emptyCache"]: count(name)
""" + ATTACH + 'wait(); print("calls", calls, counters()["initialised"])')  # fmt: skip
    assert worker.ask("stats")["backends"]["mps"]["state"] == "not initialised"
    assert "mps" not in worker.ask("free")["backends"]
    worker.count_tensors()
    go_on(worker)
    assert worker.wait_line("calls") == "calls [] 0"


def test_a_deadline_passed_while_waiting_cancels_and_the_late_call_does_nothing(workers):
    worker = workers.start_mps(START + "block(4)\n" + ATTACH + """
print("asleep"); __import__("ctypes").CDLL(None).getchar()
for _ in range(10**5): pass
print("empties", counters()["empties"])
while True: pass
""", popen={"stdin": subprocess.PIPE})  # fmt: skip
    worker.wait_line("asleep")
    worker.wait_asleep()
    answer = worker.ask_until_refused("main_unproven", seconds=0.3)
    assert answer["state"] == "busy"
    assert answer["backends"]["mps"]["freed"] is None
    worker.process.stdin.write(b"\n")
    assert worker.wait_line("empties") == "empties 0"
    assert worker.ask("free")["backends"]["mps"]["freed"] >= 32 * MiB


def test_a_deadline_passed_while_running_is_answered_when_it_ends(workers):
    # empty_cache waits for the queue, which gets its work when the release has begun.
    worker = workers.start_mps(START + """
x = torch.ones(8, device="mps"); block(4)
empty_cache = torch.mps.empty_cache
def work_and_empty():
    torch.ops.softmps.work_(x, 1.0)
    empty_cache()
torch.mps.empty_cache = work_and_empty
""" + ATTACH + """
while True: pass
""", SOFTMPS_QUEUE="1")  # fmt: skip
    answer = wait_for(lambda: find_done(worker, seconds=0.5), "a Free that was done")
    assert answer["backends"]["mps"]["freed"] >= 32 * MiB
    assert answer["backends"]["mps"]["paused"] > 0.5 < answer["seconds"]


def find_done(worker, **params):
    """The answer of a Free, if main came by in time: on busy cores it may not."""
    answer = worker.ask("free", **params)
    return answer if answer["state"] == "done" else None


@pytest.mark.parametrize("seconds", [0, -1, 61, True, "3", None])
def test_a_deadline_that_makes_no_sense_is_the_usual_one(workers, seconds):
    from mpsbar.agent import methods

    assert methods._seconds({"seconds": seconds}, 5.0) == 5.0
    assert methods._seconds({"seconds": 0.3}, 5.0) == 0.3


def test_a_failing_release_is_told_to_the_client_and_not_to_the_host(workers):
    worker = workers.start_mps(START + """
block(4)
def fail(): raise RuntimeError("the device is gone")
torch._C._mps_emptyCache = fail
""" + ATTACH + """
try:
    while not counters()["is_available"]: pass
except BaseException as error: print("host got", error)
""")  # fmt: skip
    assert worker.ask("free")["backends"]["mps"]["error"] == "the device is gone"
    assert worker.ask("free")["backends"]["mps"]["freed"] is None
    assert (worker.end(), worker.lines) == ("", [])
