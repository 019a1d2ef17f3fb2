"""Where main may be when a Free comes, with real torch on softmps: every idle main is freed."""

import selectors
import signal
import sys
import threading
import time

import pytest
from worker_kit import NO_MPS, wait_for

from mpsbar.agent import idle_check, main_thread

pytestmark = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

MiB = 1 << 20
# 32 MiB of idle cache (a heap of 4 MiB buffers), and a live tensor in a heap of its own.
START = """
import asyncio, gc, multiprocessing, os, queue, signal, subprocess, sys, threading, time
import torch, mpsbar
live = torch.arange(64, device="mps")
def fill_cache():
    torch.ones(1 << 20, device="mps")
fill_cache()
assert mpsbar.attach()
def park(wait):
    threading.Thread(target=wait, daemon=True).start()
"""
# Without an optimizer of torch: its first step imports torch._dynamo, more than a second of a core.
TRAIN = """
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
model.to("mps")
weights = [each.data for each in model.parameters()]
data = torch.ones(8, 64, device="mps")
def train_once():
    model.zero_grad()
    loss = model(data).pow(2).mean()
    loss.backward()
    torch._foreach_add_(weights, [each.grad for each in model.parameters()], alpha=-0.01)
"""


def free(worker, **params):
    """A Free that must succeed: what the agent says of MPS."""
    return check(worker.ask("free", **params))


def check(answer):
    assert answer["state"] == "done", answer
    report = answer["backends"]["mps"]
    assert "error" not in report
    assert report["freed"] >= 32 * MiB
    assert report["freed"] == report["before"] - report["after"]
    return report


ON_MAIN = {
    "a Python loop": "while True: pass",
    "ops in a loop": "while True: live + 1",
    "the key function of a sort": "while True: sorted(range(9), key=lambda n: n)",
    "an event loop": "asyncio.run(asyncio.sleep(1000))",
    "a busy event loop": """
async def spin():
    while True: await asyncio.sleep(0)
asyncio.run(spin())
""",
    "a main under @torch.no_grad()": """
@torch.no_grad()
def main():
    while True: live + 1
main()
""",
}
OFF_MAIN = {
    "Popen.wait with a time-out": """
subprocess.Popen(["cat"], stdin=subprocess.PIPE).wait(1000)
""",
    "short sleeps": "while True: time.sleep(0.05)",
    "queue.get": "queue.Queue().get()",
    "queue.get, with an idle pool": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
print(list(pool.map(abs, [-1, -2])))
queue.Queue().get()
""",
    "join of a thread that waits": """
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start(); thread.join()
""",
    "Future.result": "import concurrent.futures as f; f.Future().result()",
    "Popen.wait": 'subprocess.Popen(["cat"], stdin=subprocess.PIPE).wait()',
    "a multiprocessing queue": "multiprocessing.Queue().get()",
}


# Each state until the test's signal, whose handler raises; all in one process, for torch's import.
# An event loop swallows what is raised inside one of its callbacks: the signal may come again, the
# file says which state it is for, and one that comes when main has left the state does nothing.
VISIT = """
class Next(Exception): pass
def go_on(_, frame):
    while frame is not None and frame.f_code.co_filename != "state": frame = frame.f_back
    if frame is not None and open("../leave").read() == name: raise Next
signal.signal(signal.SIGUSR1, go_on)
for name, code in {states!r}.items():
    fill_cache()
    code = compile(code, "state", "exec")
    try:
        print("in", name)
        exec(code, globals())
    except Next:
        pass
print("sum", live.sum().item(), torch.ops.softmps.counters()["overlaps"])
"""


@pytest.mark.parametrize(("states", "on_main"), [(ON_MAIN, True), (OFF_MAIN, False)])
def test_freed_wherever_main_waits_or_runs(workers, states, on_main):
    worker = workers.start_mps(START + VISIT.format(states=states))
    following = [*(f"in {name}" for name in list(states)[1:]), "sum"]
    worker.wait_line(f"in {next(iter(states))}")
    for name, line in zip(states, following, strict=True):
        free(worker)
        # The first Free may have met main on its way there.
        wait_for(lambda: worker.ask("free")["backends"]["mps"]["on_main"] is on_main, name)
        (workers.folder / "leave").write_text(name)
        stop = threading.Event()
        nagging = threading.Thread(target=nag, args=(worker, stop))
        nagging.start()
        last = worker.wait_line(line)
        stop.set()
        nagging.join()
    assert last == "sum 2016 0"


def nag(worker, stop):
    while worker.process.poll() is None:
        worker.process.send_signal(signal.SIGUSR1)
        if stop.wait(1.0):
            return


def test_a_free_while_main_is_still_in_attach_waits_until_it_has_come_back(workers):
    worker = workers.start_mps("""
import _thread, os, time
import torch, mpsbar
import mpsbar.agent.agent_thread as t
torch.ones(1 << 20, device="mps")
run = t.AgentThread._run
def run_before_start_returns(self):
    # The same thread under other locks: `start` returns only once the test says so.
    other = t.AgentThread(self._target)
    other._has_started.acquire()
    other._is_running.acquire()
    _thread.start_new_thread(let_go, (self._has_started,))
    run(other)
def let_go(lock):
    while not os.path.exists("go"): time.sleep(0.01)
    lock.release()
t.AgentThread._run = run_before_start_returns
assert mpsbar.attach()
while True: time.time()
""")  # fmt: skip
    with worker.connect() as client:
        client.send("free")
        watch = selectors.DefaultSelector()
        watch.register(client.socket, selectors.EVENT_READ)
        assert not watch.select(1.0)
        (worker.run_dir / "go").touch()
        answer = client.receive()["result"]
    assert (answer["state"], answer["collected"]) == ("done", True)
    assert answer["backends"]["mps"]["on_main"] is True


def test_freed_after_the_end_of_main_while_another_thread_waits(workers):
    worker = workers.start_mps(START + "threading.Thread(target=queue.Queue().get).start()")
    free(worker)
    wait_for(lambda: worker.ask("free")["backends"]["mps"]["on_main"] is False, "main's end")


def test_the_waits_go_on_undisturbed_and_their_results_arrive(workers):
    worker = workers.start_mps(START + """
go, results = threading.Event(), queue.Queue()
park(lambda: (go.wait(), results.put("result")))
async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, stop.set)
    print("waiting")
    await stop.wait()
    return "awaited"
