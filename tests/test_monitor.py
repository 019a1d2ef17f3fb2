"""The one thread that looks: never twice at once, never stopped by a reader, woken by what happens."""

import gc
import sys
import threading
import time
import types

import monitor_kit
import pytest
from monitor_kit import IDLE, TORCH, frees
from thorough import two_sizes
from worker_kit import NO_MPS, TIMEOUT, wait_for

from mpsbar.core.actions import Free, Freed, Tensors, WatchEnd
from mpsbar.core.events import EndedProcess
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Problem
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Worker
from mpsbar.end_follower import RECHECK_SECONDS
from mpsbar.monitor import INTERVAL, ON_BATTERY, WATCHED, Monitor
from mpsbar.system.platform import GpuClient
from mpsbar.ui.status_table import render_status
from mpsbar.workers.request import free_worker

# Fixtures.
computer, monitor, patient = monitor_kit.computer, monitor_kit.monitor, monitor_kit.patient


def test_inside_and_outside_are_one_row(monitor, computer, workers):
    worker = workers.start("import os\n" + IDLE)
    computer.pids[worker.pid] = "x"
    computer.libraries[worker.pid] = TORCH
    snapshot = monitor.tick()
    (row,) = snapshot.workers
    assert (row.pid, row.process.name) == (worker.pid, f"train{worker.pid}.py")
    assert [process.pid for process in snapshot.unconnected] == [2]
    assert (snapshot.machine.chip, snapshot.problems) == ("Apple M9", ())


def test_only_the_outside_knows_a_rank(monitor, computer, workers):
    worker = workers.start(IDLE)
    computer.pids[worker.pid] = "x"
    computer.libraries[worker.pid] = TORCH
    details = computer.read_details(worker.pid)

    def ranked(pid):
        variables = {"RANK": "1", "WORLD_SIZE": "4"}
        command = ("python", "worker0.py")
        return type(details)(1.0, 1, command, "/usr/bin/python3", variables)

    computer.read_details = ranked
    (row,) = monitor.tick().workers
    assert row.name == "worker0.py rank 1 of 4"


def test_who_has_not_answered_is_known_from_the_outside(monitor, computer, workers):
    worker = workers.start(IDLE)
    computer.pids[worker.pid] = "x"
    computer.libraries[worker.pid] = TORCH
    worker.freeze()
    try:
        (row,) = monitor.tick().workers
    finally:
        worker.thaw()
    assert (row.name, row.parent, row.age) == (f"train{worker.pid}.py", 1, None)
    assert row.command == ("python", f"train{worker.pid}.py")


@pytest.mark.usefixtures("patient")
@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
@pytest.mark.parametrize(
    ("clients", "state"),
    [
        (None, "not known"),  # the outside cannot tell either
        ({}, "not initialised"),
        ("its own", "in use"),
    ],
)
def test_an_older_torch_gets_to_know_whether_it_uses_the_gpu(
    monitor, computer, workers, clients, state
):
    """Before 2.13 asking torch would itself open the GPU, so the outside is asked."""
    code = "import torch\na = torch.ones(1000, device='mps')\n" + IDLE
    worker = workers.start(code, SOFTMPS="1", SOFTMPS_TORCH="2.9")
    computer.pids[worker.pid] = "x"
    computer.clients = {9: GpuClient(worker.pid, 0, True)} if clients == "its own" else clients
    (row,) = monitor.tick().workers
    backend = next(backend for backend in row.backends if backend.name == "mps")
    assert backend.state == state
    assert (backend.held is not None) is (state == "in use")


def test_the_thread_ticks_and_replaces_latest(monitor):
    seen = []
    monitor.start(seen.append)
    wait_for(lambda: len(seen) >= 3, "ticks")
    assert monitor.latest.time >= seen[1].time > 0
    assert seen[0] is not seen[1]
    with pytest.raises(AssertionError):
        monitor.tick()  # its own thread ticks


