"""What notifications say, word for word; hostile names stay text."""

import pytest

from mpsbar.core.alerts import CAUSES
from mpsbar.core.events import Alert
from mpsbar.core.findings import Reason
from mpsbar.ui.text.alerts import say_alert, say_alert_in_a_line
from mpsbar.ui.text.endings import say_verdict
from mpsbar.ui.text.findings import say_reason

GB = 1 << 30


def alert(code, level="warning", kind="raised", pid=None, name=None, **values):
    reason = Reason(code, level, values, pid)
    shown = "ok" if kind in ("recovered", "ended") else level
    return Alert(code, shown, pid, 100.0, reason, kind, "key", name)


@pytest.mark.parametrize(
    ("told", "title", "text"),
    [
        (
            alert("pressure", "critical", "worse"),
            "Critical: Memory Pressure",
            "Memory pressure is critical",
        ),
        (
            alert("leak", pid=7, name="train.py", growth=GB, seconds=400.0),
            "Warning: Possible Memory Leak",
            "train.py grew by 1.0 GB more than its tensors in 7 min: possible memory leak",
        ),
        (
            alert("memory_filling", seconds=300.0, available=2 * GB),
            "Warning: Memory Filling Up",
            "At this rate, memory will be full in 5 min (2.0 GB left)",
        ),
        (
            alert("pressure", kind="recovered"),
            "Resolved: Memory Pressure",
            "Memory pressure is back to normal",
        ),
        (
            alert("leak", kind="recovered", pid=7, name="train.py"),
            "Resolved: Possible Memory Leak",
            "train.py is no longer growing faster than its tensors",
        ),
        (
            alert("ended", kind="ended", pid=7, name="train.py", held=GB, peak=11 * GB),
            "train.py ended",
            "Process 7 is no longer running; it last held 1.0 GB, peak 11.0 GB",
        ),
        (
            alert("ended", kind="ended", pid=7, name="a.py", held=GB, peak=2 * GB, ran=11_000.0),
            "a.py ended",
            "Process 7 is no longer running; it ran for 3 h, last held 1.0 GB, peak 2.0 GB",
        ),
        (
            alert("ended", kind="ended", pid=7, name="", held=None, peak=None, ran=None),
            "Process 7 ended",
            "Process 7 is no longer running",
        ),
    ],
)
def test_the_words(told, title, text):
    assert say_alert(told) == (title, text)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (
            alert("leak", pid=7, name="train.py", growth=GB, seconds=400.0),
            "Warning: train.py grew by 1.0 GB more than its tensors in 7 min: possible memory leak",
        ),
        (alert("pressure", "critical", "worse"), "Critical: Memory pressure is critical"),
        (alert("pressure", kind="recovered"), "Resolved: Memory pressure is back to normal"),
        (
            alert("ended", kind="ended", pid=7, name="train.py", held=None, peak=None),
            "train.py ended: Process 7 is no longer running",
        ),
    ],
)
def test_an_alert_in_a_line_of_a_log_does_not_say_everything_twice(told, line):
    assert say_alert_in_a_line(told) == line


@pytest.mark.parametrize("code", sorted(CAUSES))
def test_every_code_has_words_for_its_beginning_and_its_end(code):
    assert code not in " ".join(say_alert(alert(code, pid=7))) or code in (
        "pressure",
        "slowed",
        "leak",
        "cache",
    )
    assert "The problem is gone" not in say_alert(alert(code, kind="recovered", pid=7))[1]


def test_a_code_without_words_is_still_said():
    assert say_alert(alert("new_code"))[0] == "Warning: new_code"
    bare = Alert("odd", "warning", None, None, None, "raised", "key")
    assert say_alert(bare) == ("mpsbar", "odd")


def test_the_end_of_a_long_name_is_kept():
    ended = alert("leak", kind="ended", pid=7, name="x" * 500 + "fold-3.py")
    assert say_alert(ended)[0].endswith("fold-3.py ended")
    leaking = say_reason(Reason("leak", "warning", pid=7), "x" * 500 + "fold-3.py")
    for words in (say_alert_in_a_line(ended), leaking, say_verdict(None, "x" * 500 + "fold-3.py")):
        assert "fold-3.py" in words


@pytest.mark.parametrize("kind", ["raised", "recovered", "ended"])
@pytest.mark.parametrize(
    "name",
    ["\x1b[31mred\n\x00{0}{pid}", "x" * 10_000, "\u202egnp.exe", "{reason.values}%s", "\ud800"],
)
def test_hostile_names_stay_text_of_one_line(kind, name):
    title, text = say_alert(alert("leak", kind=kind, pid=7, name=name, growth=1, seconds=1.0))
    assert title.isprintable()
    assert text.isprintable()
    assert len(title) <= 60
    assert len(text) <= 240
    if name.startswith("{"):
        assert "{reason.values}%s" in title + text
