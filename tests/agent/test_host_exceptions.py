"""A Free on the host's main thread: it raises nothing there, and swallows nothing that was on its way."""

import interpreters
import pytest
from host_kit import ALONE, CANARIES, Load, ask_for_report, start_host
from worker_kit import TIMEOUT, wait_for

each_kind_of_python = pytest.mark.parametrize("version", interpreters.EACH_KIND)

START = (
    CANARIES
    + """
import ctypes, torch, mpsbar
gc.disable()  # collections happen in a Free only
def finish(): open("finished", "w").close()
"""
)


def free_until_finished(worker, seconds=0.3):
    finished = worker.run_dir / "finished"
    with Load(worker) as load:
        wait_for(lambda: load.free(1, seconds) or finished.exists(), "end of the host's work")
    return load


# --------------------------------------------------------------------- the recursion limit
DEEP = """
faults = []
sys.unraisablehook = lambda info: faults.append(f"unraisable {info.exc_type.__name__}")
def leaf(): return 1
def stay(seconds):
    end = time.monotonic() + seconds
    leaf()
    while time.monotonic() < end:
        leaf()
        for _ in range(50): pass
def dive(levels, seconds):
    if levels: dive(levels - 1, seconds)
    else: stay(seconds)
def find_deepest():
    for levels in range(sys.getrecursionlimit(), 0, -1):
        try: dive(levels, 0)
        except RecursionError: pass
        else: return levels
deepest = find_deepest()
class Deep(Cycle):
    def __del__(self): dive(100, 0)  # its calls may fit only where the host is not deep
def report(): return {"deepest": deepest, "faults": faults}
assert mpsbar.attach()
for less in range(80):
    drop_cycles(2)
    Deep()
    try: dive(deepest - less, 0.03)
    except RecursionError: faults.append(less)
finish()
while True: time.sleep(0.01)
"""


@each_kind_of_python
def test_no_recursion_error_that_the_host_would_not_have_had_alone(workers, version):
    worker = start_host(workers, START + DEEP, version)
    free_until_finished(worker)
    assert ALONE or worker.ask("free")["state"] == "done"  # it is not deep any more
    found = ask_for_report(worker)
    assert found["faults"] == []
    assert found["deepest"] > 900
    assert worker.end() == ""


# ------------------------------------------------- exceptions that other threads send to main
# The next is sent when main is ready for it and the Free is in the middle of its work.
SENT = """
class Custom(Exception): pass
class Custom2(RuntimeError): pass
KINDS = [TimeoutError, Custom, Custom2, RuntimeError, KeyboardInterrupt, "signal"]
EACH = 6
signal.signal(signal.SIGINT, signal.default_int_handler)
ready, inside, over = False, False, False
sent, caught, others = [], [], []
main = threading.get_ident()
def send(kind):
    if kind == "signal": signal.pthread_kill(main, signal.SIGINT)
    else: ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(kind))
def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end: event.wait(0.0005)
    return condition()
def send_all():
    global over
    for kind in KINDS:
        name = getattr(kind, "__name__", "KeyboardInterrupt")
        for _ in range(EACH):
            wait_until(lambda: ready and inside, TIMEOUT)
            if not wait_until(lambda: ready, 60): others.append("main was never ready")
            sent.append(name)
            send(kind)
            # Delivered at main's next bytecode; the time is for busy cores.
            if not wait_until(lambda: len(caught) >= len(sent), 60):
                others.append(f"lost: {name}")
                sent.pop()
                break
    over = True
def be_slow():
    global inside
    inside = True
    try:
        for _ in range(15): time.sleep(0.001)
    finally: inside = False
def work():
    for _ in range(1000): pass
# In a function: up to 3.12 the closing jump of a loop lies outside the try around it.
def go_on():
    while not over: work()
def catch_all():
    global ready
    while not over:
        try:
            ready = True
            go_on()
        except BaseException as error:
            ready = False
            caught.append(type(error).__name__)
            if error.__context__ or error.__cause__: others.append(f"context {error.__context__!r}")
            trace = error.__traceback__
            while trace is not None:
                path = trace.tb_frame.f_code.co_filename
                if "mpsbar/agent" in path: others.append(f"on its traceback: {path}")
                trace = trace.tb_next
def report(): return {"sent": sent, "caught": caught, "others": others}
assert mpsbar.attach()
"""
RUN = """
start(send_all)
catch_all()
finish()
while True: time.sleep(0.01)
"""
SLOW = {
    "empty_cache": "torch.work = be_slow\n",
    "a finalizer": """
waiting = []
class Slow(Cycle):
    def __del__(self):
        waiting.clear()
        be_slow()
def work(usual=work):
    if not waiting:
        waiting.append(True)
        Slow()
    usual()
sys.unraisablehook = lambda info: others.append(f"unraisable {info.exc_value!r}")
""",
}


@each_kind_of_python
@pytest.mark.parametrize("slow", SLOW)
def test_what_is_sent_to_main_during_a_free_arrives(workers, version, slow):
    seconds = 0.01 if ALONE else 5  # for a Free to be under way; then it is sent all the same
    host = f"TIMEOUT = {seconds}\n" + START + SENT + SLOW[slow] + RUN
    worker = start_host(workers, host, version)
    free_until_finished(worker)
    found = ask_for_report(worker)
    assert found["others"] == []
    assert found["caught"] == found["sent"]
    assert len(found["sent"]) == 36
    assert worker.end() == ""


# ---------------------------------------------------------------------- errors of our own
OWN_ERRORS = """
faults, number = [], 0
def fail():
    global number
    number += 1
    raise [RuntimeError("MPS backend out of memory"), KeyError("x"), OSError(5, "failed")][number % 3]
torch.work = fail
sys.unraisablehook = lambda info: faults.append(f"unraisable {info.exc_value!r}")
threading.excepthook = lambda info: faults.append(f"thread {info.exc_value!r}")
def report(): return {"faults": faults, "number": number}
assert mpsbar.attach()
while True:
    try:
        MAIN
    except BaseException as error: faults.append(repr(error))
"""


@each_kind_of_python
@pytest.mark.parametrize("main", ["for _ in range(1000): pass", "event.wait(0.05)"])
def test_an_error_of_empty_cache_is_told_to_who_asked_and_not_to_the_host(workers, version, main):
    worker = start_host(workers, START + OWN_ERRORS.replace("MAIN", main), version)
    with Load(worker) as load:
        load.free(9, seconds=TIMEOUT / 4)
    found = ask_for_report(worker)
    assert found == {"faults": [], "number": 0 if ALONE else 9}
    errors = [answer["backends"]["mps"].get("error") for answer in load.frees]
    assert ALONE or (None not in errors and "MPS backend out of memory" in errors), errors
    assert worker.end() == ""
