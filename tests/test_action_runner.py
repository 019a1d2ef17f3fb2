"""What is asked for beside the ticks: pending until it ends, of the process that was seen, its outcome on the next snapshot."""

import sys
import threading

import monitor_kit
import pytest
from monitor_kit import IDLE
from worker_kit import ATTACH, NO_MPS, TIMEOUT, wait_for

from mpsbar.core.actions import (
    CancelFree,
    Connect,
    Connected,
    FindTensors,
    Free,
    Freed,
    FreeWhenPossible,
    InspectPythons,
    Limit,
    Limited,
    ProbeDtypes,
    Stop,
    Stopped,
)
from mpsbar.core.dtype_results import Probe, Progress
from mpsbar.monitor import Monitor
from mpsbar.system import this_computer
from mpsbar.system.platform import GpuClient
from mpsbar.ui.status_table import render_status
from mpsbar.workers.environments import Environment, read_enabled

# Fixtures.
computer, monitor, patient = monitor_kit.computer, monitor_kit.monitor, monitor_kit.patient


def test_nothing_is_performed_after_the_end(monitor):
    monitor.close()
    with pytest.raises(RuntimeError, match="closed"):
        monitor.perform(Free(1))


def test_a_free_gets_to_know_whether_its_process_uses_the_gpu(
    monitor, computer, workers, monkeypatch
):
    """Without it an older torch, and MLX on a Mac, would never be freed."""
    hints = []
    monkeypatch.setattr(
        "mpsbar.action_runner.free_worker",
        lambda pid, hint, *_: hints.append((pid, hint)) or Freed(pid, "x", "done"),
    )
    computer.clients = {9: GpuClient(2, 0, True)}
    computer.pids[3] = "c"
    monitor.tick()
    for pid in (2, 3, 4):
        monitor.perform(Free(pid)).result(TIMEOUT)
    assert hints == [(2, True), (3, False), (4, None)]


def test_what_was_asked_is_pending_until_it_ends(monitor, monkeypatch):
    gate = threading.Event()
    outcome = Stopped(2, "x", "asked")
    monkeypatch.setattr("mpsbar.action_runner.stop", lambda *_: gate.wait(TIMEOUT) and outcome)
    action = Stop(2, 1.0, "x")
    future = monitor.perform(action)
    assert monitor.tick().pending == {action}
    gate.set()
    assert future.result(TIMEOUT) == outcome
    wait_for(lambda: monitor.tick().stopped == {2: outcome}, "the outcome")
    assert monitor.latest.pending == frozenset()


def test_tensors_and_connections_and_inspections(monitor, workers, monkeypatch, tmp_path):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path))
    # Of what torch brought along nothing is listed: on busy cores that alone takes too long.
    worker = workers.start("import gc, torch\ngc.freeze()\nbig = torch.zeros(1 << 20)\n" + IDLE)

    def find_groups():
        return monitor.perform(FindTensors(worker.pid)).result(TIMEOUT).groups

    # A count is cut short after a fifth of a second: on a busy machine it is asked for again.
    assert wait_for(find_groups, "tensors")[0].size == 4 << 20
    wait_for(lambda: worker.pid in monitor.tick().tensors, "the count")
    refused = monitor.perform(Connect("/no/such/python")).result(TIMEOUT)
    assert refused.state == "refused"
    assert read_enabled() == []
    monkeypatch.setattr("mpsbar.doctor_reader.find_pythons", lambda *_: [sys.executable])
    doctor_report = monitor.perform(InspectPythons()).result(TIMEOUT)
    assert doctor_report.pythons[0][0].torch.startswith("2.")


def test_a_connected_environment_is_remembered(monitor, monkeypatch, tmp_path):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path))
    environment = Environment("/v/bin/python", (3, 12), "/v", tmp_path, has_mpsbar=False)
    monkeypatch.setattr("mpsbar.workers.enable.read_environment", lambda _: environment)
    monkeypatch.setattr("mpsbar.workers.enable.read_answer", lambda *_: "1.0")
    enabled = Connected("/v/bin/python", "enabled", prefix="/v")
    assert monitor.perform(Connect("/v/bin/python")).result(TIMEOUT) == enabled
    assert read_enabled() == ["/v/bin/python"]


def test_an_outcome_has_the_name_that_was_shown_when_it_was_asked_for(
    monitor, computer, monkeypatch
):
    """A worker that does not answer sends none, and one that has ended is on no snapshot."""

    def end(pid, *_):
        del computer.pids[pid]
        monitor.tick()
        return Freed(pid, str(pid), "gone")

    monkeypatch.setattr("mpsbar.action_runner.free_worker", end)
    assert monitor.tick().names == {2: "train2.py"}
    assert monitor.perform(Free(2)).result(TIMEOUT).name == "train2.py"
    assert monitor.latest.names == {}


