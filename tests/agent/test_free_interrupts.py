"""Signals in the middle of a Free: the host gets exactly its own exception, and nothing else."""

import signal

import pytest
from thorough import two_sizes
from worker_kit import NO_MPS, wait_for

pytestmark = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

START = """
import asyncio, functools, gc, os, queue, signal, sys, threading, time
import torch, mpsbar
x = torch.arange(64, device="mps")
torch.ones(1 << 20, device="mps")
class Terminated(Exception): pass
def terminate(*_): raise Terminated("by", "SIGTERM")
class Handlers:
    def method(self, *_): raise Terminated("by", "SIGTERM")
    def __call__(self, *_): raise Terminated("by", "SIGTERM")
empty_cache = torch.mps.empty_cache
def say_and_empty():
    print("releasing")
    empty_cache()
torch.mps.empty_cache = say_and_empty
interval = sys.getswitchinterval()
hook = sys.unraisablehook
def report(error):
    # Until the agent has cleaned up, which it does once it gets a core.
    end = time.monotonic() + 60
    while sys.getswitchinterval() != interval and time.monotonic() < end: time.sleep(0.01)
    print("got", repr(error), error.__cause__, error.__context__,
        sys.getswitchinterval() == interval, gc.isenabled(), sys.unraisablehook is hook)
# They attach only here, so that a Free finds the scene that the test has set, and say so: a Free before that may
# find main waiting for the agent's thread to start.
# In a function: up to 3.12 the closing jump of an endless loop lies outside the try around it.
def spin():
    assert mpsbar.attach()
    print("attached")
    while True: time.time()
async def wait():
    assert mpsbar.attach()
    print("attached")
    await asyncio.sleep(1000)
"""
SPIN = "spin()"
LOOP = "asyncio.run(wait())"
HANDLERS = ["terminate", "Handlers().method", "Handlers()", "functools.partial(terminate)"]


def wait_and_signal(worker, number, line):
    """Ask for a Free, send the signal while it runs, and see what the host got."""
    got, error = signal_during_free(worker, number, line)
    assert error == "the process was interrupted meanwhile"
    return got


def signal_during_free(worker, number, line):
    """What the host got, and the error that the Free tells: none if it was over before the signal."""
    worker.wait_line("attached")
    with worker.connect() as client:
        client.send("free")
        worker.wait_line(line)
        worker.process.send_signal(number)
        answer = client.receive()["result"]["backends"]["mps"]
    return worker.wait_line("got"), answer.get("error")


@pytest.mark.parametrize("main", [SPIN, LOOP])
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (signal.SIGINT, "got KeyboardInterrupt() None None True True True"),
        (signal.SIGTERM, "got Terminated('by', 'SIGTERM') None None True True True"),
    ],
)
def test_a_signal_during_a_long_release(workers, main, number, expected):
    # The device has a second of work queued when empty_cache is called, which waits for it. On busy
    # cores that may be over before the signal comes: then it is tried again.
    # asyncio would turn the first Ctrl-C into a cancellation of its own.
    worker = workers.start_mps(START + f"""
signal.signal(signal.SIGTERM, terminate)
if {main == LOOP}: signal.signal(signal.SIGINT, lambda *_: signal.default_int_handler(2, None))
def work_and_empty():
    torch.ops.softmps.work_(x, 1.0)
    say_and_empty()
torch.mps.empty_cache = work_and_empty
while not os.path.exists("over"):
    try:
        {main}
    except BaseException as error: report(error)
    print("sum", x.sum().item())
    while not os.path.exists("over") and not os.path.exists("again"): time.sleep(0.01)
    if os.path.exists("again"): os.unlink("again")
queue.Queue().get()
""", SOFTMPS_QUEUE="1")  # fmt: skip

    def is_interrupted():
        got, error = signal_during_free(worker, number, "releasing")
        assert error in (None, "the process was interrupted meanwhile")
        assert worker.wait_line("sum") == "sum 2016"
        assert got == expected
        (worker.run_dir / ("again" if error is None else "over")).touch()
        return error is not None

    wait_for(is_interrupted, "a signal during a release")
    assert worker.ask("free")["state"] == "done"
    assert worker.end() == ""


# Without automatic collections, which could run it on any thread.
FINALIZER = """
gc.disable()
class Slow:
    def __init__(self): self.me = self
    def __del__(self):
        print("deleting")
        while True: time.time()
"""


@pytest.mark.parametrize("main", [SPIN, LOOP])
def test_ctrl_c_during_a_finalizer_still_reaches_the_host(workers, main):
    worker = workers.start_mps(START + FINALIZER + f"""
if {main == LOOP}: signal.signal(signal.SIGINT, lambda *_: signal.default_int_handler(2, None))
Slow()
try:
    {main}
except BaseException as error: report(error)
queue.Queue().get()
""")  # fmt: skip
    got = wait_and_signal(worker, signal.SIGINT, "deleting")
    assert got == "got KeyboardInterrupt() None None True False True"
    assert worker.ask("free")["state"] == "done"
    assert worker.end() == ""


