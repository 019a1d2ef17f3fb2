"""Free When Possible: a Free that stays with the agent until a safe moment comes."""

import signal

import pytest
from host_kit import start_host
from worker_kit import UNPACED, wait_for

from mpsbar.core.actions import Freed, FreeWhenPossible
from mpsbar.monitor import Monitor

# A thread computes until SIGUSR1 comes; attempts are short here.
HOST = f"""
import hashlib, os, signal, sys, threading, time
{UNPACED}
import mpsbar.agent.pending_free as pending
pending.TRY_SECONDS = pending.REST_SECONDS = 0.2
import torch, mpsbar
computes = True
def stop(*_):
    global computes
    computes = False
signal.signal(signal.SIGUSR1, stop)
is_there = threading.Event()
def compute():
    is_there.set()
    while computes: hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000)
    threading.Event().wait()
threading.Thread(target=compute, name="trainer", daemon=True).start()
is_there.wait()
assert mpsbar.attach()
while True: time.sleep(0.1)
"""


@pytest.fixture
def monitor(workers, monkeypatch):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(workers.run_dir))
    made = Monitor()
    yield made
    made.close()


@pytest.fixture
def host(workers):
    return start_host(workers, HOST)


def test_it_waits_while_a_thread_computes_and_is_done_at_the_first_safe_moment(host):
    with host.connect() as client:
        answer = client.ask("free", when_possible=True, seconds=600)
        assert (answer["state"], answer["number"]) == ("busy", None)
        assert 0 < answer["kept"]["left"] <= 600
        assert client.ask("stats")["last_free"] is None

        def kept():
            return client.ask("stats")["kept_free"]

        wait_for(lambda: kept()["tries"] > 2, "more attempts")
        # On busy cores an attempt may end for want of a core.
        wait_for(lambda: kept()["reason"]["where"].startswith("trainer, host0.py:"), "its reason")
        host.process.send_signal(signal.SIGUSR1)
        last = wait_for(lambda: client.ask("stats")["last_free"], "its outcome")
        assert (last["number"], last["state"], last["when_possible"]) == (1, "done", True)
        assert client.ask("stats")["kept_free"] is None
    assert host.end() == ""


def test_a_monitor_that_asked_for_it_tells_its_outcome_once(host, monitor):
    """As an event, which a front end announces, and in the row of the process."""

    def list_frees():  # there may be alerts about this computer
        return [event for event in monitor.latest.events if isinstance(event.what, Freed)]

    monitor.interval = 0.05
    monitor.start()
    wait_for(lambda: monitor.latest.workers, "the worker")
    asked = monitor.perform(FreeWhenPossible(host.pid)).result()
    assert (asked.state, asked.pid) == ("waiting", host.pid)
    wait_for(lambda: any(each.pending_free for each in monitor.latest.workers), "the request")
    assert list_frees() == []
    host.process.send_signal(signal.SIGUSR1)
    (event,) = wait_for(list_frees, "its outcome")
    outcome = event.what
    assert (outcome.state, outcome.when_possible, outcome.asked_here) == ("done", True, False)
    assert monitor.latest.freed[host.pid] == outcome
    seen = monitor.ticks
    wait_for(lambda: monitor.ticks > seen + 5, "more ticks")
    assert list_frees() == [event]


def test_where_it_can_be_done_at_once_it_is(workers):
    idle = HOST.replace("computes = True", "computes = False", 1)
    worker = start_host(workers, idle.replace("REST_SECONDS = 0.2", "REST_SECONDS = 60"))
    with worker.connect() as client:
        answer = client.ask("free", when_possible=True)
        assert answer["state"] == "done"
        assert "kept" not in answer
        assert client.ask("stats")["kept_free"] is None


def test_it_is_cancelled(host):
    with host.connect() as client:
        assert client.ask("free", cancel=True) == {"state": "nothing"}
        client.ask("free", when_possible=True)
        assert client.ask("free", cancel=True) == {"state": "cancelled"}
        assert client.ask("stats")["kept_free"] is None
        host.process.send_signal(signal.SIGUSR1)
        answer = client.ask("free")  # the first that is told: the cancelled one did nothing
        assert (answer["state"], answer["number"]) == ("done", 1)


def test_one_for_a_process_and_a_usual_free_fulfils_it(host):
    with host.connect() as client, host.connect() as other:
        client.ask("free", when_possible=True)
        answer = other.ask("free", when_possible=True)
        assert answer["state"] == "busy"
        assert client.ask("stats")["kept_free"]["tries"] >= 2
        host.process.send_signal(signal.SIGUSR1)
        assert other.ask("free")["state"] == "done"
        assert client.ask("stats")["kept_free"] is None


def test_its_time_ends_and_that_is_told(host):
    with host.connect() as client:
        client.ask("free", when_possible=True, seconds=0.5)
        last = wait_for(lambda: client.ask("stats")["last_free"], "its outcome")
        assert (last["state"], last["freed"], last["when_possible"]) == ("busy", 0, True)
        assert client.ask("stats")["kept_free"] is None


def test_nothing_waits_in_a_process_that_can_never_be_freed(workers):
    """Python without the GIL: no thread can be stopped, whatever it does."""
    attach = "assert mpsbar.attach()\n"  # which such a Python refuses: it is made one afterwards
    made = "sys._is_gil_enabled = lambda: False\nprint('made', flush=True)\n"
    worker = start_host(workers, HOST.replace(attach, attach + made))
    worker.wait_line("made")
    with worker.connect() as client:
        answer = client.ask("free", when_possible=True, seconds=600)
        assert (answer["state"], answer["reason"]["code"]) == ("busy", "free_threaded")
        assert "kept" not in answer
        stats = client.ask("stats")
    assert stats["kept_free"] is None
    assert stats["last_free"]["reason"] == "free_threaded"
    assert (stats["last_free"]["state"], stats["last_free"]["when_possible"]) == ("busy", True)
