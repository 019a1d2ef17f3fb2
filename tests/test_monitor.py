"""The one thread that looks: never twice at once, never stopped by a reader, woken by what happens."""

import gc
import sys
import threading
import time
import types

import pytest
from system.scripted import Scripted
from thorough import two_sizes
from worker_kit import ATTACH, NO_MPS, TIMEOUT, need_module, wait_for

from mpsbar.cli.status import make_recorder
from mpsbar.core import auto_free
from mpsbar.core.actions import (
    AutoFreeRule,
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
    SetAutoFree,
    Stop,
    Stopped,
    Tensors,
    WatchEnd,
)
from mpsbar.core.dtype_results import Probe, Progress
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import Gpu, Machine, Problem
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Worker
from mpsbar.end_follower import RECHECK_SECONDS
from mpsbar.monitor import INTERVAL, ON_BATTERY, WATCHED, Monitor
from mpsbar.system import paths, this_computer
from mpsbar.system.auto_free_file import SharedAutoFree
from mpsbar.system.platform import GpuClient
from mpsbar.ui.status_table import render_status
from mpsbar.workers.environments import Environment, read_enabled
from mpsbar.workers.poll import WorkerPoll
from mpsbar.workers.request import free_worker

TORCH = {"torch": "/v/lib/libtorch_cpu.dylib"}
IDLE = ATTACH + "import time\nwhile True: time.sleep(0.05)\n"


@pytest.fixture
def computer():
    return Scripted(pids={2: "b"}, libraries={2: TORCH})


@pytest.fixture
def monitor(computer, workers, monkeypatch):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(workers.run_dir))
    monitor = Monitor(computer, interval=0.01, may_free=True)
    yield monitor
    monitor.close()


@pytest.fixture
def patient(monkeypatch):
    """A tick waits until every worker has answered: on busy cores half a second is not enough."""
    poll = WorkerPoll.poll
    monkeypatch.setattr(
        WorkerPoll, "poll", lambda self, *clients: poll(self, *clients, seconds=TIMEOUT)
    )


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


def test_nothing_is_performed_after_the_end(monitor):
    monitor.close()
    with pytest.raises(RuntimeError, match="closed"):
        monitor.perform(Free(1))


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
    monkeypatch.setattr("mpsbar.doctor.pythons.find_pythons", lambda *_: [sys.executable])
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


def frees(snapshot):
    return [
        (event.what.pid, event.what.state, event.what.asked_here)
        for event in snapshot.events
        if isinstance(event.what, Freed)
    ]


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
    monitor._note(Tensors(7, "done"))
    monitor._note(Freed(7, "a.py", "done"))
    now[0] += 120
    seen = monitor.tick()
    assert (list(seen.tensors), list(seen.freed)) == ([7], [])
    now[0] += 600
    assert monitor.tick().tensors == {}


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


CACHED = (
    "import mlx.core as mx\nmx.set_cache_limit(1 << 30)\na = mx.ones((32 << 20,))\nmx.eval(a)\ndel a\n"
    + ATTACH
    + "import queue; print('attached', flush=True); queue.Queue().get()\n"
)


def start_cached(workers):
    """A worker whose main stands in its wait: on its way there, a first Free may find it busy."""
    worker = workers.start(CACHED)
    worker.wait_line("attached")
    worker.wait_asleep()
    return worker


@pytest.mark.usefixtures("patient")
def test_a_cache_above_the_chosen_size_is_freed_by_itself_and_noted_with_its_cause(
    monitor, workers, monkeypatch
):
    need_module("mlx")
    monkeypatch.setattr(auto_free, "PAUSE_SECONDS", 0.2)
    worker = start_cached(workers)
    monitor.tick()  # a single reading frees nothing
    assert monitor.latest.workers[0].cached >= 128 << 20
    monitor.apply(Settings(interval=0.05, keep_cache_below="100MB"))
    monitor.start()
    wait_for(lambda: monitor.latest.workers[0].cached == 0, "an automatic free")
    wait_for(lambda: monitor.latest.events, "its event")
    [event] = monitor.latest.events
    assert (event.what.state, event.what.cause) == ("done", "keep_below")
    assert event.what.freed >= 128 << 20
    assert monitor.latest.freed[worker.pid] == event.what
    assert monitor.latest.workers[0].last_free.number == 1