awaited = asyncio.run(main())
go.set()
print("both", awaited, results.get())
""")  # fmt: skip
    worker.wait_line("waiting")  # else the signal ends the process
    free(worker)
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.wait_line("both") == "both awaited result"


def test_training_is_freed_though_nearly_all_its_time_is_inside_torch(workers):
    worker = workers.start_mps(START + TRAIN + """
while True: train_once()
""")  # fmt: skip
    free(worker)


LONG_BACKWARD = """
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.clone()
    @staticmethod
    def backward(ctx, grad):
        return torch.ops.softmps.busy_(grad.clone(), 0.3)
weight = torch.ones(8, device="mps", requires_grad=True)
def train_once():
    Slow.apply(weight).sum().backward()
"""


# Without the agent's further looks: only the trigger at the return of torch's outermost frame is left.
LOOK_ONCE = """
from mpsbar.agent import main_thread
look = main_thread.MainThreadJob._trigger
def look_once(self, frame, now):
    self._trigger = lambda frame, now: None
    look(self, frame, now)
main_thread.MainThreadJob._trigger = look_once
"""


def free_in_one_look(worker):
    answer = worker.ask("free", seconds=20)
    return answer if answer["state"] == "done" else None


def test_training_with_a_long_backward_is_freed_at_its_return_and_not_by_a_lucky_look(workers):
    worker = workers.start_mps(START + LONG_BACKWARD + """
""" + LOOK_ONCE + """
while True: train_once()
""")  # fmt: skip
    # A machine too busy to be sure, and the look was in vain: it is asked again, and looks once again.
    check(wait_for(lambda: free_in_one_look(worker), "Free in one look"))


def test_training_is_freed_without_that_trigger_as_on_python_3_9(workers):
    worker = workers.start_mps(START + TRAIN + """
from mpsbar.agent import main_thread
main_thread.call_on_return = lambda frame: None
while True: train_once()
""")  # fmt: skip
    free(worker)


def test_training_that_waits_for_its_data_loader_is_freed(workers):
    worker = workers.start_mps(START + """
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 10**6
    def __getitem__(self, n): time.sleep(0.05); return n
loader = torch.utils.data.DataLoader(Slow(), num_workers=1, multiprocessing_context="fork")
""" + LOOK_ONCE + """
for batch in loader:
    if batch == 1: print("waits for more")
