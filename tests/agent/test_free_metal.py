"""MLX on Metal is freed by the rule of MPS: never beside a running evaluation.

Only a Mac has Metal, so the module believes to be there; MLX itself is the real one, on the CPU.
"""

import importlib.util

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mlx") is None, reason="no mlx here")

START = """
import sys
real, sys.platform = sys.platform, "darwin"
import mpsbar.agent.backends.mlx
sys.platform = real
import queue, threading, time
import mlx.core as mx
import mpsbar
mx.set_cache_limit(1 << 30)
calls = []
for name in ("clear_cache", "synchronize"):
    def noted(*arguments, call=getattr(mx, name), name=name):
        calls.append((name, threading.current_thread().name))
        return call(*arguments)
    setattr(mx, name, noted)
def evaluate():
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


def test_beside_a_thread_that_evaluates_it_is_busy_and_nothing_was_done(workers):
    worker = workers.start(START + """
def forever():
    while True: evaluate()
threading.Thread(target=forever, name="evaluator", daemon=True).start()
print("started")
commands = queue.Queue()
while True:
    try: commands.get(timeout=0.05)
    except queue.Empty: print(calls)
""")  # fmt: skip
    worker.wait_line("started")
    report = free(worker, seconds=1)
    assert (report["state"], report["freed"]) == ("busy", 0)
    assert report["reason"]["code"] == "thread_unproven"
    assert "evaluator" in report["reason"]["where"]
    assert worker.wait_line("[").count("clear_cache") == 0


def test_a_main_thread_that_waits_may_have_work_on_the_gpu_and_is_busy(workers):
    worker = workers.start(START + """
pending = mx.ones((64, 64)) @ mx.ones((64, 64))
mx.async_eval(pending)
main = threading.get_ident()
def watch():
    while sys._current_frames()[main].f_code is not threading.Condition.wait.__code__: time.sleep(0.01)
    print("waits")
threading.Thread(target=watch).start()
try: queue.Queue().get(timeout=10)
except queue.Empty: print(calls)
while True: time.sleep(0.05)
""")  # fmt: skip
    worker.wait_line("waits")
    report = free(worker, seconds=0.5)
    assert (report["state"], report["freed"]) == ("busy", 0)
    assert report["reason"]["code"] == "main_waiting"
    assert worker.wait_line("[").count("clear_cache") == 0
    report = free(worker)  # it runs bytecode again
    assert (report["state"], report["backends"]["mlx"]["on_main"]) == ("done", True)


def test_a_main_thread_inside_c_code_is_busy(workers):
    worker = workers.start(START + "print('asleep'); time.sleep(3600)")
    worker.wait_line("asleep")
    report = free(worker, seconds=0.5)
    assert (report["state"], report["reason"]["code"]) == ("busy", "main_unproven")


def test_it_is_left_alone_while_nobody_knows_whether_the_process_uses_the_gpu(workers):
    worker = workers.start(START + "queue.Queue().get()")
    report = worker.ask("free")
    assert (report["state"], report["not_known"], report["backends"]) == ("done", ["mlx"], {})
