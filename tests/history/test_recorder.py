"""The history on real disks: what is written is read again, whatever happens to file, disk and clock."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from history_kit import GB, MACHINE, MB, fill, make_worker
from thorough import two_sizes
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.core.actions import Freed, Limited
from mpsbar.core.alerts import Alerts
from mpsbar.core.endings import EndEvidence, ExitStatus
from mpsbar.core.events import EventLog
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Process
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.verdicts import judge_end
from mpsbar.history import database, recorder
from mpsbar.history.reader import open_to_read, read_period, read_start
from mpsbar.history.recorder import Recorder
from mpsbar.history.report import recorded
from mpsbar.history.writer import PendingRows, RunWriter, read_ends

START = 1_794_000_000.0


class Play:
    """A recorder and its snapshots, on a clock of the test."""

    def __init__(self, file, cap=recorder.CAP, wall=START):
        self.file, self.cap, self.wall, self.own = file, cap, wall, 1000.0
        self.problems, self.tracker = [], ProcessTracker()
        self.alerts, self.events = Alerts(), EventLog()
        self.recorder = Recorder(self.problems.append, file, cap, lambda: self.own)

    def tick(self, *workers, seconds=2.0, freed=(), health=None, processes=()):
        self.wall += seconds
        self.own += seconds
        known = tuple(worker.process for worker in workers)
        seen = Snapshot(self.wall, workers, MACHINE, (*known, *processes), health or Health())
        ended = self.tracker.update(seen)
        for what in (*freed, *self.alerts.consider(seen, self.tracker)):
            self.events.add(self.wall, what)
        seen = replace(seen, events=self.events.recent)
        before = self.recorder.record(seen, self.tracker.present.values(), ended)
        self.tracker.remember(before, self.wall)
        return before

    def ticks(self, number, *workers, **more):
        for _ in range(number):
            self.tick(*workers, **more)

    def count(self, table):
        with closing(open_to_read(self.file)) as connection:
            return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def read(self, points=10**9, hours=24 * 8):
        return read_period(self.wall - hours * 3600, self.wall + 1, points, self.file)


@pytest.fixture
def file(private):
    return private / "data" / "history.sqlite"


@pytest.fixture
def play(file):
    made = Play(file)
    yield made
    made.recorder.close()


def train(held=6 * GB, cached=3 * GB, pid=4711, name="train.py"):
    return make_worker(pid, name, held, cached)


def test_the_speed_of_a_run_is_recorded_where_it_is_known(play):
    bar = RunBar("", 5, 10, "it", 3.1416)
    for progress in (None, RunProgress(bar), RunProgress(replace(bar, rate=1 / 3600))):
        play.tick(replace(train(), progress=progress))
    play.tick(replace(train(), progress=RunProgress(replace(bar, rate=1e12))))
    play.ticks(8)
    (run,) = play.read().runs
    assert run.series.columns["speed"] == (None, 3_100_000, 280, None)
    assert run.known["speed"] == 280


def test_what_is_recorded_is_read_again(play):
    play.ticks(6, train())
    play.tick(train(4 * GB, GB), freed=[Freed(4711, "train.py", "done", 2 * GB, 0.1)])
    leak = Health("warning", (Reason("leak", "warning", {"growth": GB}, 4711),))
    play.tick(train(4 * GB, GB), health=leak)
    play.ticks(8)
    period = play.read()
    assert set(period.machine.columns["used"]) == {27 * GB}
    assert set(period.machine.columns["budget"]) == {27 * GB}
    (run,) = period.runs
    assert (run.pid, run.name, run.device, run.is_connected) == (4711, "train.py", "mps", True)
    assert (run.peak, run.known["held"], run.known["allocated"], run.how) == (
        7 * GB,
        4 * GB,
        3 * GB,
        "unknown",
    )
    assert run.ended == pytest.approx(run.last + 2.0)
    assert set(run.series.columns["held"]) == {6 * GB, 4 * GB}
    alert, freed = period.events
    assert (freed.kind, freed.size, freed.name) == ("free", 2 * GB, "train.py")
    assert (alert.code, alert.level, alert.values) == ("leak", "warning", {"growth": GB})
    assert read_start(play.file) == pytest.approx(START + 2)


def test_limits_and_automatic_frees_are_recorded_with_their_cause_and_said_in_the_report(play):
    play.ticks(6, train())
    for what in (
        Freed(4711, "train.py", "done", 2 * GB, 0.1, cause="keep_below"),
        Freed(4711, "train.py", "refilled", 6 * GB, cause="keep_below"),
        Limited(4711, "train.py", "done", 9 * GB, 9 * GB),
        Limited(4711, "train.py", "above", 2 * GB),
        Limited(4711, "train.py", "done"),
    ):
        play.tick(train(), freed=[what])
    play.ticks(8)
    assert [recorded._say_event(event) for event in reversed(play.read().events)] == [
        "train.py: freed 2.0 GB (automatically: its cache was above the chosen size)",
        "train.py: cache refilled 3 times: automatic Free paused for an hour",
        "train.py: memory limit 9.0 GB",
        "train.py: memory limit 2.0 GB not set (it holds more than that)",
        "train.py: memory limit off",
    ]
    marks = recorded._marks(play.read().events)
    assert [mark.kind for mark in marks] == ["free"]


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


def test_what_does_not_change_is_written_once_a_minute(play):
    play.ticks(60, train())  # two minutes
    assert play.count("samples") <= 4
    assert play.count("machine") >= 50


def test_a_fork_bomb_of_workers_is_bounded(play):
    play.ticks(8, *(train(pid=pid) for pid in range(1, 2000)))
    assert play.count("runs") == 200
    play.ticks(8, train(pid=1), train(pid=1999))  # there is room again, and no end is made up
    with closing(open_to_read(play.file)) as connection:
        running = connection.execute("SELECT pid FROM runs WHERE ended IS NULL ORDER BY pid")
        assert [pid for (pid,) in running] == [1, 1999]
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (201,)


def test_unconnected_processes_are_recorded_by_their_footprint(play):
    serve = Process(9, 7.0, "serve.py", ("torch",), footprint=2 * GB, footprint_peak=5 * GB)
    play.ticks(30, processes=[serve])
    (run,) = play.read().runs
    assert (run.name, run.is_connected, run.footprint_peak, run.known["held"]) == (
        "serve.py", False, 5 * GB, None,
    )  # fmt: skip


def test_an_hour_in_full_a_week_by_the_minute_then_nothing(play):
    sizes = [GB + n * MB for n in range(7)]
    for number in range(3 * 360):  # three hours, a tick each 10 s
        play.tick(train(sizes[number % 7], 0), seconds=10.0)
    full = play.count("samples")
    assert 350 <= full <= 400
    assert 110 <= play.count("minutes") <= 125
    with closing(open_to_read(play.file)) as connection:
        minutes = connection.execute("SELECT held FROM minutes ORDER BY time").fetchall()
    assert min(minutes[1:]) >= (sizes[5],)  # of each whole minute the most
    for _ in range(8 * 24 * 6):  # eight days more, a look each 10 min
        play.tick(seconds=600.0)
    assert play.count("samples") == play.count("minutes") == play.count("runs") == 0
    oldest = read_start(play.file)
    assert play.wall - 7 * 86400 - 600 <= oldest <= play.wall - 6.9 * 86400


@two_sizes("cap", small=[2_400_000], whole=[6_000_000])
def test_the_cap_is_held_while_it_is_filled(file, cap):
    play = Play(file, cap)
    workers = [
        [train((n * 7 + k) * MB, 0, 100 + n, f"w{n}.py") for n in range(60)] for k in range(2)
    ]
    most, written = 0, 0
    ticks = cap // 1500
    for number in range(ticks):
        play.tick(*workers[number % 2], seconds=2.0)
        if number % 20 == 19:
            most = max(most, database.read_size(file))
            written = max(written, play.count("samples") + play.count("minutes"))
    play.recorder.close()
    assert 0.5 * cap < most <= cap
    assert written < ticks * 60 / 2  # the oldest had to go
    newest = play.read().machine.times[-1]
    assert play.wall - newest < 30  # and the newest are there
    assert play.problems == []


@two_sizes("cap", small=[recorder.CAP // 5], whole=[recorder.CAP])
def test_a_file_that_is_too_large_already_is_cut_to_the_cap(file, cap):
    rows = cap * 3 // 100
    with closing(database.open_database(file, 10 * cap)) as connection:
        connection.execute(
            "INSERT INTO minutes WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
            " WHERE i < ?) SELECT ? + i / 150 * 60000, i % 150, i << 12, i << 11, i << 12,"
            " i << 13, i FROM n",
            (rows, int(START - 7 * 86400) * 1000),
        )
    assert database.read_size(file) > cap
    play = Play(file, cap)
    play.ticks(10, train())
    assert database.read_size(file) <= cap
    assert play.count("minutes") > rows / 15  # but not emptied
    play.recorder.close()


@pytest.mark.parametrize("damage", ["garbage", "cut", "middle"])
def test_a_damaged_file_is_moved_aside_and_reported_once(file, damage):
    fill(file, runs=3, now=START)
    whole = file.read_bytes()
    cut = {
        "garbage": b"not a database at all" * 500,
        "cut": whole[: len(whole) // 2 + 100],
        "middle": whole[:8192] + os.urandom(200_000) + whole[208_192:],
    }[damage]
    file.write_bytes(cut)
    play = Play(file)
    play.ticks(20, train())
    assert [reason.code for reason in play.problems] == ["history_damaged"]
    (moved,) = file.parent.glob("history.damaged-*.sqlite")
    assert moved.read_bytes()[:5000] == cut[:5000]
    assert play.count("machine") >= 15  # also what was seen before it was found
    assert play.read().runs[0].name == "train.py"
    play.recorder.close()


def test_of_damaged_files_only_the_last_is_kept(file, monkeypatch):
    file.parent.mkdir(parents=True)
    for number in range(3):
        stamp = f"20261106-21200{number}"
        monkeypatch.setattr(database.time, "strftime", lambda _, stamp=stamp: stamp)
        file.write_bytes(b"x" * 5000)
        database.move_aside(file)
    assert len(list(file.parent.glob("history.damaged-*"))) == 1


def test_a_file_damaged_while_it_is_written(play):
    play.ticks(30, train())
    with play.file.open("r+b") as opened:
        opened.write(os.urandom(20_000))
    for suffix in ("-wal", "-shm"):
        play.file.with_name(play.file.name + suffix).unlink()
    play.recorder._disconnect()  # as after any failure
    play.ticks(20, train())
    assert [reason.code for reason in play.problems] == ["history_damaged"]
    assert play.read().runs[0].name == "train.py"


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = 0",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = 1",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = 57",
        "CREATE TABLE runs (id); CREATE TABLE samples (id); CREATE TABLE machine (id);"
        " CREATE TABLE events (id); PRAGMA user_version = 1",
        "CREATE TABLE runs (id); CREATE TABLE samples (id); CREATE TABLE machine (id);"
        " CREATE TABLE events (id); PRAGMA user_version = 0",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = -3",
    ],
)
def test_a_database_that_is_not_ours_is_moved_aside(file, statements):
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(statements)
    foreign = file.read_bytes()
    play = Play(file)
    play.ticks(20, train())
    assert [reason.code for reason in play.problems] == ["history_damaged"]
    (moved,) = file.parent.glob("history.damaged-*.sqlite")
    assert moved.read_bytes() == foreign
    assert play.count("machine") >= 15
    play.recorder.close()


@pytest.mark.parametrize("drop", ["DROP TABLE samples", "ALTER TABLE runs DROP COLUMN how"])
def test_a_table_that_somebody_drops_while_it_is_written(play, drop):
    play.ticks(10, train())
    with closing(sqlite3.connect(play.file)) as connection:
        connection.execute(drop)
    play.ticks(60, train())
    assert [reason.code for reason in play.problems] == ["history_damaged"]
    assert play.count("samples") > 0


@pytest.mark.parametrize("size", [100, 4096, 40_000])
def test_a_header_that_is_smashed_while_it_is_written(play, size):
    """SQLite may make it good from its log; else the recorder begins a new file by itself."""
    play.ticks(10, train())
    with play.file.open("r+b") as opened:
        opened.write(b"smashed!" * (size // 8))
    play.ticks(100, train())
    play.recorder.close()
    again = Play(play.file, wall=play.wall)
    again.ticks(20, train())
    assert again.count("machine") >= 15
    assert {reason.code for reason in play.problems + again.problems} <= {"history_damaged"}
    again.recorder.close()


def test_one_impossible_number_costs_its_own_row_and_is_said(play):
    """An agent's totals beyond 64 bits once ended the history of everybody."""
    play.ticks(10, train(held=2**70, cached=1, pid=1, name="liar.py"), train())
    play.ticks(10, train())
    assert {run.name for run in play.read().runs} >= {"train.py"}
    assert play.count("samples") > 0
    assert [reason.code for reason in play.problems] == ["history_rows_left_out"]
    assert play.recorder._rows.is_empty or len(play.recorder._rows.samples) < 20