def test_of_two_monitors_one_frees_and_both_follow_a_choice(
    monitor, computer, workers, monkeypatch
):
    need_module("mlx")
    monkeypatch.setattr(auto_free, "PAUSE_SECONDS", 0.2)
    worker = start_cached(workers)
    computer.pids[worker.pid], computer.libraries[worker.pid] = "x", TORCH
    other = Monitor(computer, interval=0.01, may_free=True)
    try:
        monitor.start()
        wait_for(lambda: monitor.ticks > 2, "the first to be the one that frees")
        other.start()
        wait_for(lambda: [w for w in other.latest.workers if w.started], "the worker")
        started = other.latest.workers[0].started
        rule = AutoFreeRule(keep_cache_below=100 << 20)
        other.set_auto_free(SetAutoFree(worker.pid, started, rule))
        wait_for(lambda: other.latest.workers[0].cached == 0, "an automatic free")
        wait_for(lambda: monitor.latest.events, "its event")
        [event] = monitor.latest.events
        assert event.what.cause == "keep_below"  # the other only saw that it happened
        assert monitor.latest.auto_free[worker.pid].rule == rule
        assert other.latest.auto_free[worker.pid].rule == rule
        assert other.latest.workers[0].last_free.number == 1
        monitor.set_auto_free(SetAutoFree(worker.pid, started, AutoFreeRule()))
        wait_for(lambda: other.latest.auto_free == {}, "the choice to be taken back")
    finally:
        other.close()


def test_a_choice_for_a_process_whose_start_is_not_known_is_not_kept_in_the_file(monitor, workers):
    worker = workers.start(IDLE)
    monitor.start()
    wait_for(lambda: monitor.latest.workers, "the worker")
    rule = AutoFreeRule(keep_cache_below=100 << 20)
    monitor.set_auto_free(SetAutoFree(worker.pid, None, rule))
    SharedAutoFree().write(SetAutoFree(2, 2.0, rule))  # another monitor's
    wait_for(lambda: (2, 2.0) in monitor._auto_freer._auto_free._rules, "both")
    seen = monitor.ticks
    wait_for(lambda: monitor.ticks > seen + 2, "a reading with both")
    assert monitor.latest.auto_free[worker.pid].rule == rule
    assert SharedAutoFree().read() == {(2, 2.0): rule}


def test_a_recording_does_not_keep_others_from_freeing(private, monkeypatch):
    monkeypatch.setenv("MPSBAR_REPLAY", "m1-8gb")
    monitor = Monitor(interval=0.01, may_free=True)
    try:
        monitor.start()
        wait_for(lambda: monitor.ticks > 2, "some ticks")
        assert not paths.lock_file("auto-free").exists()
    finally:
        monitor.close()


@pytest.mark.usefixtures("patient")
def test_who_only_looks_frees_nothing_by_itself(workers, monkeypatch):
    """`mpsbar export`, `status --watch`: the menu bar app or top may run beside it."""
    need_module("mlx")
    monkeypatch.setattr(auto_free, "PAUSE_SECONDS", 0.2)
    monkeypatch.setenv("MPSBAR_KEEP_CACHE_BELOW", "100MB")
    monkeypatch.setenv("MPSBAR_INTERVAL", "1")
    start_cached(workers)
    monitor = make_recorder()
    monitor.interval = 0.05
    try:
        monitor.start()
        wait_for(lambda: monitor.ticks > 30, "30 ticks")  # at least 1.5 s
        assert monitor.latest.workers[0].cached >= 128 << 20
        assert frees(monitor.latest) == []  # this computer may have events of its own
    finally:
        monitor.close()


def test_an_automatic_free_that_finds_the_process_busy_is_no_event(monitor, workers, monkeypatch):
    outcomes = [Freed(7, "7", "busy"), Freed(7, "7", "done", 5)]
    monkeypatch.setattr("mpsbar.action_runner.free_worker", lambda *_: outcomes.pop(0))
    for _ in range(2):
        monitor.perform(Free(7, cause="idle")).result()
        monitor.tick()
    assert [(e.what.state, e.what.cause) for e in monitor.latest.events] == [("done", "idle")]


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