""")  # fmt: skip
    worker.wait_line("waits for more")
    # The loader's own thread may be sending just then: it is asked again, and looks once again.
    answer = wait_for(lambda: free_in_one_look(worker), "Free in one look")
    assert check(answer)["on_main"] is True


def test_an_idle_data_loader_does_not_block_a_free(workers):
    worker = workers.start_mps(START + """
loader = torch.utils.data.DataLoader(range(4), num_workers=1, persistent_workers=True)
print([int(n) for n in loader])
queue.Queue().get()
""")  # fmt: skip
    worker.wait_line("[0, 1, 2, 3]")
    free(worker)


TRACED = """
seen = {}
def tracer(frame, event, arg):
    if frame.f_code is train_once.__code__:
        seen[event] = seen.get(event, 0) + 1
        lines.add(frame.f_lineno - frame.f_code.co_firstlineno)
    return tracer
lines = set()
sys.settrace(tracer)
"""


def test_a_debugger_that_traces_keeps_all_its_events(workers):
    # The signal may come as soon as there is an agent: before its handler it would end the process.
    handler = "import signal; stop = []; signal.signal(signal.SIGUSR1, lambda *_: stop.append(1))"
    worker = workers.start_mps(handler + START + TRAIN + TRACED + """
import torch.autograd.graph
while True:
    train_once()
    frame = sys._getframe()
    if stop: break
assert sys.gettrace() is tracer
sys.settrace(None)
print("traced", seen["call"] == seen["return"], seen["line"] == 4 * seen["call"], sorted(lines))
""")  # fmt: skip
    free(worker)
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.wait_line("traced") == "traced True True [0, 1, 2, 3, 4]"


def test_a_main_thread_that_a_debugger_makes_slow_is_left_ten_times_as_long_as_it_was_stopped(
    workers,
):
    # In torch for long, as when torch._dynamo is imported: each attempt is refused.
    worker = workers.start_mps(START + """
from mpsbar.agent.main_thread import MainThreadJob
attempts = []
def tracer(frame, event, arg):
    if frame.f_code is MainThreadJob._attempt_on_main.__code__:
        attempts.append(time.monotonic())
        time.sleep(0.02)
class Long(torch.nn.Module):
    def forward(self):
        print("inside")
        while len(attempts) < 4: pass
module = Long()
sys.settrace(tracer)
module()
sys.settrace(None)
gaps = [after - before for before, after in zip(attempts, attempts[1:])]
print("gaps", min(gaps) >= 0.2 or gaps)
while True: pass
""")  # fmt: skip
    worker.wait_line("inside")  # a Free before that would be done at once
    free(worker)
    assert worker.wait_line("gaps") == "gaps True"


def test_tracing_that_begins_while_the_trigger_is_set_gets_no_error(workers):
    worker = workers.start_mps(START + LONG_BACKWARD + """
from mpsbar.agent import main_thread
usual = main_thread.call_on_return
def set_and_trace(frame):
    kept = usual(frame)
    events.append(kept is not None)
    sys.settrace(lambda frame, event, arg: None)
    return kept
main_thread.call_on_return = set_and_trace
events = []
while not events: train_once()
print("gettrace", events[0], sys.gettrace() is not None)
open("traced", "w").close()
sys.settrace(None)
main_thread.call_on_return = usual
while True: train_once()
""")  # fmt: skip
    traced = worker.run_dir / "traced"
    wait_for(lambda: worker.ask("free") and traced.exists(), "Free that found main in torch")
    assert worker.wait_line("gettrace") == "gettrace True True"


SLEEPER = """
def heartbeat():
    while True: __import__("ctypes").CDLL(None).sleep(1000)  # C code that nobody knows
park(heartbeat)
"""


def test_a_thread_in_c_code_that_is_not_known_counts_as_computing(workers):
    worker = workers.start_mps(START + SLEEPER + "print('parked')\nwhile True: pass")
    worker.wait_line("parked")  # it can be asked before there is a second thread
    answer = worker.ask_until_refused("thread_unproven", where=" in heartbeat", seconds=0.5)
    assert answer["state"] == "busy"
    assert answer["reason"]["where"].startswith("Thread-1 (heartbeat), worker0.py:")
    assert answer["freed"] == answer["backends"]["cpu"]["freed"]


def test_an_op_of_another_thread_is_not_overlapped_and_main_waiting_is_no_excuse(workers):
    worker = workers.start_mps(START + """