def test_what_waits_is_bounded_while_nothing_can_be_written(play, monkeypatch):
    monkeypatch.setattr("mpsbar.history.writer._MAX_WAITING", 50)
    rows = play.recorder._rows
    for number in range(0, 300, 3):
        play.tracker = ProcessTracker()
        monkeypatch.setattr(play.recorder, "_due", play.own + 1e6)
        rows.is_urgent = False
        workers = [train(pid=1000 + number + i) for i in range(3)]
        play.tick(*workers)
        rows._written.clear()
    assert len(rows.seen) <= 50
    monkeypatch.setattr(play.recorder, "_due", 0.0)
    play.ticks(3, train())
    assert play.count("samples") > 0
    assert play.problems == []


def test_a_pipe_in_its_place_is_said_and_nobody_waits(file):
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    play = Play(file)
    play.ticks(20, train())
    (problem,) = play.problems
    assert (problem.code, problem.values["error"]) == ("history_not_written", "it is not a file")
    play.recorder.close()


@pytest.mark.parametrize("name", ["history.sqlite", "history.sqlite-journal"])
def test_a_pipe_in_its_place_makes_no_reader_wait(file, name):
    """SQLite would wait until somebody writes to it: `mpsbar why` and `report` did."""
    fill(file, runs=1, now=START)
    file.with_name(name).unlink(missing_ok=True)
    os.mkfifo(file.with_name(name))
    assert read_start(file) is None
    assert read_period(0, START, 10, file).is_empty


