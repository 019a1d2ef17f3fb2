"""The tracker: which processes are present, which have ended, and what is known of them."""

from dataclasses import replace

from history_kit import GB, MACHINE, make_private_worker

from mpsbar.core.counters import RECORDED
from mpsbar.core.endings import Exit, ExitStatus
from mpsbar.core.machine import Process
from mpsbar.core.process_tracker import ENDED_SHOWN_SECONDS, ProcessTracker
from mpsbar.core.snapshot import Snapshot


def update(tracker, now, *workers, processes=(), **fields):
    known = tuple(worker.process for worker in workers if worker.process)
    listed = None if processes is None else (*known, *processes)
    given = {"machine": MACHINE} | fields
    return tracker.update(Snapshot(now, workers, processes=listed, **given))


def serve(pid=9, **fields):
    given = {"started": 7.0, "name": "serve.py", "frameworks": ("torch",), "footprint": GB} | fields
    return Process(pid, **given)


def test_an_end_is_returned_once_with_the_peak():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py", 6 * GB))
    update(tracker, 2, make_private_worker(1, "a.py", 2 * GB, 0))
    assert update(tracker, 4) == []  # one scan may miss it
    ((life, gone),) = update(tracker, 6)
    assert (gone.name, gone.ended, gone.was_seen, gone.how) == ("a.py", 4, True, "unknown")
    assert (gone.peak, gone.held) == (7 * GB, 2 * GB)
    assert update(tracker, 8) == []
    assert tracker.ended == (gone,)
    assert (life.first, life.last, tracker.present) == (0, 2, {})


def test_one_missed_scan_is_no_end():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py"))
    update(tracker, 2)
    update(tracker, 4, make_private_worker(1, "a.py"))
    assert update(tracker, 6) == []


def test_a_failed_scan_is_no_evidence_of_an_end():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py"))
    for now in range(2, 20, 2):
        assert update(tracker, now, processes=None) == []


def test_another_process_of_the_same_pid_is_another_life():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py"))
    other = make_private_worker(1, "b.py")
    other = replace(other, process=replace(other.process, started=99.0))
    ((_, gone),) = update(tracker, 2, other)
    assert (gone.name, tracker.present[1].name) == ("a.py", "b.py")


def test_what_the_kernel_says_has_ended_needs_no_missed_scan():
    tracker = ProcessTracker()
    worker = make_private_worker(1, "a.py", 6 * GB)
    update(tracker, 0, worker)
    started = tracker.present[1].started
    snapshot = Snapshot(2, (), processes=(), machine=MACHINE)
    ((life, gone),) = tracker.update(snapshot, {1: Exit(1, started, 1.5, ExitStatus(code=3))})
    assert (gone.ended, gone.was_seen, gone.held) == (1.5, True, 6 * GB)
    assert life.missed == 0
    # A scan that still lists it, as a zombie, makes no second process of it.
    assert update(tracker, 4, worker) == []
    assert tracker.present == {}


def test_an_exit_of_another_start_is_another_process():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py"))
    snapshot = Snapshot(2, (make_private_worker(1, "a.py"),), processes=None, machine=MACHINE)
    assert tracker.update(snapshot, {1: Exit(1, 7.25, 1.5, None)}) == []


def test_processes_that_used_the_gpu_are_marked_until_they_end():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py"), make_private_worker(2, "b.py"))
    assert tracker.note_reset({1, 99}, 1.0) == ["a.py"]
    assert tracker.gpu_resets == {1: 1.0}
    update(tracker, 2, make_private_worker(2, "b.py"))
    update(tracker, 4, make_private_worker(2, "b.py"))
    assert tracker.gpu_resets == {}


def test_an_end_while_the_computer_slept_was_not_seen():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py"))
    update(tracker, 30_000)
    ((_, gone),) = update(tracker, 30_002)
    assert (gone.was_seen, gone.ended) == (False, 0)


def test_only_heads_and_only_runs_get_a_row():
    tracker = ProcessTracker()
    child, brief = serve(10, name="child.py", parent=9), serve(11, name="brief.py")
    update(tracker, 0, processes=[serve(), child, brief])
    for now in range(2, 40, 2):
        update(tracker, now, processes=[serve(), child])
    assert tracker.ended == ()  # brief.py was there for a moment only
    update(tracker, 42, processes=[serve()])
    assert len(update(tracker, 44, processes=[serve()])) == 1  # recorded, but without a row
    assert tracker.ended == ()
    update(tracker, 46)
    update(tracker, 48)
    assert [(gone.name, gone.peak) for gone in tracker.ended] == [("serve.py", GB)]


def test_the_sizes_of_a_busy_worker_are_not_known():
    tracker = ProcessTracker()
    update(tracker, 0, make_private_worker(1, "a.py", 6 * GB))
    update(tracker, 2, make_private_worker(1, "a.py", 6 * GB, state="busy", age=3.0))
    life = tracker.present[1]
    assert life.values == dict.fromkeys(RECORDED) | {"footprint": 7 * GB}
    assert life.known["held"] == 6 * GB


def test_ended_rows_are_few_and_expire():
    tracker = ProcessTracker()
    for pid in range(1, 40):
        update(tracker, pid * 10, make_private_worker(pid, f"{pid}.py"))
        update(tracker, pid * 10 + 2)
        update(tracker, pid * 10 + 4)
    assert [gone.name for gone in tracker.ended[:2]] == ["39.py", "38.py"]
    assert len(tracker.ended) == 20
    update(tracker, ENDED_SHOWN_SECONDS + 1000)
    assert tracker.ended == ()


def test_one_process_is_found_by_pid_and_start():
    tracker = ProcessTracker()
    unknown = replace(make_private_worker(1, "a.py"), process=None)
    update(tracker, 0, unknown)
    first = tracker.present[1]
    assert tracker.find(1, 5.0) is tracker.find(1, None) is first  # its start is not known yet
    update(tracker, 2, make_private_worker(1, "a.py"))
    assert tracker.find(1, first.started) is tracker.find(1, None) is first
    assert tracker.find(1, 5.0) is None
    assert tracker.find(2, None) is None
