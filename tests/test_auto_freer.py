"""Caches that a monitor frees by itself: by the choice for a process, and by one of several monitors."""

import monitor_kit
import pytest
from monitor_kit import IDLE, TORCH, frees
from worker_kit import ATTACH, need_module, wait_for

from mpsbar.cli.status import make_recorder
from mpsbar.core import auto_free
from mpsbar.core.actions import AutoFreeRule, Free, Freed, SetAutoFree
from mpsbar.core.settings import Settings
from mpsbar.monitor import Monitor
from mpsbar.system import paths
from mpsbar.system.auto_free_file import SharedAutoFree

# Fixtures.
computer, monitor, patient = monitor_kit.computer, monitor_kit.monitor, monitor_kit.patient
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


def test_what_an_automatic_free_raises_is_logged_once(monitor, caplog, monkeypatch):
    def fail(*_):
        raise RuntimeError("planted")

    monkeypatch.setattr("mpsbar.action_runner.free_worker", fail)
    free = Free(2, cause="keep_below")
    monkeypatch.setattr(monitor._auto_freer, "consider", lambda _: ([free], []))
    monitor.start()
    wait_for(lambda: "RuntimeError: planted" in caplog.text, "the line")
    ticks = monitor.ticks
    wait_for(lambda: monitor.ticks > ticks + 5, "more of them")
    lines = [line for line in caplog.messages if "RuntimeError: planted" in line]
    assert lines == ["an automatic free failed: RuntimeError: planted"]