def test_someone_removes_it(play):
    play.ticks(10, train())
    for path in play.file.parent.glob("history.sqlite*"):
        path.unlink()
    play.ticks(40, train())
    assert play.count("machine") >= 30
    assert play.read().runs[0].ended is None
    assert play.problems == []


@contextmanager
def mounted(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(("mode=700", *options)), "tmpfs", str(folder)],
        capture_output=True,
    )
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here (root only)")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


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


def test_a_history_that_may_only_be_read_is_read(private):
    folder = private / "locked"
    with mounted(folder, "size=20m"):
        fill(folder / "history.sqlite", runs=2, now=START)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        period = read_period(START - 3600, START, 100, folder / "history.sqlite")
        assert len(period.runs) == 2


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
    first.ticks(20, train(), make_worker(4712, "other.py"))
    first.recorder.close()
    second = Play(file, wall=first.wall + 8 * 3600)
    ends = [gone for _ in range(12) for gone in second.tick(make_worker(4712, "other.py"))]
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


def test_a_clock_that_jumps_loses_nothing(play):
    play.ticks(400, train(), seconds=10.0)  # more than an hour
    rows = play.count("machine") + play.count("machine_minutes")
    play.wall += 400 * 86400
    play.ticks(200, train(), seconds=10.0)
    assert play.count("machine") + play.count("machine_minutes") >= rows + 150
    play.wall -= 400 * 86400 + 1800
    play.ticks(300, train(), seconds=10.0)
    period = play.read(hours=3)
    assert period.machine.times == tuple(sorted(period.machine.times))
    assert play.count("machine") + play.count("machine_minutes") >= rows
    assert play.problems == []