def compute():
    while True: torch.ops.softmps.busy_(live, 0.01)
park(compute)
print("parked")
queue.Queue().get()
""")  # fmt: skip
    worker.wait_line("parked")
    answer = worker.ask_until_refused("thread_computing", seconds=1)
    assert answer["state"] == "busy"


def test_a_long_call_of_unknown_c_code_is_busy_with_the_place_where_main_is(workers):
    worker = workers.start_mps(START + """
sleep = __import__("ctypes").CDLL(None).sleep
def nap():
    print("asleep"); sleep(1000)
nap()
""")  # fmt: skip
    worker.wait_line("asleep")
    worker.wait_asleep()
    answer = worker.ask_until_refused("main_unproven", where=" in nap", seconds=0.5)
    assert answer["state"] == "busy"
    assert answer["reason"]["where"].startswith("worker0.py:")
    assert answer["backends"]["mps"]["freed"] is None


@pytest.mark.parametrize(
    ("is_pending", "code"), [(True, "main_unproven"), (False, "thread_unproven")]
)
def test_what_another_thread_did_is_no_reason_once_main_has_not_come_by_for_long(is_pending, code):
    job = main_thread.MainThreadJob(lambda on_main: None, lambda: None, time.monotonic() - 1)
    job.refused = idle_check.NotIdleError("thread_unproven", "as found")
    if is_pending:  # a call that main has not made for a minute
        job._call_pending_since = time.monotonic() - 60
    assert job.step()
    assert (job.given_up, job.refused.code) == (True, code)


def test_a_main_thread_near_its_recursion_limit_is_told_with_the_limit_that_the_host_has_set(
    workers,
):
    worker = workers.start_mps(START + """
sys.setrecursionlimit(1234)
def dive(levels):
    if levels: return dive(levels - 1)
    print("deep")
    while True: pass
dive(1234 - 60)
""")  # fmt: skip
    worker.wait_line("deep")
    answer = worker.ask_until_refused("deep_recursion", seconds=1)
    assert answer["reason"] == {
        "code": "deep_recursion",
        "where": "the main thread is near its limit of 1234 calls",
    }


def test_nothing_of_the_host_is_kept_alive_by_a_free_that_waits(workers):
    worker = workers.start_mps(START + SLEEPER + """
import weakref
def use_memory():
    local = torch.ones(4, device="mps")
    reference = weakref.ref(local)
    time.sleep(0.3)  # the agent looks here, and is refused
    return reference
alive = 0
for _ in range(8):
    alive += use_memory()() is not None
print("alive", alive)
while True: pass
""")  # fmt: skip
    worker.ask("free", seconds=2)
    assert worker.wait_line("alive") == "alive 0"


def test_a_call_that_comes_after_the_deadline_does_nothing_before_the_agent_says_so_too():
    ran = []
    job = main_thread.MainThreadJob(ran.append, lambda: ran.append("work"), time.monotonic() - 1)
    job.run_on_main(None)
    assert (ran, job.finished, job.given_up) == ([], False, False)
    assert job.step() is True
    assert (ran, job.given_up, job.refused.code) == ([], True, "main_unproven")


@pytest.mark.parametrize("code", ["slow", "forked", "free_threaded", "switch_interval"])
def test_a_reason_that_lasts_is_told_also_when_main_has_not_come_by_since(code):
    job = main_thread.MainThreadJob(lambda on_main: None, lambda: None, time.monotonic() - 1)
    job.refused = idle_check.NotIdleError(code, "as found")
    job._call_pending_since = time.monotonic() - 60
    assert job.step()
    assert (job.given_up, job.refused.code, job.refused.where) == (True, code, "as found")


def test_what_makes_a_free_impossible_is_told_before_where_main_is(monkeypatch):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.5)
    try:
        job = main_thread.MainThreadJob(lambda on_main: None, lambda: None, time.monotonic() - 1)
        assert job.step()
    finally:
        sys.setswitchinterval(interval)
    assert (job.refused.code, job.refused.where) == ("switch_interval", "0.5 s")
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    job = main_thread.MainThreadJob(lambda on_main: None, lambda: None, time.monotonic() - 1)
    assert job.step()
    assert job.refused.code == "free_threaded"
