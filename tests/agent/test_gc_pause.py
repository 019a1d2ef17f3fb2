"""The collector stays off a thread while that thread's Python code runs, and only then."""

import gc
import json
import os
import subprocess
import sys

import host_kit
import interpreters
import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.agent import gc_pause, gil_io

every_python = pytest.mark.parametrize("version", interpreters.VERSIONS)

# A thread that allocates like the agent, beside a host that makes garbage with finalizers, lets the
# GIL go in C code (3.12 runs what is scheduled there on any thread) and uses up all free tuples.
HOST = """
import gc, json, os, sys, threading, time
from mpsbar.agent import gc_pause, gil_io
sys.setswitchinterval(1e-5)
gc.set_threshold(*json.loads(sys.argv[1]))
is_paused = sys.argv[2] == "paused"
finalized = {}
class Garbage:
    def __init__(self): self.me = self
    def __del__(self):
        ident = threading.get_ident()
        finalized[ident] = finalized.get(ident, 0) + 1
def agent():
    rounds = 0
    # Unpaused until one was seen: that they come is certain, when they come is not. Paused until the
    # host has made enough: on busy cores it may fall behind.
    while (
        rounds < 300 or sum(list(finalized.values())) <= 5_000
        if is_paused else not finalized.get(threading.get_ident())
    ):
        rounds += 1
        objects = [[] for _ in range(1500)]  # enough for a collection, if there may be one
        [json.loads(json.dumps({"a": [1, {"b": []}]})) for _ in range(5)]
        objects = None
        wait = gil_io.poll_arguments(None, 0, 0.001)
        if is_paused: pause.call(gil_io.poll, *wait)
        else: gil_io.poll(*wait)
pause = gc_pause.CollectorPause()
if is_paused: pause.begin()
thread = threading.Thread(target=agent)
thread.start()
tuples = []
while thread.is_alive():
    for _ in range(50): Garbage()
    tuples.append([(i, i, i) for i in range(300)])
    if len(tuples) > 20: tuples.clear()
    os.stat("/")
pause.end()
print(json.dumps([finalized.get(thread.ident, 0), sum(finalized.values()), gc.get_threshold()]))
"""


