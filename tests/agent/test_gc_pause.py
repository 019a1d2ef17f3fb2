"""The collector stays off a thread while that thread's Python code runs, and only then."""

import gc
import json
import os
import subprocess

import interpreters
import pytest
from worker_kit import PATIENCE, ROOT

from mpsbar.agent import gc_pause, gil_io

# A thread that allocates like the agent, beside a host that makes garbage with finalizers, lets the
# GIL go in C code (3.12 runs what is scheduled there on any thread) and uses up all free tuples.
HOST = """
import gc, json, os, sys, threading, time
from mpsbar.agent import gc_pause, gil_io
sys.setswitchinterval(1e-5)
gc.set_threshold(*json.loads(sys.argv[1]))
finalized = {}
class Garbage:
    def __init__(self): self.me = self
    def __del__(self):
        ident = threading.get_ident()
        finalized[ident] = finalized.get(ident, 0) + 1
def agent():
    for _ in range(1000):
        [json.loads(json.dumps({"a": [1, {"b": []}]})) for _ in range(5)]
        wait = gil_io.poll_arguments(None, 0, 0.001)
        if sys.argv[2] == "paused": pause.call(gil_io.poll, *wait)
        else: gil_io.poll(*wait)
pause = gc_pause.CollectorPause()
if sys.argv[2] == "paused": pause.begin()
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


def run_host(python, thresholds, mode):
    done = subprocess.run(
        [python, "-c", HOST, json.dumps(thresholds), mode],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("version", interpreters.VERSIONS)
@pytest.mark.parametrize("thresholds", [[700, 10, 10], [5, 2, 2]], ids=str)
def test_no_finalizer_runs_on_a_thread_that_pauses_the_collector(version, thresholds):
    on_agent, everywhere, left = run_host(interpreters.need(version), thresholds, "paused")
    assert everywhere > 10_000  # the host's collections went on
    assert on_agent == 0
    assert left[:2] == thresholds[:2]


def test_without_the_pause_they_do():
    # What makes the test above worth its name; 3.12 and later are kinder, by chance.
    python = interpreters.need("3.10")
    assert any(run_host(python, [700, 10, 10], "not paused")[0] for _ in range(5))


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
    assert gc.get_threshold()[0] >= gc_pause.NEVER
    pause.end()
    with gc_pause.paused():
        pause.begin()
    assert gc.get_threshold()[0] >= gc_pause.NEVER
    pause.end()
    with gc_pause.paused():
        assert gc.get_threshold()[0] >= gc_pause.NEVER
    assert gc.get_threshold() == pause.host


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
        assert gil_io.poll_arguments(None, 0, seconds)[2].value == expected