def test_there_is_never_more_than_one_tick_at_a_time(monitor, computer):
    inside, most, looks = [], [], []

    def slow():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.005)
        inside.pop()
        looks.append(1)
        return Machine()

    computer.read_machine = slow
    monitor.start()
    with monitor.watched(), monitor.watched():
        for _ in range(50):
            monitor._wakes.put(None)
        wait_for(lambda: len(looks) > 60, "looks")
    assert max(most) == 1


@pytest.mark.parametrize("broken", ["scanner", "workers", "trends"])
def test_a_reader_that_breaks_is_unknown_and_logged_once_and_the_rest_goes_on(
    monitor, computer, caplog, broken
):
    def fail(*_):
        raise RuntimeError("planted")

    part = getattr(monitor, f"_{broken}")
    setattr(part, {"scanner": "scan", "workers": "poll", "trends": "add"}[broken], fail)
    monitor.tick()
    snapshot = monitor.tick()
    reader = {"scanner": "machine", "trends": "health"}.get(broken, broken)
    assert snapshot.problems == (Problem(reader, "RuntimeError: planted"),)
    assert (snapshot.processes is None) is (broken == "scanner")
    # Of the scripted machine nothing is known but its chip.
    assert snapshot.health.reasons[0].code == ("not_judged" if broken == "trends" else "unknown")
    # Not what a thread logs that an earlier test's app has left.
    assert len([each for each in caplog.messages if "RuntimeError: planted" in each]) == 1


def test_before_the_first_reading_nothing_is_claimed(monitor):
    shown = render_status(monitor.latest)
    assert "Status unknown" in shown
    assert "Couldn't list processes" in shown