def run_host(version, code, *arguments):
    done = subprocess.run(
        [interpreters.need(version), "-c", code, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("version", interpreters.EACH_KIND)
@pytest.mark.parametrize("thresholds", [[700, 10, 10], [5, 2, 2]], ids=str)
def test_no_finalizer_runs_on_a_thread_that_pauses_the_collector(version, thresholds):
    on_agent, everywhere, left = run_host(version, HOST, json.dumps(thresholds), "paused")
    assert everywhere > 5_000  # the host's collections went on
    assert on_agent == 0
    assert left[:2] == thresholds[:2]


@every_python
def test_without_the_pause_they_do(version):
    # What makes the test above worth its name.
    assert run_host(version, HOST, "[700, 10, 10]", "not paused")[0] > 0


# Another thread of the host may get the GIL between any two bytecodes of ours, and call
# gc.set_threshold() there. A tracer stands for it: it comes at every bytecode, one after the other.
SETTER = """
import gc, itertools, json, sys
from mpsbar.agent import gc_pause
FILES = (gc_pause.__file__, gc_pause.contextmanager.__code__.co_filename)
def set_at(moment, wanted, function):
    events = itertools.count()
    came = []
    def trace(frame, event, argument):
        if frame.f_code.co_filename not in FILES: return None
        frame.f_trace_opcodes = True
        if next(events) == moment:
            gc.set_threshold(*wanted)
            came.append(True)
        return trace
    sys.settrace(trace)
    try: function()
    finally: sys.settrace(None)
    return bool(came)
def paused():
    with gc_pause.paused(): pass
def wait(): seen.append(pause.call(gc.get_threshold))
def wait_in_job():
    with gc_pause.paused(): pause.call(len, "")
def main_job():
    on_main.begin()
    on_main.end()
def nested_job():
    on_main.begin()
    with gc_pause.paused(): pass
    on_main.end()
OPERATIONS = {"job on main": main_job, "a job in a job": nested_job,
    "begin": lambda: pause.begin(), "end": lambda: pause.end(), "wait": wait,
    "job": paused, "job while the agent waits": paused, "wait in a job": wait_in_job}
faults, moments = [], {}
for name, function in OPERATIONS.items():
    for moment in itertools.count():
        gc.set_threshold(700, 10, 10)
        pause, seen, on_main = gc_pause.CollectorPause(), [], gc_pause.JobPause()
        if name not in ("begin", "job while the agent waits"): pause.begin()
        wanted = (1000 + moment, 11, 12)
        if not set_at(moment, wanted, function): break
        # In force at the next wait of the agent, and after its end.
        if name != "job while the agent waits": seen = [pause.call(gc.get_threshold)]
        pause.end()
        seen.append(gc.get_threshold())
        wrong = [each for each in seen if each[:2] != wanted[:2]]
        if wrong: faults.append([name, moment, wrong[0]])
    moments[name] = moment
print(json.dumps([faults, moments]))
"""


@every_python
def test_what_the_host_sets_between_any_two_bytecodes_of_ours_stays(version):
    faults, moments = run_host(version, SETTER)
    assert faults == []
    assert min(moments.values()) > 10, moments  # a tracer that never came would prove nothing


@pytest.fixture
def pause():
    thresholds = gc.get_threshold()
    pause = gc_pause.CollectorPause()
    pause.begin()
    yield pause
    pause.end()
    gc.set_threshold(*thresholds)


def test_the_hosts_thresholds_are_in_force_during_the_call(pause):
    assert gc.get_threshold()[0] == gc_pause.NEVER
    assert pause.call(gc.get_threshold)[:2] == pause.host[:2]
    assert gc.get_threshold()[0] == gc_pause.NEVER
    pause.end()
    assert gc.get_threshold() == pause.host


def test_what_the_host_sets_during_the_call_is_its_own_again_at_the_next(pause):
    pause.call(gc.set_threshold, 123, 4, 5)
    assert gc.get_threshold()[0] == gc_pause.NEVER
    assert pause.call(gc.get_threshold)[:2] == (123, 4)
    pause.end()
    assert gc.get_threshold()[:2] == (123, 4)


def test_what_the_host_sets_while_we_work_is_in_force_at_the_next_call(pause):
    gc.set_threshold(321, 4, 5)  # another thread got the GIL in the midst of our work
    assert pause.call(gc.get_threshold)[:2] == (321, 4)
    gc.set_threshold(456, 7, 8)
    pause.end()
    assert gc.get_threshold()[:2] == (456, 7)


def test_our_number_that_the_host_read_and_wrote_back_does_not_stay(pause):
    host = pause.host
    pause.call(gc.set_threshold, *gc_pause.PAUSED)
    assert pause.call(gc.get_threshold) == host


def test_a_host_that_makes_more_of_our_number_gets_no_error_and_its_own_back(pause):
    host = pause.host
    read = gc.get_threshold()
    pause.call(gc.set_threshold, read[0] * 10, read[1] * 10, read[1] * 10)
    assert pause.call(gc.get_threshold) == host


def test_main_leaves_the_agents_pause_alone(pause):
    with gc_pause.paused():  # begun while the agent worked, or while it waited
        pass
    assert gc.get_threshold()[0] == gc_pause.NEVER
    pause.end()
    with gc_pause.paused():
        pause.begin()
    assert gc.get_threshold()[0] >= gc_pause.NEVER
    pause.end()
    with gc_pause.paused():
        assert gc.get_threshold()[0] >= gc_pause.NEVER
    assert gc.get_threshold() == pause.host


def test_what_a_job_found_is_the_hosts_when_the_agent_wakes_in_it(pause):
    pause.end()
    gc.set_threshold(0, 4, 5)  # collections are off
    with gc_pause.paused():
        pause.begin()
        pause.call(len, "")
    assert pause.call(gc.get_threshold)[:2] == (0, 4)


def test_no_collection_in_a_job_while_the_agent_waits(pause):
    host = pause.host
    with gc_pause.paused():
        assert pause.call(gc.get_threshold) == gc_pause.JOB
        assert gc.get_threshold() == gc_pause.JOB  # and while it works
        with gc_pause.paused():
            pause.call(len, "")
        assert gc.get_threshold() == gc_pause.JOB
    assert gc.get_threshold() == gc_pause.PAUSED

    def end_in_wait():
        job.end()
        return gc.get_threshold()

    job = gc_pause.JobPause()
    job.begin()
    assert pause.call(end_in_wait) == host
    assert gc.get_threshold() == gc_pause.PAUSED


def test_what_the_host_sets_before_a_job_in_the_agents_wait_comes_after_it(pause):
    def set_and_run_job():
        gc.set_threshold(123, 4, 5)
        with gc_pause.paused():
            pass
        return gc.get_threshold()

    assert pause.call(set_and_run_job)[:2] == (123, 4)
    assert pause.call(gc.get_threshold)[:2] == (123, 4)


# An exception of the host may come between any two bytecodes of our call on main: a Ctrl-C.
INTERRUPTED = """
import gc, itertools, json, sys
from mpsbar.agent import gc_pause, main_thread, pending_call
FILES = (gc_pause.__file__, pending_call.__file__)
EVENT = "line" if sys.version_info[:2] == (3, 12) else "opcode"  # there they come late
call = pending_call.main_call.trigger
def interrupt_at(moment):
    events = itertools.count()
    def trace(frame, event, argument):
        if frame.f_code.co_filename not in FILES: return None
        frame.f_trace_opcodes = True
        if event == EVENT and next(events) == moment: raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try: bool(call)
    except KeyboardInterrupt: return True
    finally: sys.settrace(None)
    return False
faults = []
gc.set_threshold(700, 10, 10)
pause = gc_pause.CollectorPause()
pause.begin()
for moment in itertools.count():
    if not interrupt_at(moment): break
    try: bool(call)
    except BaseException as error: faults.append([moment, repr(error)])
    interrupt_at(moment)
    main_thread.restore_collector()  # as the agent does it
    if pause.call(gc.get_threshold)[:2] != (700, 10): faults.append([moment, gc.get_threshold()])
print(json.dumps([faults, moment]))
"""


@every_python
def test_an_exception_of_the_host_in_our_call_on_main_leaves_nothing_behind(version):
    faults, moments = run_host(version, INTERRUPTED)
    assert faults == []
    assert moments > 10


def test_a_forked_child_has_the_hosts_thresholds(pause):
    pid = os.fork()
    if not pid:
        os._exit(gc.get_threshold() != pause.host)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("enabled", [True, False])
def test_whether_the_collector_is_on_is_not_touched(pause, enabled):
    try:
        gc.enable() if enabled else gc.disable()
        assert pause.call(gc.isenabled) is enabled
        assert gc.isenabled() is enabled
        pause.call(gc.disable if enabled else gc.enable)
        assert gc.isenabled() is not enabled
    finally:
        gc.enable()


def test_a_call_that_fails_leaves_the_collector_paused(pause):
    with pytest.raises(ValueError, match="invalid literal"):
        pause.call(int, "x")
    assert gc.get_threshold()[0] == gc_pause.NEVER
    assert pause.call(gc.get_threshold) == pause.host


def test_a_wait_is_a_millisecond_at_least_and_a_minute_at_most():
    for seconds, expected in (
        (-1, 1),
        (0, 1),
        (0.0001, 1),
        (0.0025, 3),
        (30, 30_000),
        (1e9, 60_000),
    ):
        assert gil_io.poll_arguments(None, 0, seconds)[2] == expected


@every_python
def test_this_pythons_collector_is_known(version):
    code = "from mpsbar.agent import gc_pause as g; print(g.is_supported(), g.PAUSED)"
    done = subprocess.run(
        [interpreters.need(version), "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("True "), done.stderr


@pytest.mark.parametrize("flag", ["_is_gil_enabled = lambda: False", "abiflags = 't'"])
def test_a_python_without_the_gil_is_left_alone(workers, flag):
    """None is at hand: what tells it is replaced. The second one is of a build whose GIL is on."""
    code = f"""
import gc, sys, threading, torch, mpsbar
sys.{flag}
before = gc.get_threshold(), threading.active_count()
print(mpsbar.attach(), (gc.get_threshold(), threading.active_count()) == before)
"""
    done = host_kit.run_host(workers, code)
    assert done.stdout == "False True\n"
    assert done.stderr == (
        "mpsbar: not attached: a free-threaded Python (without the GIL) is not supported yet\n"
    )


@pytest.mark.parametrize("has_gil", [True, False])
def test_without_the_gil_collections_are_never_turned_off(monkeypatch, has_gil):
    monkeypatch.setattr(gc_pause, "_memory", (None, 0, 0))
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: has_gil, raising=False)
    assert bool(gc_pause._taking_back()) == has_gil


@pytest.mark.parametrize(
    "unknown",
    ["gc_pause._KEEPS_THIRD, gc_pause._memory = False, None", "gc_pause._NEWEST = (3, 8)"],
)
def test_a_collector_that_is_not_known_is_left_alone(workers, unknown):
    """In place of a Python that is newer than mpsbar."""
    code = f"""
from mpsbar.agent import gc_pause
{unknown}
import gc, threading, torch, mpsbar
before = gc.get_threshold(), threading.active_count()
print(mpsbar.attach(), (gc.get_threshold(), threading.active_count()) == before)
"""
    done = host_kit.run_host(workers, code)
    assert done.stdout == "False True\n"
    assert done.stderr == (
        "mpsbar: not attached: the garbage collector of this Python is not known to mpsbar yet\n"
    )
