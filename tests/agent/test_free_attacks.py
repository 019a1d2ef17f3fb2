"""What could get between the proof and the release, or be left behind by one: tried on purpose."""

import signal
import sys

import fork_server
import pytest
from thorough import two_sizes
from worker_kit import NO_MPS, ROOT, TIMEOUT

pytestmark = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

START = """
import ctypes, functools, gc, os, queue, signal, sys, threading, time
import torch, mpsbar
x = torch.arange(64, device="mps")
torch.ones(1 << 20, device="mps")
counters = torch.ops.softmps.counters
gc.collect(); gc.freeze()
def park(wait):
    threading.Thread(target=wait, daemon=True).start()
def finish(*_):
    print("end", counters()["overlaps"], counters()["empties"] > 0, x.sum().item())
    os._exit(0)
signal.signal(signal.SIGUSR1, finish)
"""
# In a known wait nearly always, and in an op at once when anything lets it have the GIL.
PULSE = """
def pulse():
    gate = threading.Condition()
    while True:
        with gate: gate.wait(0.02)
        torch.ops.softmps.busy_(x, 0.002)
park(pulse)
"""
MAIN_PARKED, MAIN_RUNNING = "queue.Queue().get()", "while True: time.time()"


def free_and_end(worker, times, *, must_free=False):
    states = [worker.ask("free", seconds=0.2)["state"] for _ in range(times)]
    if must_free and "done" not in states:  # on busy cores
        states.append(worker.ask("free")["state"])
        assert states[-1] == "done"
    assert set(states) <= {"done", "busy"}
    worker.process.send_signal(signal.SIGUSR1)
    return worker.wait_line("end")


def run_to_its_end(workers, code):
    env = workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", SOFTMPS_STRICT="1")
    command = [sys.executable, "-c", code]
    process = fork_server.start_python(command, env=env, cwd=workers.folder)
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, err.decode(), out.decode()


@pytest.mark.parametrize("main", [MAIN_PARKED, MAIN_RUNNING])
def test_a_collection_that_starts_after_the_proof(workers, main):
    # Its finalizer lets go of the GIL, and leaves the next garbage. The host has a wrapper of its own
    # around what the agent calls last before the release: it allocates enough to start one.
    worker = workers.start_mps(START + PULSE + f"""
class Phoenix:
    def __init__(self): self.me = self
    def __del__(self):
        time.sleep(0.003)
        Phoenix()
Phoenix()
driver_allocated = torch.mps.driver_allocated_memory
def wrapper():
    [[] for _ in range(3000)]
    return driver_allocated()
torch.mps.driver_allocated_memory = wrapper
assert mpsbar.attach()
{main}
""")  # fmt: skip
    assert free_and_end(worker, 15, must_free=True) == "end 0 True 2016"


@pytest.mark.parametrize("main", [MAIN_PARKED, MAIN_RUNNING])
@two_sizes("frees", small=[6], whole=[15])
def test_an_audit_hook_that_lets_go_of_the_gil(workers, main, frees):
    worker = workers.start_mps(START + PULSE + f"""
def audit(event, args):
    if event in ("object.__getattr__", "sys._current_frames"): time.sleep(0.003)
assert mpsbar.attach()
sys.addaudithook(audit)
{main}
""")  # fmt: skip
    assert free_and_end(worker, frees).startswith("end 0 ")


def test_a_finalizer_that_starts_a_computing_thread(workers):
    worker = workers.start_mps(START + """
import _thread
gc.disable()
class Starter:
    def __init__(self): self.me = self
    def __del__(self):
        _thread.start_new_thread(torch.ops.softmps.busy_, (x, 0.3))
        print("started")
Starter()
assert mpsbar.attach()
while True: time.time()
""")  # fmt: skip
    assert worker.ask("free")["state"] == "done"
    worker.wait_line("started")
    assert free_and_end(worker, 1) == "end 0 True 2016"