def test_a_failed_judgement_does_not_forget_what_was_on(monitor, computer, monkeypatch):
    computer.machine = Machine(pressure="critical")
    assert monitor.tick().health.level == "critical"
    before = monitor._health
    monkeypatch.setattr("mpsbar.monitor.judge", lambda *_: 1 // 0)
    assert monitor.tick().health.reasons[0].code == "not_judged"
    assert monitor._health is before


def test_workers_that_could_not_be_asked_keep_their_rows(monitor, workers):
    worker = workers.start(IDLE)
    monitor.tick()
    monitor._workers.poll = lambda *_: 1 // 0
    (row,) = monitor.tick().workers
    assert (row.pid, row.state) == (worker.pid, "busy")
    assert "Couldn't reach connected processes" in render_status(monitor.latest)


def test_the_thread_survives_a_listener_that_breaks(monitor):
    seen = []

    def listen(snapshot):
        seen.append(snapshot)
        raise RuntimeError("planted")

    monitor.start(listen)
    wait_for(lambda: len(seen) >= 3, "ticks after the failure")


@pytest.mark.parametrize(
    ("on_battery", "watched", "pause"),
    [(None, False, INTERVAL), (False, False, INTERVAL), (True, False, ON_BATTERY), (True, True, WATCHED)],
)  # fmt: skip
def test_the_pace(monitor, computer, on_battery, watched, pause):
    monitor.interval = INTERVAL
    computer.machine = Machine(on_battery=on_battery)
    monitor.tick()
    if watched:
        with monitor.watched():
            assert monitor.pause == pause
    assert (monitor.pause == pause) is not watched


def test_an_outcome_wakes_the_thread_and_is_in_the_next_snapshot(monitor, workers):
    worker = workers.start(IDLE)
    monitor.interval = 3600.0  # only a wake makes it tick again
    seen = threading.Event()
    monitor.start(lambda snapshot: seen.set() if snapshot.freed else None)
    wait_for(lambda: monitor.latest.workers, "the worker")
    outcome = monitor.perform(Free(worker.pid)).result(TIMEOUT)
    assert seen.wait(TIMEOUT)
    assert monitor.latest.freed == {worker.pid: outcome}
    assert outcome.state == "done"


def test_read_once_gives_shares_of_the_gpu(monitor, computer):
    readings = iter([0, 10**12])
    computer.read_gpu_clients = lambda: {9: GpuClient(2, next(readings))}
    (process,) = monitor.read_once().processes
    assert process.gpu_percent == 100.0  # far more than passed: cut


def test_read_once_ticks_once_without_a_gpu(monitor, computer):
    looks = []
    computer.read_gpu_clients = lambda: looks.append(1)
    monitor.read_once()
    assert looks == [1]


def test_closing_ends_the_thread(monitor):
    monitor.start()
    wait_for(lambda: monitor.latest.machine.chip, "a tick")
    monitor.close()
    monitor._thread.join(TIMEOUT)
    assert not monitor._thread.is_alive()


@two_sizes("looks", small=[3_000], whole=[40_000])
def test_ticks_leave_nothing_behind(computer, workers, monkeypatch, looks):
    """A day's worth of looks (in the small form two hours) while processes come and go; the clock runs two seconds for each."""
    clock = types.SimpleNamespace(
        now=1.7e9, monotonic=time.monotonic, perf_counter=time.perf_counter, sleep=time.sleep
    )

    def tell():
        clock.now += 2.0
        return clock.now

    clock.time = tell
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(workers.run_dir))
    monkeypatch.setattr("mpsbar.monitor.time", clock)
    monitor = Monitor(computer)
    monitor._scanner._clock = tell

    def ticks(number):
        for count in range(number):
            computer.pids = dict.fromkeys(range(1, 20), count // 7)
            computer.libraries = dict.fromkeys(range(1, 20, 3), TORCH)
            monitor.tick()
            computer.asked.clear()
        gc.collect()
        return sys.getallocatedblocks()  # gc does not know of tuples of numbers

    before = ticks(500)
    after = ticks(looks)
    monitor.close()
    assert after - before < 2000  # the last minutes are full; one thing a tick would be more


def test_it_rests_while_the_computer_sleeps(monitor, computer):
    looks = []
    computer.read_machine = lambda: looks.append(1) or Machine()
    monitor.start()
    wait_for(lambda: len(looks) > 2, "looks")
    monitor.rest()

    def rests():  # the look that is under way may take its time
        before = len(looks)
        time.sleep(0.3)
        return len(looks) == before

    wait_for(rests, "a pause without looks")
    before = len(looks)
    monitor.wake()
    wait_for(lambda: len(looks) > before, "a look after waking")


def test_the_gpu_utilization_of_the_last_ticks(monitor, computer):
    """The last looks, oldest first; unknown leaves no trace."""
    for number, busy in enumerate([10.0, None, 20.4, 99.6]):
        computer.machine = Machine(gpu=Gpu(utilization=busy))
        monkey_time = 1000.0 + 2 * number
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mpsbar.monitor.time.time", lambda at=monkey_time: at)
            seen = monitor.tick()
    assert seen.gpu_utilization == (10, 20, 100)


class Notes:
    """A recorder that a test can read, or that fails."""

    def __init__(self, error=None, before=()):
        self.records, self.error, self.before, self.is_closed = [], error, before, False
        self.corrections = []

    def record(self, snapshot, tracker, ended, corrected):
        if self.error is not None:
            raise self.error
        self.records.append((snapshot, [life.pid for life in tracker], ended))
        before, self.before = self.before, ()
        return before

    def correct(self, end):
        self.corrections.append(end)

    def close(self):
        self.is_closed = True


def test_a_recorder_gets_every_snapshot_and_ends(computer, workers):
    old = EndedProcess(77, 1.0, "old.py", time.time() - 60, was_seen=False)
    notes = Notes(before=(old,))
    monitor = Monitor(computer, recorder=notes)
    monitor.tick()
    assert [gone.pid for gone in monitor.latest.ended] == [77]
    assert [(end.pid, end.verdict is None) for end in notes.corrections] == [(77, False)]
    computer.pids.pop(2)
    ends = [monitor.tick() and notes.records[-1][2] for _ in range(3)]
    assert [len(end) for end in ends] == [0, 1, 0]
    assert ends[1][0][1].name == "train2.py"
    assert [pids for _, pids, _ in notes.records] == [[2], [2], [], []]
    monitor._wakes.put(Freed(2, "b", "done", 5))
    events = monitor.tick().events
    assert [event.what for event in events] == [Freed(2, "b", "done", 5)]
    assert notes.records[-1][0].events == events == monitor.tick().events
    monitor.close()
    assert notes.is_closed


def test_alerts_are_events_of_the_snapshot_and_obey_the_settings(computer, workers):
    critical = Machine(pressure="critical", memory_total=1 << 34)
    for settings, kinds in ((Settings(), ["raised"]), (Settings(alerts=False), [])):
        notes = Notes()
        monitor = Monitor(computer, recorder=notes)
        monitor.apply(settings)
        computer.machine = critical
        monitor.tick()
        seen = monitor.tick()
        assert [event.what.kind for event in seen.events] == kinds
        assert notes.records[-1][0].events == seen.events  # what is recorded is what is shown
        assert seen.health.level == "critical"  # the health itself is never switched off
        monitor.close()


def test_a_reset_of_the_gpu_is_told_with_its_users_and_marked_on_their_rows(computer, workers):
    computer.pids = {2: "b", 3: "c"}
    computer.libraries = {2: TORCH, 3: TORCH}
    computer.clients = {9: GpuClient(2, 0, True)}
    monitor = Monitor(computer)
    try:
        for count in (21, 21, 22, 22):  # how many there were before is no news
            computer.machine = Machine(gpu=Gpu(recoveries=count))
            seen = monitor.tick()
        (alert,) = [event.what for event in seen.events]
        assert (alert.code, alert.kind) == ("gpu_reset", "raised")
        assert (alert.reason.values["names"], alert.reason.values["count"]) == ("train2.py", 1)
        assert seen.gpu_resets == {2: alert.reason.values["time"]}
        computer.pids = {3: "c"}
        for _ in range(3):
            seen = monitor.tick()
        assert seen.gpu_resets == {}  # until it ends
    finally:
        monitor.close()


def test_an_end_that_someone_waits_for_is_an_alert_and_any_connected_end_an_event(
    monitor, computer, monkeypatch
):
    """Of a Mac both wait until it has had the time to write why."""
    later = [0.0]
    clock = types.SimpleNamespace(
        time=lambda: time.time() + later[0],
        monotonic=time.monotonic,
        perf_counter=time.perf_counter,
    )
    monkeypatch.setattr("mpsbar.monitor.time", clock)
    connected = [Worker(2, "train2.py", "live", 0.0)]
    monkeypatch.setattr(monitor._workers, "poll", lambda _: tuple(connected))
    (worker,) = monitor.tick().workers
    monitor.watch_end(WatchEnd(2, worker.process.started, "train2.py", on=True))
    connected.clear()
    computer.pids.pop(2)
    monitor.tick()
    assert monitor.tick().events == ()
    assert [gone.pid for gone in monitor.latest.ended] == [2]  # shown at once
    for seconds in RECHECK_SECONDS:
        assert monitor.latest.events == ()
        later[0] = seconds
        monitor.tick()
    ended, alert = (event.what for event in monitor.latest.events)
    assert (ended.pid, ended.name, ended.is_settled) == (2, "train2.py", True)
    assert (alert.kind, alert.pid) == ("ended", 2)


@pytest.mark.usefixtures("patient")
def test_a_free_by_another_program_is_an_event_once(monitor, workers):
    pid = workers.start(IDLE).pid
    assert frees(monitor.tick()) == []
    assert free_worker(pid).state == "done"  # as `mpsbar free` does it
    seen = monitor.tick()
    assert frees(seen) == [(pid, "done", False)]
    assert seen.freed[pid].freed == 0
    assert seen.time - 60 < seen.events[0].time <= seen.time
    assert frees(monitor.tick()) == frees(seen)
    assert monitor.perform(Free(pid)).result(TIMEOUT).number == 2
    for _ in range(2):
        assert frees(monitor.tick()) == [(pid, "done", False), (pid, "done", True)]
    free_worker(pid)
    assert frees(monitor.tick())[2:] == [(pid, "done", False)]


@pytest.mark.usefixtures("patient")
def test_a_free_before_the_monitor_is_no_event_and_one_before_the_first_reading_is(
    computer, workers, monkeypatch
):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(workers.run_dir))
    earlier, later = workers.start(IDLE).pid, workers.start(IDLE).pid
    free_worker(earlier)
    monitor = Monitor(computer)
    free_worker(later)
    assert frees(monitor.tick()) == [(later, "done", False)]
    free_worker(earlier)
    assert frees(monitor.tick())[1:] == [(earlier, "done", False)]
    monitor.close()


