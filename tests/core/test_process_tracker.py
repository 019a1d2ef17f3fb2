"""Who is there, who has gone, and what is told of them."""

from dataclasses import replace

from history_kit import GB, MACHINE, make_worker

from mpsbar.core.actions import Stopped
from mpsbar.core.counters import RECORDED
from mpsbar.core.machine import Process
from mpsbar.core.process_tracker import ENDED_SHOWN_SECONDS, ProcessTracker
from mpsbar.core.snapshot import Snapshot


def look(tracker, now, *workers, processes=(), **fields):
    known = tuple(worker.process for worker in workers if worker.process)
    listed = None if processes is None else (*known, *processes)
    given = {"machine": MACHINE} | fields
    return tracker.update(Snapshot(now, workers, processes=listed, **given))


def serve(pid=9, **fields):
    given = {"started": 7.0, "name": "serve.py", "frameworks": ("torch",), "footprint": GB} | fields
    return Process(pid, **given)


def test_an_end_is_told_once_with_the_peak():
    tracker = ProcessTracker()
    look(tracker, 0, make_worker(1, "a.py", 6 * GB))
    look(tracker, 2, make_worker(1, "a.py", 2 * GB, 0))
    assert look(tracker, 4) == []  # one look may miss it
    ((life, gone),) = look(tracker, 6)
    assert (gone.name, gone.ended, gone.was_seen, gone.how) == ("a.py", 4, True, "unknown")
    assert (gone.peak, gone.held) == (7 * GB, 2 * GB)
    assert look(tracker, 8) == []
    assert tracker.ended == (gone,)
    assert (life.first, life.last, tracker.present) == (0, 2, {})


def test_one_missed_look_is_no_end():
    tracker = ProcessTracker()
    look(tracker, 0, make_worker(1, "a.py"))
    look(tracker, 2)
    look(tracker, 4, make_worker(1, "a.py"))
    assert look(tracker, 6) == []


def test_a_look_that_failed_says_nothing():
    tracker = ProcessTracker()
    look(tracker, 0, make_worker(1, "a.py"))
    for now in range(2, 20, 2):
        assert look(tracker, now, processes=None) == []


def test_another_process_of_the_same_pid_is_another_life():
    tracker = ProcessTracker()
    look(tracker, 0, make_worker(1, "a.py"))
    other = make_worker(1, "b.py")
    other = replace(other, process=replace(other.process, started=99.0))
    ((_, gone),) = look(tracker, 2, other)
    assert (gone.name, tracker.present[1].name) == ("a.py", "b.py")


def test_how_it_ended_as_far_as_it_is_known():
    for fields, how in (
        ({}, "unknown"),
        ({"stopped": {1: Stopped(1, "a.py", "asked")}}, "stopped"),
        ({"stopped": {1: Stopped(1, "a.py", "not_allowed")}}, "unknown"),
        ({"machine": replace(MACHINE, pressure="critical")}, "pressure"),
    ):
        tracker = ProcessTracker()
        look(tracker, 0, make_worker(1, "a.py"))
        look(tracker, 2, **fields)
        ((_, gone),) = look(tracker, 4, **fields)
        assert gone.how == how


def test_an_end_while_the_computer_slept_was_not_seen():
    tracker = ProcessTracker()
    look(tracker, 0, make_worker(1, "a.py"))
    look(tracker, 30_000)
    ((_, gone),) = look(tracker, 30_002)
    assert (gone.was_seen, gone.ended) == (False, 0)


def test_only_heads_and_only_runs_are_told():
    tracker = ProcessTracker()
    child, brief = serve(10, name="child.py", parent=9), serve(11, name="brief.py")
    look(tracker, 0, processes=[serve(), child, brief])
    for now in range(2, 40, 2):
        look(tracker, now, processes=[serve(), child])
    assert tracker.ended == ()  # brief.py was there for a moment only
    look(tracker, 42, processes=[serve()])
    assert len(look(tracker, 44, processes=[serve()])) == 1  # recorded, but not told
    assert tracker.ended == ()
    look(tracker, 46)
    look(tracker, 48)
    assert [(gone.name, gone.peak) for gone in tracker.ended] == [("serve.py", GB)]


def test_a_busy_worker_is_not_said_to_hold_what_it_held():
    tracker = ProcessTracker()
    look(tracker, 0, make_worker(1, "a.py", 6 * GB))
    look(tracker, 2, make_worker(1, "a.py", 6 * GB, state="busy", age=3.0))
    life = tracker.present[1]
    assert life.values == dict.fromkeys(RECORDED) | {"footprint": 7 * GB}
    assert life.known["held"] == 6 * GB


def test_the_told_are_few_and_not_for_ever():
    tracker = ProcessTracker()
    for pid in range(1, 40):
        look(tracker, pid * 10, make_worker(pid, f"{pid}.py"))
        look(tracker, pid * 10 + 2)
        look(tracker, pid * 10 + 4)
    assert [gone.name for gone in tracker.ended[:2]] == ["39.py", "38.py"]
    assert len(tracker.ended) == 20
    look(tracker, ENDED_SHOWN_SECONDS + 1000)
    assert tracker.ended == ()


def test_one_process_is_found_by_pid_and_start():
    tracker = ProcessTracker()
    unknown = replace(make_worker(1, "a.py"), process=None)
    look(tracker, 0, unknown)
    first = tracker.present[1]
    assert tracker.find(1, 5.0) is tracker.find(1, None) is first  # its start is not known yet
    look(tracker, 2, make_worker(1, "a.py"))
    assert tracker.find(1, first.started) is tracker.find(1, None) is first
    assert tracker.find(1, 5.0) is None
    assert tracker.find(2, None) is None
