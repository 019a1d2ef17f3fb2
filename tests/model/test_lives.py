"""Who is there, who has gone, and what is told of them."""

from dataclasses import replace

from history_kit import GB, MACHINE, make_worker

from mpsbar.model.action import Stopped
from mpsbar.model.lives import TOLD_SECONDS, Held, Lives
from mpsbar.model.machine import Process
from mpsbar.model.snapshot import Snapshot


def look(lives, now, *workers, processes=(), **fields):
    known = tuple(worker.process for worker in workers if worker.process)
    listed = None if processes is None else (*known, *processes)
    given = {"machine": MACHINE} | fields
    return lives.look(Snapshot(now, workers, processes=listed, **given))


def serve(pid=9, **fields):
    given = {"started": 7.0, "name": "serve.py", "frameworks": ("torch",), "footprint": GB} | fields
    return Process(pid, **given)


def test_an_end_is_told_once_with_the_peak():
    lives = Lives()
    look(lives, 0, make_worker(1, "a.py", 6 * GB))
    look(lives, 2, make_worker(1, "a.py", 2 * GB, 0))
    assert look(lives, 4) == []  # one look may miss it
    ((life, gone),) = look(lives, 6)
    assert (gone.name, gone.ended, gone.was_seen, gone.how) == ("a.py", 4, True, "unknown")
    assert (gone.peak, gone.held) == (7 * GB, 2 * GB)
    assert look(lives, 8) == []
    assert lives.gone == (gone,)
    assert (life.first, life.last, lives.present) == (0, 2, {})


def test_one_missed_look_is_no_end():
    lives = Lives()
    look(lives, 0, make_worker(1, "a.py"))
    look(lives, 2)
    look(lives, 4, make_worker(1, "a.py"))
    assert look(lives, 6) == []


def test_a_look_that_failed_says_nothing():
    lives = Lives()
    look(lives, 0, make_worker(1, "a.py"))
    for now in range(2, 20, 2):
        assert look(lives, now, processes=None) == []


def test_another_process_of_the_same_pid_is_another_life():
    lives = Lives()
    look(lives, 0, make_worker(1, "a.py"))
    other = make_worker(1, "b.py")
    other = replace(other, process=replace(other.process, started=99.0))
    ((_, gone),) = look(lives, 2, other)
    assert (gone.name, lives.present[1].name) == ("a.py", "b.py")


def test_how_it_ended_as_far_as_it_is_known():
    for fields, how in (
        ({}, "unknown"),
        ({"stopped": {1: Stopped(1, "a.py", "asked")}}, "stopped"),
        ({"stopped": {1: Stopped(1, "a.py", "not_allowed")}}, "unknown"),
        ({"machine": replace(MACHINE, pressure="critical")}, "pressure"),
    ):
        lives = Lives()
        look(lives, 0, make_worker(1, "a.py"))
        look(lives, 2, **fields)
        ((_, gone),) = look(lives, 4, **fields)
        assert gone.how == how


def test_an_end_while_the_computer_slept_was_not_seen():
    lives = Lives()
    look(lives, 0, make_worker(1, "a.py"))
    look(lives, 30_000)
    ((_, gone),) = look(lives, 30_002)
    assert (gone.was_seen, gone.ended) == (False, 0)


def test_only_heads_and_only_runs_are_told():
    lives = Lives()
    child, brief = serve(10, name="child.py", parent=9), serve(11, name="brief.py")
    look(lives, 0, processes=[serve(), child, brief])
    for now in range(2, 40, 2):
        look(lives, now, processes=[serve(), child])
    assert lives.gone == ()  # brief.py was there for a moment only
    look(lives, 42, processes=[serve()])
    assert len(look(lives, 44, processes=[serve()])) == 1  # recorded, but not told
    assert lives.gone == ()
    look(lives, 46)
    look(lives, 48)
    assert [(gone.name, gone.peak) for gone in lives.gone] == [("serve.py", GB)]


def test_a_busy_worker_is_not_said_to_hold_what_it_held():
    lives = Lives()
    look(lives, 0, make_worker(1, "a.py", 6 * GB))
    look(lives, 2, make_worker(1, "a.py", 6 * GB, state="busy", age=3.0))
    life = lives.present[1]
    assert life.values == Held(footprint=7 * GB)
    assert life.known.held == 6 * GB


def test_the_told_are_few_and_not_for_ever():
    lives = Lives()
    for pid in range(1, 40):
        look(lives, pid * 10, make_worker(pid, f"{pid}.py"))
        look(lives, pid * 10 + 2)
        look(lives, pid * 10 + 4)
    assert [gone.name for gone in lives.gone[:2]] == ["39.py", "38.py"]
    assert len(lives.gone) == 20
    look(lives, TOLD_SECONDS + 1000)
    assert lives.gone == ()


def test_a_fork_bomb_of_workers_is_bounded():
    lives = Lives()
    look(lives, 0, *(make_worker(pid, "w.py") for pid in range(1, 2000)))
    assert len(lives.present) == 200