def test_a_handler_of_any_kind_that_raises_during_a_finalizer(workers):
    worker = workers.start_mps(START + FINALIZER + f"""
for handler in {", ".join(HANDLERS)}:
    signal.signal(signal.SIGTERM, handler)
    Slow()
    try:
        spin()
    except BaseException as error: report(error)
queue.Queue().get()
""")  # fmt: skip
    for _ in HANDLERS:
        got = wait_and_signal(worker, signal.SIGTERM, "deleting")
        assert got == "got Terminated('by', 'SIGTERM') None None True False True"
    assert worker.end() == ""


def test_a_finalizers_own_error_still_goes_to_the_hosts_hook(workers):
    worker = workers.start_mps(START + """
gc.disable()
sys.unraisablehook = lambda info: print("unraisable", repr(info.exc_value))
class Faulty:
    def __init__(self): self.me = self
    def __del__(self): raise ValueError("mine")
Faulty()
assert mpsbar.attach()
print("made")
while True: time.time()
""")  # fmt: skip
    worker.wait_line("made")
    assert worker.ask("free")["state"] == "done"
    assert worker.wait_line("unraisable") == "unraisable ValueError('mine')"


def test_ctrl_c_in_the_middle_of_restoring_is_made_good_by_the_agent(workers):
    worker = workers.start_mps(START + """
from mpsbar.agent import idle_check
restore = idle_check.restore_interval
def interrupted():
    if threading.current_thread() is not threading.main_thread(): return restore()
    signal.raise_signal(signal.SIGINT)
idle_check.restore_interval = interrupted
try: spin()
except BaseException as error: report(error)
""")  # fmt: skip
    worker.wait_line("attached")
    answer = worker.ask("free")["backends"]["mps"]
    assert answer["error"] == "the process was interrupted meanwhile"
    assert worker.wait_line("got") == "got KeyboardInterrupt() None None True True True"


def test_an_exception_before_our_first_line_loses_the_call_and_it_is_scheduled_again(workers):
    worker = workers.start_mps(START + """
from mpsbar.agent import pending_call
usual = pending_call.PendingCall.__iter__
def interrupted(self):
    pending_call.PendingCall.__iter__ = usual
    signal.raise_signal(signal.SIGTERM)
    return False
pending_call.PendingCall.__iter__ = interrupted
signal.signal(signal.SIGTERM, terminate)
try: spin()
except BaseException as error: print("got", repr(error))
spin()
""")  # fmt: skip
    worker.wait_line("attached")
    assert worker.ask("free")["state"] == "done"
    assert worker.wait_line("got") == "got Terminated('by', 'SIGTERM')"


STORM = """
class Tick(Exception): pass
def tick(_, frame):
    if is_ending and ticks > 20: finish()
    # Only where it is caught: the next may come before the last one was counted.
    while frame is not None and frame.f_code is not work.__code__: frame = frame.f_back
    if frame is not None: raise Tick
ticks, others, is_ending = 0, [], False
sys.unraisablehook = lambda info: others.append(info.exc_value)
torch.mps.empty_cache = empty_cache
def work():
    while True:
        x + 1
        for _ in range(100): pass
def survive():
    global ticks
    while True:
        try: work()
        except Tick: ticks += 1
        except BaseException as error: others.append(error)
signal.signal(signal.SIGALRM, tick)
def stop(*_):
    global is_ending
    is_ending = True
def finish():
    signal.setitimer(signal.ITIMER_REAL, 0)
    end = time.monotonic() + 60
    while sys.getswitchinterval() != interval and time.monotonic() < end: time.sleep(0.01)
    print("storm", others, sys.getswitchinterval() == interval, gc.isenabled(),
        x.sum().item())
    os._exit(0)
signal.signal(signal.SIGUSR1, stop)
assert mpsbar.attach()
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.0271)
survive()
"""


@two_sizes("frees", small=[12], whole=[30])
def test_exceptions_at_every_moment_neither_hang_a_free_nor_reach_the_host_changed(workers, frees):
    worker = workers.start_mps(START + STORM)
    errors = []

    def was_interrupted_often():
        errors.append(worker.ask("free", seconds=1)["backends"]["mps"].get("error"))
        return len(errors) >= frees and len(errors) - errors.count(None) > 2

    wait_for(was_interrupted_often, "Frees that a signal interrupted")
    assert set(errors) <= {None, "the process was interrupted meanwhile"}
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.wait_line("storm") == "storm [] True True 2016"


@pytest.mark.parametrize(
    ("number", "names"), [(signal.SIGINT, ["<module>", "spin"]), (signal.SIGTERM, ["<module>", "spin", "terminate"])]
)  # fmt: skip
def test_the_traceback_of_an_interrupted_free_has_only_the_hosts_frames(workers, number, names):
    worker = workers.start_mps(START + """
import traceback
signal.signal(signal.SIGTERM, terminate)
def slow_collect(*_):
    print("releasing")
    while True: time.time()
from mpsbar.agent import free
free.collect_on_main = slow_collect
try:
    spin()
except BaseException as error:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)]
    print("got", [frame.name for frame in frames if frame.name != "slow_collect"],
        any("mpsbar/agent" in frame.filename for frame in frames))
queue.Queue().get()
""")  # fmt: skip
    assert wait_and_signal(worker, number, "releasing") == f"got {names} False"