def test_rows_of_a_wrong_clock_are_dropped_once_the_clock_is_trusted(play):
    play.wall += 400 * 86400
    play.ticks(20, train(), seconds=10.0)
    play.wall -= 400 * 86400
    play.ticks(500, train(), seconds=10.0)
    with closing(open_to_read(play.file)) as connection:
        (latest,) = connection.execute("SELECT max(time) FROM machine").fetchone()
    assert latest <= play.wall * 1000


def test_an_older_file_is_brought_up(file, monkeypatch):
    fill(file, runs=2, now=START, seconds=7200)
    before = sqlite3.connect(file).execute("SELECT count(*) FROM samples").fetchone()
    step = "ALTER TABLE runs ADD COLUMN host TEXT; UPDATE runs SET host = 'here'"
    monkeypatch.setattr(database, "STEPS", (*database.STEPS, step))
    with closing(database.open_database(file, recorder.CAP)) as connection:
        assert database.read_version(connection) == len(database.STEPS)
        assert connection.execute("SELECT DISTINCT host FROM runs").fetchall() == [("here",)]
        assert connection.execute("SELECT count(*) FROM samples").fetchone() == before


def test_a_step_that_fails_leaves_the_file_as_it_was(file, monkeypatch):
    fill(file, runs=2, now=START, seconds=7200)
    step = "ALTER TABLE runs ADD COLUMN host TEXT; UPDATE nothing SET host = 'here'"
    monkeypatch.setattr(database, "STEPS", (*database.STEPS, step))
    with pytest.raises(sqlite3.OperationalError):
        database.open_database(file, recorder.CAP)
    monkeypatch.undo()
    with closing(database.open_database(file, recorder.CAP)) as connection:
        assert database.read_version(connection) == len(database.STEPS)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
        assert "host" not in columns


