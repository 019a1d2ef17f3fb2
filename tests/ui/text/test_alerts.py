"""Every sentence on health, and what notifications say, word for word; hostile names stay text."""

import pytest

from mpsbar.core import health as core_health
from mpsbar.core.alerts import CAUSES
from mpsbar.core.events import Alert
from mpsbar.core.findings import Health, Reason
from mpsbar.ui.text import alerts
from mpsbar.ui.text.alerts import say_alert, say_alert_in_a_line, say_health, say_reason
from mpsbar.ui.text.endings import say_verdict

MB, GB = 1 << 20, 1 << 30

REASONS = [
    (
        Reason("gpu_reset", "warning", {"time": None, "names": "train.py, serve.py", "count": 2}),
        "The GPU was reset at ?; results since then may be wrong: train.py, serve.py (torch before 2.15"
        " does not raise an error)",
    ),
    (Reason("pressure", "warning", {"pressure": "warning"}), "Memory pressure is high"),
    (Reason("pressure", "critical", {"pressure": "critical"}), "Memory pressure is critical"),
    (
        Reason("memory_filling", "critical", {"seconds": 75.2, "available": 2 * GB}),
        "At this rate, memory will be full in 75 s (2.0 GB left)",
    ),
    (
        Reason("gpu_filling", "warning", {"seconds": 480.0, "used": 20 * GB, "budget": 27 * GB}),
        "At this rate, GPU memory will be full in 8 min (20.0 GB of 27.0 GB in use)",
    ),
    (
        Reason("process_memory", "warning", {"used": 25 * GB, "budget": 27 * GB}, 7),
        "train.py is using 25.0 GB of the GPU's 27.0 GB",
    ),
    (
        Reason("gpu_memory", "critical", {"used": 28 * GB, "budget": 27 * GB}),
        "GPU memory is running low: 28.0 GB of 27.0 GB in use",
    ),
    (
        Reason("leak", "warning", {"growth": 512 * MB, "seconds": 400.0}, 7),
        "train.py grew by 512 MB more than its tensors in 7 min: possible memory leak",
    ),
    (
        Reason("swap_growing", "warning", {"growth": 600 * MB, "seconds": 120.0, "used": 3 * GB}),
        "Swap grew by 600 MB in 2 min (now 3.0 GB)",
    ),
    (
        Reason("slowed", "warning", {"before": 3.1, "now": 0.9, "unit": "it", "cause": "swap", "growth": 6 * GB}, 7),
        "train.py slowed from 3.1 to 0.9 it/s at ?; at the same time, swap grew by 6.0 GB",
    ),
    (
        Reason("cache", "ok", {"cached": 6 * GB, "whole": 27 * GB}, 7),
        "train.py has a cache of 6.0 GB that can be freed",
    ),
    (Reason("unknown", "ok"), "Couldn't read this computer's memory"),
    (Reason("not_judged", "ok"), "Status unknown"),
    (Reason("pressure_unknown", "ok"), "Memory pressure is unknown; no other problems"),
    (
        Reason("swap_used", "warning", {"used": 7 * GB, "available": GB, "whole": 8 * GB}),
        "Memory is running low: 7.0 GB of swap in use, 1.0 GB of 8.0 GB available",
    ),
    (Reason("gpu_memory", "warning"), "GPU memory is running low: ? of ? in use"),
    (Reason("gpu_memory", "warning", {"used": None, "budget": "x"}), "GPU memory is running low: ? of ? in use"),
    (Reason("of_a_later\nversion", "warning"), "of_a_later\N{REPLACEMENT CHARACTER}version (no description)"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "text"), REASONS)
def test_reasons(reason, text):
    assert say_reason(reason, "train.py") == text


@pytest.mark.parametrize(
    ("pid", "name", "text"),
    [
        (7, None, "process 7"),
        (7, "", "process 7"),
        (None, None, "a process"),
        (7, "evil\x1b[31m\nname", "evil�[31m�name"),
        (7, "{pid} %s", "{pid} %s"),
        (7, "a_very_long_name_of_an_experiment_number_17.py", "a_very_long_name_of_…riment_number_17.py"),
    ],
)  # fmt: skip
def test_names(pid, name, text):
    assert say_reason(Reason("cache", "ok", {"cached": 1}, pid), name) == (
        f"{text} has a cache of 1 B that can be freed"
    )


CACHE = Reason("cache", "ok", {"cached": 6 * GB}, 7)
PRESSURE = Reason("pressure", "critical")
SWAP = Reason("swap_growing", "warning", {"growth": GB, "seconds": 60.0, "used": GB})
LEAK = Reason("leak", "warning", {"growth": GB, "seconds": 400.0}, 7)


@pytest.mark.parametrize(
    ("health", "text"),
    [
        (Health(), "No problems"),
        (Health("ok", (CACHE,)), "No problems; train.py has a cache of 6.0 GB that can be freed"),
        (Health("ok", (Reason("unknown", "ok"),)), "Couldn't read this computer's memory"),
        (Health("critical", (PRESSURE,)), "Memory pressure is critical"),
        (Health("critical", (PRESSURE, CACHE)), "Memory pressure is critical"),
        (Health("critical", (PRESSURE, SWAP)), "Memory pressure is critical (and 1 more)"),
        (Health("critical", (PRESSURE, LEAK, SWAP, CACHE)), "Memory pressure is critical (and 2 more)"),
        (
            Health("warning", (LEAK,)),
            "train.py grew by 1.0 GB more than its tensors in 7 min: possible memory leak",
        ),
    ],
)  # fmt: skip
def test_health_in_one_sentence(health, text):
    assert say_health(health, {7: "train.py"}) == text


def test_health_without_a_name():
    assert say_health(Health("warning", (LEAK,)), {}).startswith("process 7 grew by 1.0 GB")


def test_no_reason_is_without_its_literal_here():
    codes = {"not_judged", "gpu_reset"}  # the monitor's own
    assert set(alerts._reasons("ok")) == {*core_health._ORDER, *codes}
    assert {reason.code for reason, _ in REASONS} >= set(alerts._reasons("ok"))


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