def test_a_full_queue_of_pending_calls_is_tried_again(workers):
    worker = workers.start_mps(START + """
from mpsbar.agent import pending_call
results = []
usual = pending_call.PendingCall.schedule
pending_call.PendingCall.schedule = lambda self, job: results.append(usual(self, job)) or results[-1]
add = ctypes.pythonapi.Py_AddPendingCall
add.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
is_true = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
def fill():
    while not os.path.exists("go"): time.sleep(0.01)
    while add(is_true, id(None)) == 0: pass
    print("full")
    while not results: time.sleep(0.01)
    os.write(end, b"x")
    threading.Event().wait()
assert mpsbar.attach()
park(fill)
start, end = os.pipe()
print("asleep"); ctypes.CDLL(None).read(start, ctypes.create_string_buffer(1), 1)  # not known to be a wait
while not counters()["empties"]: pass
print("hung", results[0], results[-1])
while True: time.time()
""")  # fmt: skip
    worker.wait_line("asleep")
    worker.wait_asleep()
    (worker.run_dir / "go").touch()
    worker.wait_line("full")
    assert worker.ask("free")["state"] == "done"
    assert worker.wait_line("hung") == "hung False True"


EXIT = (
    START
    + """
from mpsbar.agent import main_thread, pending_call
assert mpsbar.attach()
job = main_thread.MainThreadJob(lambda on_main: None, lambda: print("ran"), time.monotonic() + 60)
job._agent = threading.get_ident()
"""
)


def test_a_call_still_pending_at_exit_meets_no_frame_and_says_nothing(workers):
    # Python makes the last pending calls when main's last frame is gone.
    done = run_to_its_end(workers, EXIT + """
pending_call.main_call.schedule(main_thread.MainThreadJob(lambda on_main: None, lambda: None, 0.0))
pending_call.main_call._job = job
threading._shutdown = functools.partial(pending_call.main_call._add, None)
""")  # fmt: skip
    assert done == (0, "", "ran\n")


def test_a_call_still_pending_when_modules_are_torn_down_does_nothing(workers):
    done = run_to_its_end(workers, EXIT + """
class Late:
    def __init__(self, *kept): self.call, self.job, self.write, self.gone = kept
    def __del__(self):
        self.call._job = self.job
        self.call._add(None)
        for _ in range(9): pass
        self.write(1, b"late, globals gone: %d\\n" % (self.gone.get("sys") is None))
pending_call.main_call.schedule(main_thread.MainThreadJob(lambda on_main: None, lambda: None, 0.0))
sys.late = Late(pending_call.main_call, job, os.write, vars(pending_call))
""")  # fmt: skip
    assert done == (0, "", "late, globals gone: 1\n")


def test_main_that_ends_during_a_free_ends_well(workers):
    worker = workers.start_mps(START + """
assert mpsbar.attach()
while not os.path.exists("go"): time.sleep(0.01)
""")  # fmt: skip
    with worker.connect() as client:
        client.send("free")
        (worker.run_dir / "go").touch()
        assert worker.process.wait(TIMEOUT) == 0
    assert worker.end() == ""


FORKED = """
def child_says(*values):
    os.write(1, (" ".join(map(str, ("child", *values))) + "\\n").encode())
    os._exit(0)
"""


def test_a_fork_in_a_finalizer_releases_nothing_in_the_child(workers):
    worker = workers.start_mps(START + FORKED + """
gc.disable()
parent = os.getpid()
class Forker:
    def __init__(self): self.me = self
    def __del__(self): os.fork()
Forker()
assert mpsbar.attach()
print("attached")  # before that the Free may be main's own, in attach()
while os.getpid() == parent: time.time()
child_says("emptied", counters()["empties"], sys.getswitchinterval(), gc.isenabled())
""")  # fmt: skip
    worker.wait_line("attached")
    assert worker.ask("free")["state"] == "done"
    assert worker.wait_line("child") == "child emptied 0 0.005 False"


