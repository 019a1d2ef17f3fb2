"""The file of the history: damaged, foreign, older or newer, and whose it is."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from history.recorder_kit import START, Play, train
from history_kit import fill

from mpsbar.core.endings import EndEvidence, ExitStatus
from mpsbar.core.verdicts import judge_end
from mpsbar.history import database, recorder
from mpsbar.history.reader import open_to_read
from mpsbar.history.writer import PendingRows, RunWriter, read_ends


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
    with pytest.raises(database.NewerFormatError):
        play.recorder.close()
    assert [reason.code for reason in play.problems] == ["history_newer"]
    assert file.read_bytes() == before


def test_the_file_is_for_this_user_only(play):
    play.ticks(10, train())
    assert {path.stat().st_mode & 0o777 for path in play.file.parent.glob("history.sqlite*")} == {
        0o600
    }
