"""What was recorded is read again, from files that may only be read too."""

import os
import subprocess

import pytest
from history.recorder_kit import START, mounted, train
from history_kit import GB, fill

from mpsbar.core.actions import Freed
from mpsbar.core.findings import Health, Reason
from mpsbar.history.reader import read_period, read_start


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


@pytest.mark.parametrize("name", ["history.sqlite", "history.sqlite-journal"])
def test_a_pipe_in_its_place_makes_no_reader_wait(file, name):
    """SQLite would wait until somebody writes to it: `mpsbar why` and `report` did."""
    fill(file, runs=1, now=START)
    file.with_name(name).unlink(missing_ok=True)
    os.mkfifo(file.with_name(name))
    assert read_start(file) is None
    assert read_period(0, START, 10, file).is_empty


def test_a_history_that_may_only_be_read_is_read(private):
    folder = private / "locked"
    with mounted(folder, "size=20m"):
        fill(folder / "history.sqlite", runs=2, now=START)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        period = read_period(START - 3600, START, 100, folder / "history.sqlite")
        assert len(period.runs) == 2