@pytest.mark.usefixtures("patient")
def test_our_own_free_is_not_taken_for_anothers_while_its_answer_is_on_the_way(
    monitor, workers, monkeypatch
):
    """The stats may tell of it before its outcome is known here."""
    pid, gate, freed = workers.start(IDLE).pid, threading.Event(), threading.Event()

    def free_and_wait(pid, *_):
        outcome = free_worker(pid)
        freed.set()
        assert gate.wait(TIMEOUT)
        return outcome

    monkeypatch.setattr("mpsbar.action_runner.free_worker", free_and_wait)
    monitor.tick()
    asked = monitor.perform(Free(pid))
    assert freed.wait(TIMEOUT)
    assert frees(monitor.tick()) == []
    gate.set()
    asked.result(TIMEOUT)
    for _ in range(2):
        assert frees(monitor.tick()) == [(pid, "done", True)]


def test_what_fails_beside_the_readings_is_logged_once_and_stops_nothing(
    monitor, monkeypatch, caplog
):
    def fail(*_):
        raise RuntimeError("no")

    monkeypatch.setattr(monitor._tracker, "update", fail)
    monkeypatch.setattr(monitor._alerts, "consider", fail)
    ticks = []

    def on_tick(snapshot):
        ticks.append(snapshot)
        fail()

    monitor.start(on_tick)
    wait_for(lambda: len(ticks) > 2, "ticks that go on")
    monitor.close()
    assert [process.pid for process in ticks[-1].processes] == [2]
    wanted = {"tracking processes", "alerts", "showing a snapshot"}
    told = [each for each in caplog.messages if each.endswith("RuntimeError: no")]
    assert sorted(told) == sorted(f"{what} failed: RuntimeError: no" for what in wanted)


