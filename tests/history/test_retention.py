"""An hour in full, a week by the minute, and never more than the cap."""

import sqlite3
from contextlib import closing, suppress

from history.recorder_kit import START, Play, train
from history_kit import GB, MB
from thorough import two_sizes

from mpsbar.history import database, recorder
from mpsbar.history.reader import open_to_read, read_start


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
    with suppress(sqlite3.OperationalError):  # full, of the rows that waited for the reader
        play.recorder.close()
