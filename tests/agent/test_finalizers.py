"""No finalizer of the host runs on the agent's thread, and the host's collector stays its own.

Python collects cycles on whichever thread makes one object too many, and a frame that somebody looks
at outlives its function. Finalizers belong to the host's threads: Tk, Qt and sqlite3 insist on it.
"""

import interpreters
import pytest
from host_kit import ALONE, CANARIES, Load, ask_for_report, run_host, start_host
from thorough import two_sizes
from worker_kit import NO_MPS

each_kind_of_python = pytest.mark.parametrize("version", interpreters.EACH_KIND)

IMPORTS = "import torch, mpsbar\n"
ATTACH = IMPORTS + "assert mpsbar.attach()\n"

HOSTS = {
    "busy on two threads, switching often": """
def churn():
    while True:
        drop_cycles(30)
        event.wait(0.001)
sys.setswitchinterval(1e-5)
start(churn)
churn()
""",
    "queue.get": """
waiting = queue.Queue()
while True:
    fill(12)  # the queue makes some objects on its way to its wait
    try: waiting.get(timeout=0.02)
    except queue.Empty: pass
""",
    "time.sleep": """
while True:
    fill()
    time.sleep(0.02)
""",
    "an event loop": """
import asyncio
async def main():
    while True:
        fill(30)  # so does asyncio
        await asyncio.sleep(0.02)
asyncio.run(main())
""",
    "collections at every object": """
def some():
    while True:
        drop_cycles()
        event.wait(0.001)
start(some)
some()
""",
    "collections of all generations": """
while True:
    drop_cycles()
    time.sleep(0.001)
""",
}
# Set before there is an agent: what a host sets in the midst of the agent's work is in force at once, and
# there is no pause until the agent's next wait (see gc_pause).
THRESHOLDS = {
    "collections at every object": "gc.set_threshold(1)\n",
    "collections of all generations": "gc.set_threshold(5, 1, 1)\n",
}
# Code of the host that Python calls on every thread, ours too: it makes objects in our midst.
OBSERVERS = {
    "sys.monitoring": """
def observe(*_): [[] for _ in range(5)]
monitoring = sys.monitoring
monitoring.use_tool_id(4, "canary")
for each in (monitoring.events.PY_START, monitoring.events.PY_RETURN, monitoring.events.LINE):
    monitoring.register_callback(4, each, observe)
monitoring.set_events(4, monitoring.events.PY_START | monitoring.events.PY_RETURN | monitoring.events.LINE)
""",
    "audit hooks": """
def observe(*_): [[] for _ in range(5)]
sys.addaudithook(observe)
""",
    "profile functions": """
def observe(*_): [[] for _ in range(5)]
sys.setprofile(observe)
getattr(threading, "setprofile_all_threads", threading.setprofile)(observe)  # 3.12
""",
    "trace functions": """
def observe(*_):
    [[] for _ in range(5)]
    return observe
sys.settrace(observe)
getattr(threading, "settrace_all_threads", threading.settrace)(observe)
""",
}
OBSERVED = """
while True:
    drop_cycles(5)
    event.wait(0.001)
"""

# Two threads that hardly wait, and a wait that has no frame: a Free may find no moment for itself.
MAY_REFUSE = ("busy on two threads, switching often", "time.sleep", "collections at every object")

# Functions that return while the agent looks at their frames.
FRAMES = """
gc.disable()  # what is counted here is frames alone
sys.setswitchinterval(1e-5)
def compute():
    held = Plain()
    for _ in range(100): pass
def wait():
    held = Plain()
    event.wait(0.0005)
def nest(depth=5):
    held = Plain()
    if depth: nest(depth - 1)
    else: event.wait(0.0005)
def forever(function):
    while True: function()
"""
FRAME_HOSTS = {
    "computing": "start(lambda: forever(compute)); forever(compute)",
    "waiting": "start(lambda: forever(wait)); start(lambda: forever(nest)); forever(wait)",
}


def put_load_on(worker, rounds=4, *, must_free=False):
    with Load(worker) as load:
        for _ in range(rounds):
            load.poll(100)
            load.free(4, seconds=0.2)
            load.poll_slowly(0.1)
        load.count_tensors(3)
        if must_free:
            load.free_until_done()
    assert {answer["state"] for answer in load.frees + load.censuses} <= {"done", "busy"}
    return load


def check(worker):
    found = ask_for_report(worker, when_enough=True)
    assert found["ran"] > 100, found
    assert (found["foreign"], found["kinds"]) == (0, []), found


@each_kind_of_python
@pytest.mark.parametrize("host", HOSTS)
def test_no_finalizer_runs_on_the_agents_thread(workers, version, host):
    code = CANARIES + IMPORTS + THRESHOLDS.get(host, "") + ATTACH + HOSTS[host]
    worker = start_host(workers, code, version)
    put_load_on(worker, must_free=host not in MAY_REFUSE)
    check(worker)