def test_a_recorder_that_fails_stops_nothing(computer, workers):
    monitor = Monitor(computer, recorder=Notes(RuntimeError("no")))
    snapshot = monitor.tick()
    assert [process.pid for process in snapshot.processes] == [2]
    assert snapshot.problems == (Problem("history", "RuntimeError: no"),)
    monitor.close()


def test_the_last_words_are_written_before_the_end(computer, workers):
    notes = Notes()
    monitor = Monitor(computer, interval=30.0, recorder=notes)
    monitor.start()
    wait_for(lambda: notes.records, TIMEOUT)
    monitor.close()
    assert notes.is_closed


def test_a_recorded_machine_is_not_recorded_again(computer, workers):
    notes = Notes()
    computer.machine = Machine(recording="m1")
    monitor = Monitor(computer, recorder=notes)
    monitor.tick()
    assert notes.records == []
    monitor.close()


def test_a_count_of_tensors_lasts_longer_than_a_minute_for_who_reads_it(monitor, monkeypatch):
    now = [1000.0]
    clock = types.SimpleNamespace(
        monotonic=lambda: now[0], perf_counter=time.perf_counter, time=time.time, sleep=time.sleep
    )
    monkeypatch.setattr("mpsbar.monitor.time", clock)
    monitor._handle_wake(Tensors(7, "done"))
    monitor._handle_wake(Freed(7, "a.py", "done"))
    now[0] += 120
    seen = monitor.tick()
    assert (list(seen.tensors), list(seen.freed)) == ([7], [])
    now[0] += 600
    assert monitor.tick().tensors == {}


def test_over_its_own_budget_it_ticks_less_often_and_says_so(workers, caplog, monkeypatch):
    monkeypatch.setattr("mpsbar.core.own_budget.PERIOD", 0.05)
    monkeypatch.setattr("mpsbar.core.own_budget.CPU_SHARE", 1e-9)
    monitor = Monitor(interval=0.01)
    monitor.start()
    try:
        wait_for(lambda: monitor.pause > 0.01, "slower ticks")
        wait_for(lambda: "own use" in [p.reader for p in monitor.latest.problems], "a reason")
    finally:
        monitor.close()
    assert "refreshes 2 times less often" in caplog.text
