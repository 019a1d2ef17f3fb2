"""MLX on Metal is freed by the rule of MPS: never beside a running evaluation.

Only a Mac has Metal, so the module believes to be there. MLX itself is the real one, on the CPU; a
DOUBLE stands for what Metal's allocator does otherwise: a cache limit is only a number, and what is
over it is given back at the next allocation (mlx/backend/metal/allocator.cpp).
"""

import importlib.util
import signal

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mlx") is None, reason="no mlx here")

START = """
import sys
real, sys.platform = sys.platform, "darwin"
import mpsbar.agent.backends.mlx
sys.platform = real
import queue, signal, threading, time
import mlx.core as mx
import mpsbar
mx.set_cache_limit(1 << 30)
calls = []
class Metal:
    limit, cached = 1 << 30, 8 << 20
    def set_cache_limit(self, limit):
        calls.append(("set_cache_limit", limit))  # first: who sees the limit sees the call too
        old, self.limit = self.limit, limit
        return old
    def get_cache_memory(self): return self.cached
    def allocate(self): self.cached = min(self.cached, self.limit)
metal = Metal()
mx.set_cache_limit, mx.get_cache_memory = metal.set_cache_limit, metal.get_cache_memory
for name in ("clear_cache", "synchronize"):
    def noted(*arguments, call=getattr(mx, name), name=name):
        calls.append((name, threading.current_thread().name))
        if name == "clear_cache": metal.cached = 0
        return call(*arguments)
    setattr(mx, name, noted)
def evaluate():
    metal.allocate()
    mx.eval(mx.ones((64, 64)) @ mx.ones((64, 64)))
def fill():
    mx.eval(mx.zeros((1 << 20,)))
fill()
assert mpsbar.attach()
"""


def free(worker, **params):
    return worker.ask("free", gpu_client=True, **params)


def test_a_main_thread_that_evaluates_is_freed_on_it_after_its_own_work_is_done(workers):
    worker = workers.start(START + """
while True:
    for _ in range(50): evaluate()
    if ("clear_cache", "MainThread") in calls: break
print(calls)
time.sleep(3600)
""")  # fmt: skip
    report = free(worker)
    assert (report["state"], report["collected"]) == ("done", True)
    assert report["backends"]["mlx"]["on_main"] is True
    calls = "[('synchronize', 'MainThread'), ('clear_cache', 'MainThread')]"
    assert worker.wait_line("[") == calls


EVALUATOR = """
mpsbar.agent.backends.mlx.TRIM_SECONDS = 60  # until its next allocation, for which it needs a core
def forever():
    while True: evaluate()
threading.Thread(target=forever, name="evaluator", daemon=True).start()
print("started")
commands = queue.Queue()
while True:
    try: commands.get(timeout=0.05)
    except queue.Empty: print(calls, metal.limit, metal.cached)
"""


def test_a_busy_process_trims_its_cache_itself_and_its_limit_comes_back(workers):
    worker = workers.start(START + EVALUATOR)
    worker.wait_line("started")
    report = free(worker, seconds=1)
    assert (report["state"], report["freed"], report["trimmed"]) == ("done", 8 << 20, True)
    assert report["backends"]["mlx"]["trimmed"] is True
    calls = f"[('set_cache_limit', 0), ('set_cache_limit', {1 << 30})] {1 << 30} 0"
    assert worker.wait_line(f"{1 << 30} 0") == calls


def test_an_empty_cache_is_not_waited_for(workers):
    never = EVALUATOR.replace("TRIM_SECONDS = 60", "TRIM_SECONDS = 1e9")
    worker = workers.start(START + "metal.cached = 0" + never)
    worker.wait_line("started")
    report = free(worker, seconds=1)  # else there is no answer
    assert report["trimmed"] is False, report
    worker.wait_line(f"[('set_cache_limit', 0), ('set_cache_limit', {1 << 30})] {1 << 30} 0")


def test_a_limit_that_the_process_sets_meanwhile_stays(workers):
    own = "    if metal.limit == 0: metal.set_cache_limit(5)\n    mx.eval("
    worker = workers.start(START.replace("    mx.eval(mx.ones", own + "mx.ones", 1) + EVALUATOR)
    worker.wait_line("started")
    assert free(worker, seconds=1)["trimmed"] is True
    assert worker.wait_line(" 5 0").endswith(" 5 0")


WITHOUT_LIMITS = "for each in (mx, mx.metal): vars(each).pop('set_cache_limit', None)"


def test_an_mlx_without_cache_limits_is_busy_and_nothing_was_done(workers):
    worker = workers.start(START + WITHOUT_LIMITS + EVALUATOR)
    worker.wait_line("started")
    report = worker.ask_until_refused("thread_unproven", gpu_client=True, seconds=1)
    assert (report["state"], report["freed"], report["trimmed"]) == ("busy", 0, False)
    assert "evaluator" in report["reason"]["where"]
    assert worker.wait_line("[").count("clear_cache") == 0


def test_on_the_cpu_a_busy_process_is_left_as_it_is(workers):
    """There a new limit waits for running evaluations, with the GIL held."""
    on_linux = START.replace('real, sys.platform = sys.platform, "darwin"', "real = sys.platform")
    assert on_linux != START
    worker = workers.start(on_linux + EVALUATOR)
    worker.wait_line("started")
    report = worker.ask_until_refused("thread_unproven", gpu_client=True, seconds=1)
    assert (report["state"], report["trimmed"]) == ("busy", False)
    assert worker.wait_line("[").startswith("[] ")


def test_a_main_thread_that_waits_may_have_work_on_the_gpu_and_is_busy(workers):
    worker = workers.start(START + """
pending = mx.ones((64, 64)) @ mx.ones((64, 64))
mx.async_eval(pending)
class Next(Exception): pass
def go_on(*_): raise Next
signal.signal(signal.SIGUSR1, go_on)
try: print("waits"); queue.Queue().get()
except Next: print(calls, metal.limit)
while True: time.sleep(0.05)
""")  # fmt: skip
    worker.wait_line("waits")
    worker.wait_asleep()
    report = free(worker, seconds=0.5)
    assert (report["state"], report["freed"]) == ("busy", 0)
    assert report["reason"]["code"] == "main_waiting"
    worker.process.send_signal(signal.SIGUSR1)
    line = worker.wait_line("[")  # nothing was allocated: the limit came back all the same
    assert line == f"[('set_cache_limit', 0), ('set_cache_limit', {1 << 30})] {1 << 30}"
    report = free(worker)  # it runs bytecode again
    assert (report["state"], report["backends"]["mlx"]["on_main"]) == ("done", True)


def test_a_main_thread_inside_c_code_is_busy(workers):
    worker = workers.start(START + "print('asleep'); time.sleep(3600)")
    worker.wait_line("asleep")
    worker.wait_asleep()
    report = free(worker, seconds=0.5)
    assert (report["state"], report["reason"]["code"]) == ("busy", "main_waiting")


def test_it_is_left_alone_while_nobody_knows_whether_the_process_uses_the_gpu(workers):
    worker = workers.start(START + "queue.Queue().get()")
    report = worker.ask("free")
    assert (report["state"], report["not_known"], report["backends"]) == ("done", ["mlx"], {})