def test_stop_never_waits_behind_workers_that_hang(monitor, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr("mpsbar.action_runner.free_worker", lambda *_: gate.wait(TIMEOUT))
    stopped = Stopped(9, "x", "asked")
    monkeypatch.setattr("mpsbar.action_runner.stop", lambda *_: stopped)
    hung = [monitor.perform(Free(pid)) for pid in range(10, 20)]
    assert monitor.perform(Stop(9, 1.0, "x")).result(TIMEOUT) == stopped
    assert not any(future.done() for future in hung)
    gate.set()


def test_a_probe_is_cancelled_and_ends_with_the_monitor(monitor, monkeypatch):
    ended = []

    class Endless:
        def __init__(self, pythons):
            self.over = threading.Event()

        def cancel(self):
            self.over.set()

        def run(self, on_progress):
            on_progress(Progress(1, 4))
            ended.append(self.over.wait(TIMEOUT))
            return Probe("/p", "cancelled")

    monkeypatch.setattr("mpsbar.dtypes.runner.ProbeRunner", Endless)
    for end in (monitor.cancel_probe, monitor.close):
        future = monitor.perform(ProbeDtypes())
        wait_for(lambda: monitor.tick().probing == Progress(1, 4), "progress")
        end()
        assert future.result(TIMEOUT).ended == "cancelled"
    assert ended == [True, True]


def test_a_click_means_the_process_that_was_seen(workers):
    """A pid may be used again: by the start of its process it is another."""
    worker = workers.start(ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    monitor = Monitor()
    try:
        started = this_computer().read_start(worker.pid)
        pid, other = worker.pid, started - 100
        for action in (
            Free(pid, None, other), FindTensors(pid, started + 7), Limit(pid, 1 << 30, other),
            FreeWhenPossible(pid, other),
        ):  # fmt: skip
            assert monitor.perform(action).result(TIMEOUT).state == "gone", action
        stats = worker.ask("stats")
        assert (stats["last_free"], stats["kept_free"]) == (None, None)
        assert monitor.perform(Free(worker.pid, None, started)).result(TIMEOUT).state == "done"
    finally:
        monitor.close()


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_a_free_that_waits_is_ended_only_in_the_process_that_was_seen(workers):
    worker = workers.start_mps(
        "import torch, threading, ctypes\na = torch.ones(4, device='mps')\n"
        "work = lambda: ctypes.CDLL(None).sleep(3600)\n"  # for all the agent knows it computes
        "threading.Thread(target=work, daemon=True).start()\n"
        + ATTACH  # a Free before there is that thread would be done at once
        + "import queue; queue.Queue().get()\n"
    )  # fmt: skip
    started, monitor = this_computer().read_start(worker.pid), Monitor()

    def perform(action):
        return monitor.perform(action).result(TIMEOUT).state

    # The agent is there before the thread computes: until then a Free would not have to wait.
    wait_for(lambda: worker.ask("free", seconds=0.2)["state"] == "busy", "a thread that computes")
    try:
        assert perform(FreeWhenPossible(worker.pid, started)) == "waiting"
        assert perform(CancelFree(worker.pid, started - 100)) == "gone"
        assert worker.ask("stats")["kept_free"] is not None
        assert perform(CancelFree(worker.pid, started)) == "cancelled"
        assert worker.ask("stats")["kept_free"] is None
    finally:
        monitor.close()


@pytest.mark.usefixtures("patient")
@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_a_limit_is_an_outcome_an_event_and_a_number_of_its_worker(monitor, workers):
    worker = workers.start_mps(
        'import torch, mpsbar, queue; t = torch.ones(8, device="mps"); mpsbar.attach()\nprint("attached")\nqueue.Queue().get()'
    )
    worker.wait_line("attached")
    worker.wait_asleep()  # a limit waits five seconds for a main that does not wait yet
    monitor.tick()

    def set_limit():
        """On busy cores main may come by too late for it."""
        outcome = monitor.perform(Limit(worker.pid, 1 << 30)).result(TIMEOUT)
        return None if outcome.state == "busy" else outcome

    outcome = wait_for(set_limit, "a limit")
    snapshot = monitor.tick()
    assert (outcome.state, outcome.limit) == ("done", 1 << 30)
    assert snapshot.limited == {worker.pid: outcome}
    assert snapshot.events[-1].what == outcome  # before it those that came too late
    assert snapshot.workers[0].limit == 1 << 30
    assert "1.0 GB" in render_status(snapshot).split("LIMIT")[1]
    assert isinstance(outcome, Limited)
