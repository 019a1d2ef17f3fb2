"""The report of what was recorded: its marks, its sentences, its speeds."""

from history.recorder_kit import train
from history_kit import GB, NOW

from mpsbar.core.actions import Freed, Limited
from mpsbar.history.reader import Period, Run, TimeSeries
from mpsbar.history.report import recorded
from mpsbar.history.report.recorded import build_past


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
        "train.py: cache refilled 3 times: automatic freeing paused for an hour",
        "train.py: memory limit 9.0 GB",
        "train.py: memory limit 2.0 GB not set (it holds more than that)",
        "train.py: memory limit off",
    ]
    marks = recorded._marks(play.read().events)
    assert [mark.kind for mark in marks] == ["free"]


def test_the_speed_of_a_run_has_a_chart_of_its_own_where_it_is_known():
    times = (NOW - 20, NOW - 10)
    known = TimeSeries(times, {"held": (GB, GB), "speed": (3_100_000, 900_000)})
    unknown = TimeSeries(times, {"held": (GB, GB), "speed": (None, None)})
    fast, silent = (
        Run(pid, name, "mps", True, NOW - 20, NOW, series=series)
        for pid, name, series in ((1, "fast.py", known), (2, "silent.py", unknown))
    )
    page = build_past((Period(NOW - 100, NOW, runs=(fast, silent)),), None, "")
    assert 'aria-label="fast.py: speed: speed 0.9/s to 3.1/s, last 0.9/s"' in page
    assert "<span>4/s</span><span>3/s</span><span>2/s</span><span>1/s</span><span>0</span>" in page
    assert '{"name":"speed","values":[3.1,0.9]}' in page
    assert "<td>3.1/s</td>" in page
    assert "silent.py: speed" not in page
