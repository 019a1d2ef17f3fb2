"""The recorder on real disks: what it saw is on disk, whatever happens to the file, the disk and the clock."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from history.recorder_kit import Play, mounted, train
from history_kit import GB, MB, make_private_worker
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.history.reader import open_to_read


def test_what_waits_at_the_end_is_written(play):
    play.ticks(2, train())
    assert not play.file.exists()
    play.recorder.close()
    assert (play.count("machine"), play.count("runs")) == (2, 1)


def test_an_end_is_on_disk_at_once(play):
    play.ticks(6, train())
    play.ticks(2)
    with closing(open_to_read(play.file)) as connection:
        assert connection.execute("SELECT how FROM runs").fetchone() == ("unknown",)


def test_a_pipe_in_its_place_is_said_and_nobody_waits(file):
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    play = Play(file)
    play.ticks(20, train())
    (problem,) = play.problems
    assert (problem.code, problem.values["error"]) == ("history_not_written", "it is not a file")
    with pytest.raises(OSError, match="it is not a file"):
        play.recorder.close()


def test_someone_removes_it(play):
    play.ticks(10, train())
    for path in play.file.parent.glob("history.sqlite*"):
        path.unlink()
    play.ticks(40, train())
    assert play.count("machine") >= 30
    assert play.read().runs[0].ended is None
    assert play.problems == []


def test_a_full_disk(private):
    folder = private / "small"
    with mounted(folder, "size=600k"):
        play = Play(folder / "history.sqlite")
        play.ticks(10, train())
        rows = play.count("machine")
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as opened, pytest.raises(OSError, match="space"):
            while True:
                opened.write(b"x" * 4096)
        for number in range(200):
            play.tick(train(GB + number * MB))
        assert [reason.code for reason in play.problems] == ["history_not_written"]
        assert "full" in str(play.problems[0].values["error"])
        assert play.count("machine") >= rows  # nothing that was there is lost
        filler.unlink()
        play.ticks(40, train())
        assert play.count("machine") >= 240  # and what waited was written
        play.recorder.close()


def test_a_home_that_cannot_be_written(private, monkeypatch):
    folder = private / "locked"
    with mounted(folder, "size=600k"):
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        monkeypatch.setenv("MPSBAR_DATA_DIR", str(folder / "data"))
        play = Play(folder / "data" / "history.sqlite")
        play.ticks(100, train())
        assert [reason.code for reason in play.problems] == ["history_not_written"]
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        play.ticks(40, train())
        assert play.count("machine") >= 130
        play.recorder.close()


def test_what_cannot_be_written_at_the_end_is_raised_and_the_next_may_record(file, monkeypatch):
    first = Play(file)
    first.ticks(20, train())
    first.tick(train(2 * GB))
    assert not first.recorder._rows.is_empty

    def fail(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(first.recorder._runs, "write", fail)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        first.recorder.close()
    second = Play(file, wall=first.wall)
    second.ticks(20, train())
    assert second.count("machine") > 20
    second.recorder.close()


def test_another_process_writes_for_a_while(play):
    play.ticks(10, train())
    with closing(sqlite3.connect(play.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        play.ticks(60, train())
        assert play.problems == []  # it is nobody's fault
        other.execute("ROLLBACK")
    play.ticks(10, train())
    assert play.count("machine") >= 75
    assert [run.ended for run in play.read().runs] == [None]


def test_one_records_and_the_next_takes_over(file):
    first, second = Play(file), Play(file)
    first.ticks(20, train())
    rows = first.count("machine")
    second.ticks(20, train())
    assert second.count("machine") == rows
    first.recorder.close()
    second.ticks(20, train())
    assert second.count("machine") > rows
    assert second.count("runs") == 1  # the same process is the same run
    second.recorder.close()


def test_the_next_recorder_returns_processes_that_ended_unseen(file):
    first = Play(file)
    first.ticks(20, train(), make_private_worker(4712, "other.py"))
    first.recorder.close()
    second = Play(file, wall=first.wall + 8 * 3600)
    ends = [gone for _ in range(12) for gone in second.tick(make_private_worker(4712, "other.py"))]
    (gone,) = ends
    assert (gone.pid, gone.name, gone.was_seen, gone.peak) == (4711, "train.py", False, 7 * GB)
    assert second.tracker.ended == (gone,)
    ends = {run.name: run.how for run in second.read().runs}
    assert ends == {"train.py": "unseen", "other.py": None}
    second.recorder.close()


def test_a_second_monitor_gets_them_too(file):
    first = Play(file)
    first.ticks(20, train())
    first.ticks(10)
    second = Play(file, wall=first.wall)
    ends = [gone for _ in range(12) for gone in second.tick()]
    assert [gone.name for gone in ends] == ["train.py"]
    first.recorder.close()


KILLED = """
import sys, time
from mpsbar.monitor import Monitor
from mpsbar.history.recorder import Recorder
from mpsbar.history.writer import PendingRows, RunWriter, read_ends
import mpsbar.history.recorder as module
module.FLUSH_SECONDS = 0.1
monitor = Monitor(recorder=Recorder(print))
while True:
    monitor.tick()
    time.sleep(0.05)
"""


def test_a_recorder_that_is_killed_has_written_what_it_saw(file, workers):
    env = workers.env() | {"MPSBAR_DATA_DIR": str(file.parent)}
    child = subprocess.Popen([sys.executable, "-c", KILLED], env=env, cwd=ROOT)

    def rows():
        try:
            with closing(open_to_read(file)) as connection:
                return connection.execute("SELECT count(*) FROM machine").fetchone()[0]
        except (FileNotFoundError, sqlite3.Error):
            return 0

    try:
        wait_for(lambda: rows() > 5, TIMEOUT)
    finally:
        child.kill()
        child.wait()
    there = rows()
    play = Play(file, wall=time.time())
    play.ticks(10)
    assert play.count("machine") >= there + 5
    assert play.problems == []
    play.recorder.close()