def test_a_file_from_before_verdicts_is_read_and_brought_up(file):
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(0o600)
    with closing(sqlite3.connect(file)) as old:
        old.executescript(database.STEPS[0] + "; PRAGMA user_version = 1;")
        old.execute(
            "INSERT INTO runs (pid, started, name, head, connected, first, last, ended, how)"
            " VALUES (7, 1.0, 'old.py', 1, 1, 1000, 2000, 2000, 'pressure')"
        )
        old.commit()
    with closing(open_to_read(file)) as connection:
        (end,) = read_ends(connection, 0, 9000, 5)
    assert (end.name, end.how, end.verdict) == ("old.py", "pressure", None)
    verdict = judge_end(EndEvidence(status=ExitStatus(code=3)))
    rows = PendingRows()
    rows.correct(replace(end, verdict=verdict, how=verdict.code))
    with closing(database.open_database(file, recorder.CAP)) as connection:
        assert RunWriter().write(connection, rows) == 0
        (end,) = read_ends(connection, 0, 9000, 5)
    assert (end.how, end.verdict) == ("exit_code", verdict)


def test_a_newer_file_is_not_touched(file):
    fill(file, runs=1, now=START, seconds=600)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    play = Play(file)
    play.ticks(100, train())
    play.recorder.close()
    assert [reason.code for reason in play.problems] == ["history_newer"]
    assert file.read_bytes() == before


@two_sizes("cap", small=[2_400_000], whole=[6_000_000])
def test_a_reader_that_stands_still_does_not_make_it_grow_beyond_the_cap(file, cap):
    play = Play(file, cap)
    workers = [
        [train((n * 7 + k) * MB, 0, 100 + n, f"w{n}.py") for n in range(60)] for k in range(2)
    ]
    play.ticks(20, *workers[0])
    with closing(open_to_read(file)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM samples").fetchone()
        for number in range(cap // 2000):
            play.tick(*workers[number % 2])
            assert database.read_size(file) <= cap + 600_000  # one batch
    play.ticks(100, *workers[0])
    assert database.read_size(file) <= cap
    play.recorder.close()


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


def test_the_file_is_for_this_user_only(play):
    play.ticks(10, train())
    assert {path.stat().st_mode & 0o777 for path in play.file.parent.glob("history.sqlite*")} == {
        0o600
    }