def test_a_fork_while_the_gil_is_held_leaves_the_child_the_hosts_settings(workers):
    # The agent sleeps with the long interval in force; main wakes up then and forks.
    worker = workers.start_mps(START + FORKED + """
from mpsbar.agent import main_thread
forking, forked = threading.Event(), threading.Event()
def sleep(seconds):
    forking.set()
    while not forked.is_set(): time.sleep(0.01)
main_thread._sleep_of = lambda pause: sleep
main = threading.get_ident()
attached = False  # before that main may stand in the wait of Thread.start
def watch():
    while not attached or sys._current_frames()[main].f_code is not threading.Condition.wait.__code__: time.sleep(0.01)
    print("waits")
threading.Thread(target=watch).start()
attached = mpsbar.attach()
forking.wait()
during = sys.getswitchinterval()
if not os.fork(): child_says(during, sys.getswitchinterval(), gc.isenabled())
forked.set()
queue.Queue().get()
""")  # fmt: skip
    worker.wait_line("waits")  # before that the Free would be main's own
    assert worker.ask("free")["state"] == "done"
    assert worker.wait_line("child") == "child 0.25 0.005 True"


def test_a_pending_call_inherited_by_a_forked_child_does_nothing(workers):
    # Another thread forks while main sleeps with the call pending: it is main in the child.
    worker = workers.start_mps(START + FORKED + """
from mpsbar.agent import pending_call
def fork():
    while pending_call.main_call._job is None: time.sleep(0.01)
    if not os.fork():
        for _ in range(10**5): pass
        child_says(pending_call.main_call._job, counters()["empties"])
    os.write(end, b"x")
    threading.Event().wait()
assert mpsbar.attach()
park(fork)
start, end = os.pipe()
print("asleep"); ctypes.CDLL(None).read(start, ctypes.create_string_buffer(1), 1)  # not known to be a wait
while True: time.time()
""")  # fmt: skip
    worker.wait_line("asleep")
    worker.wait_asleep()
    assert worker.ask("free")["state"] == "done"
    assert worker.wait_line("child") == "child None 0"


def test_a_process_that_sets_its_own_switch_interval_keeps_it(workers):
    worker = workers.start_mps(START + """
sys.setswitchinterval(0.02)
assert mpsbar.attach()
while not counters()["empties"]: pass
last = time.monotonic() + 60  # until the agent has a core to clean up
while sys.getswitchinterval() != 0.02 and time.monotonic() < last: time.sleep(0.01)
interval = sys.getswitchinterval()
sys.setswitchinterval(0.2)
print("interval", interval)
while True: time.time()
""")  # fmt: skip
    assert worker.ask("free")["state"] == "done"
    assert worker.wait_line("interval") == "interval 0.02"
    answer = worker.ask("free", seconds=1)
    assert (answer["state"], answer["reason"]["code"]) == ("busy", "switch_interval")


def test_a_loop_in_debug_mode_logs_nothing_of_ours(workers):
    worker = workers.start_mps(START + """
import asyncio, logging
logging.basicConfig(level=logging.WARNING)
now = 0  # the loop's clock: only a release takes time by it, whatever the machine does
empty_cache = torch.mps.empty_cache
def empty_slowly():
    global now
    now += 100
    empty_cache()
torch.mps.empty_cache = empty_slowly
async def main():
    loop = asyncio.get_running_loop()
    loop.time = lambda: now
    assert mpsbar.attach()
    # A Free within this callback would be logged, rightly: the test asks in the loop's wait.
    threading.Thread(target=tell_when_waiting, args=[loop]).start()
    await asyncio.sleep(1000)
def tell_when_waiting(loop):
    while sys._current_frames()[loop._thread_id].f_code.co_name != "select": time.sleep(0.01)
    print("waiting")
asyncio.run(main(), debug=True)
""")  # fmt: skip
    worker.wait_line("waiting")
    worker.wait_asleep()
    report = worker.ask("free")["backends"]["mps"]
    assert report["on_main"] is True
    assert worker.end() == ""