@each_kind_of_python
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("observer", OBSERVERS)
def test_hosts_that_observe_every_thread(workers, version, observer, before):
    """Set before the agent is attached, and after it."""
    if observer == "sys.monitoring" and version in ("3.9", "3.10", "3.11"):
        pytest.skip("sys.monitoring is new in 3.12")
    steps = [OBSERVERS[observer], ATTACH] if before else [ATTACH, OBSERVERS[observer]]
    worker = start_host(workers, CANARIES + "".join(steps) + OBSERVED, version)
    put_load_on(worker, rounds=2)
    check(worker)


@each_kind_of_python
@two_sizes("polls", small=[1_000], whole=[10_000])
def test_many_polls_frees_and_censuses(workers, version, polls):
    """For 100 polls five frees and a census; the whole is 10,000 polls, 500 frees, 100 censuses."""
    worker = start_host(workers, CANARIES + IMPORTS + """
gc.set_threshold(50, 5, 5)
gc.freeze()  # so that a collection is quick
""" + ATTACH + """
while True:
    drop_cycles(5)
    event.wait(0.0005)
""", version)  # fmt: skip
    with Load(worker) as load:
        for _ in range(10):
            load.poll(polls // 10)  # each is answered
            load.free(polls // 200, seconds=0.2)
            load.count_tensors(polls // 1000)
        assert ALONE or (len(load.frees), len(load.censuses)) == (polls // 20, polls // 100)
        load.free_until_done(polls // 40)
    check(worker)


# A Free comes between any two bytecodes of main, also in the midst of a call of a GUI toolkit.
BELOW = """
import _tkinter, torch, mpsbar  # a toolkit: beside it nothing is collected by us
below = []
def record(kind, usual=record):
    usual(kind)
    frame = sys._getframe()
    while frame is not None:
        code = frame.f_code
        # On the line of the `def` 3.12 runs what the host itself had scheduled.
        if os.sep + "agent" + os.sep in code.co_filename and frame.f_lineno != code.co_firstlineno:
            below.append(f"{code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
def report(usual=report): return dict(usual(), below=len(below), where=sorted(set(below)))
assert mpsbar.attach()
def spin():
    for _ in range(5000): pass
while True:
    fill(3)
    spin()
"""


@each_kind_of_python
def test_our_code_on_main_starts_no_collection(workers, version):
    worker = start_host(workers, CANARIES + BELOW, version)
    with Load(worker) as load:
        load.free(40, seconds=1)
        load.free_until_done()
    found = ask_for_report(worker, when_enough=True)
    assert found["ran"] > 100
    assert (found["below"], found["where"], found["foreign"]) == (0, [], 0)


@each_kind_of_python
@pytest.mark.parametrize("host", FRAME_HOSTS)
@two_sizes("frees", small=[6], whole=[12])
def test_no_frame_of_the_host_ends_in_the_agents_hands(workers, version, host, frees):
    worker = start_host(workers, CANARIES + ATTACH + FRAMES + FRAME_HOSTS[host], version)
    with Load(worker) as load:
        load.free(frees, seconds=0.1)
    check(worker)


# The same without luck: the function returns while its frame is looked at.
LOOKED_AT = """
from mpsbar.agent import host_frames, pending_call
inside, looked = threading.Event(), threading.Event()
def compute():
    held = Plain()
    inside.set()
    looked.wait()
def look():
    inside.wait()
    frames = host_frames.current_frames()
    stack = host_frames.read_stack(frames.get(thread.ident))
    looked.set()
    thread.join()
    host_frames.drop_references(stack)
    host_frames.drop_frames(frames)
def work():
    join_host()
    compute()
thread = threading.Thread(target=work)
thread.start()
agent = threading.Thread(target=look)
agent.start()
agent.join()
left = number(ran)
pending_call.drop_left_over()
end = time.monotonic() + 60  # it comes between two of these
while not number(ran) and time.monotonic() < end: pass
print(left, number(ran), foreign)
"""


@each_kind_of_python
def test_what_a_frame_holds_that_ended_in_the_agents_hands_ends_on_main(workers, version):
    done = run_host(workers, CANARIES + LOOKED_AT, version)
    assert (done.stdout, done.stderr) == ("0 1 []\n", "")


# What only the agent still holds at the very end of its work: nothing else is asked of it afterwards.
LEFT_OVER = (
    CANARIES
    + """
from mpsbar.agent import host_frames, idle_check, server
server.CHECK_SECONDS = EVERY
limit = sys.getrecursionlimit()  # a check of the agent may raise it for a moment
"""
    + ATTACH
    + """
at_end = idle_check.forget_call_sites
def leave():
    if not number(made): host_frames.left_over.append(Plain())
def look():
    at_end()
    leave()
LEAVE
print("ready", flush=True)
def report(): return {"foreign": foreign}
while not (number(made) and number(ran) and sys.getrecursionlimit() == limit): time.sleep(0.001)
print("dropped", flush=True)
while True: time.sleep(0.01)
"""
)


@each_kind_of_python
@pytest.mark.parametrize("moment", ["after a Free", "at a check"])
def test_what_is_left_at_the_end_is_dropped_on_main_without_another_request(
    workers, version, moment
):
    if moment == "after a Free":
        every, leave = "30", "idle_check.forget_call_sites = look"
    else:
        every, leave = "0.2", "leave()"
    code = LEFT_OVER.replace("EVERY", every).replace("LEAVE", leave)
    worker = start_host(workers, code, version)
    worker.wait_line("ready")
    if moment == "after a Free":
        worker.ask("free", seconds=1)
    worker.wait_line("dropped")
    assert ask_for_report(worker) == {"foreign": []}


# Main runs no bytecode any more: what is left for it stays, and all else is as it was.
LEFT_WHILE_MAIN_WAITS = (
    CANARIES
    + """
import ctypes
from mpsbar.agent import host_frames, idle_check, server
server.CHECK_SECONDS = server.CHECK_AFTER_JOB_SECONDS = 0.05
limit = sys.getrecursionlimit()
"""
    + ATTACH
    + """
ended = threading.Event()
at_end = idle_check.forget_call_sites
def note_end():
    at_end()
    ended.set()
idle_check.forget_call_sites = note_end
def compute():  # so that the Free is refused, again and again
    while not ended.is_set():
        if not host_frames.left_over: host_frames.left_over.append(Plain())
    end = time.monotonic() + 60  # a check of the agent may raise it for a moment
    while (above := sys.getrecursionlimit() - limit) and time.monotonic() < end: time.sleep(0.01)
    function = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p)
    added = ctypes.pythonapi.Py_AddPendingCall(function, None)
    print("looked", above, added, len(host_frames.left_over) > 0, flush=True)
threading.Thread(target=compute, daemon=True).start()
lock = threading.Lock()
lock.acquire()
print("computes", flush=True)
lock.acquire()
"""
)


@each_kind_of_python
def test_while_main_waits_its_limit_and_its_queue_of_calls_are_the_hosts(workers, version):
    worker = start_host(workers, LEFT_WHILE_MAIN_WAITS, version)
    worker.wait_line("computes")
    assert worker.ask("free", seconds=0.3)["state"] == "busy"
    assert worker.wait_line("looked") == "looked 0 0 True"


# A loop that is over while the agent wakes it: the subclass makes sure of that.
LOOPS = """
import asyncio
class Loop(asyncio.SelectorEventLoop):
    def call_soon_threadsafe(self, *arguments, **context):
        handle = super().call_soon_threadsafe(*arguments, **context)
        time.sleep(0.1)
        return handle
    def __del__(self): record("event loop")
def sleep():
    loop = Loop()
    loop.run_until_complete(asyncio.sleep(0.03))
    loop.close()
while True:
    sleep()
    drop_cycles(20)
"""


@each_kind_of_python
def test_no_event_loop_of_the_host_ends_in_the_agents_hands(workers, version):
    worker = start_host(workers, CANARIES + ATTACH + LOOPS, version)
    with Load(worker) as load:
        load.free(12, seconds=1)
        load.count_tensors(3)
        load.free_until_done()
    check(worker)


@each_kind_of_python
def test_attaching_while_garbage_waits_starts_no_collection_of_ours(workers, version):
    """In the process and in its forked children, each with a thread that drops cycles meanwhile."""
    done = run_host(workers, CANARIES + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork beside any thread
import mpsbar
def drop():
    while True:
        drop_cycles(3)
        time.sleep(0.0001)
def live():
    own.clear()
    join_host()
    gc.set_threshold(1)
    start(drop)
    assert mpsbar.attach()
    time.sleep(0.1)
    end = time.monotonic() + 60  # for a core
    while number(ran) <= 10 and time.monotonic() < end: time.sleep(0.01)
    return len(foreign)
found = []
for _ in range(8):
    pid = os.fork()
    if not pid: os._exit(min(live(), 100))
    found.append(os.waitpid(pid, 0)[1] >> 8)
print(found + [live()], number(ran) > 10)
""", version)  # fmt: skip
    assert (done.stdout, done.stderr) == (f"{[0] * 9} True\n", "")


TENSORS = """
class Cycle(Cycle):
    def __init__(self):
        super().__init__()
        self.tensor = torch.ones(8, device=DEVICE)
x = torch.ones(16, 16, device=DEVICE)
while True:
    x @ x
    fill()
    time.sleep(0.02)
"""


def test_real_torch_on_the_cpu(workers):
    host = CANARIES + ATTACH + "DEVICE = 'cpu'" + TENSORS
    worker = start_host(workers, host, stand_in=False)
    load = put_load_on(worker, rounds=6)
    check(worker)
    assert ALONE or load.done() == len(load.frees)


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
@pytest.mark.parametrize("wait", ["time.sleep(0.02)", "event.wait(0.02)"])
def test_real_torch_on_software_mps(workers, wait):
    host = CANARIES + ATTACH + "DEVICE = 'mps'" + TENSORS
    host = host.replace("time.sleep(0.02)", wait)
    worker = start_host(workers, host, stand_in=False, SOFTMPS="1", SOFTMPS_STRICT="1")
    put_load_on(worker, rounds=6)
    check(worker)
