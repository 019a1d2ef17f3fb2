"""Which rows are written, and how many may wait."""

from contextlib import closing
from dataclasses import replace

from history.recorder_kit import train
from history_kit import GB

from mpsbar.core.machine import Process
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.history.reader import open_to_read


def test_the_speed_of_a_run_is_recorded_where_it_is_known(play):
    bar = RunBar("", 5, 10, "it", 3.1416)
    for progress in (None, RunProgress(bar), RunProgress(replace(bar, rate=1 / 3600))):
        play.tick(replace(train(), progress=progress))
    play.tick(replace(train(), progress=RunProgress(replace(bar, rate=1e12))))
    play.ticks(8)
    (run,) = play.read().runs
    assert run.series.columns["speed"] == (None, 3_100_000, 280, None)
    assert run.known["speed"] == 280


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
