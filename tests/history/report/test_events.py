"""What happened, in the report's words: limits, frees and their cause."""

from history.recorder_kit import train
from history_kit import GB

from mpsbar.core.actions import Freed, Limited
from mpsbar.history.report.charts import _marks
from mpsbar.history.report.events import say_event


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
    assert [say_event(event) for event in reversed(play.read().events)] == [
        "train.py: freed 2.0 GB (automatically: its cache was above the chosen size)",
        "train.py: cache refilled 3 times: automatic freeing paused for an hour",
        "train.py: memory limit 9.0 GB",
        "train.py: memory limit 2.0 GB not set (it holds more than that)",
        "train.py: memory limit off",
    ]
    marks = _marks(play.read().events)
    assert [mark.kind for mark in marks] == ["free"]
