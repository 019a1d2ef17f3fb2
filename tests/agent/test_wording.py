"""Sizes, times, speeds and the reasons of a busy process, as literals."""

import pytest
from samples import GB, MB

from mpsbar.agent import wording


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "?"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1 << 20, "1.0 MB"),
        (int(99.94 * MB), "99.9 MB"), (int(99.96 * MB), "100 MB"), (1023 * MB, "1.0 GB"),
        (36 * GB, "36.0 GB"), (512 * GB, "512 GB"), (2 << 40, "2.0 TB"), (2**62, "4194304 TB"),
    ],
)  # fmt: skip
def test_sizes(count, text):
    assert wording.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "?"), (0.0004, "0 ms"), (0.04, "40 ms"), (0.9996, "1.0 s"), (9.96, "10 s"),
     (119, "119 s"), (180, "3 min"), (7200, "2 h")],
)  # fmt: skip
def test_durations(seconds, text):
    assert wording.duration(seconds) == text


def test_a_slow_step_is_told_in_seconds_each():
    assert wording.say_speed(0.1, "img") == "10.0 s/img"
    assert wording.say_speed(0.0, "") == "0.0 it/s"


@pytest.mark.parametrize(
    ("code", "where", "text"),
    [
        ("thread_computing", "train.py:7 in step", "another thread is computing (train.py:7 in step)"),
        ("slow", None, "the computer was too busy"),
        ("a code of a later version", "", "no safe moment was found"),
        (None, None, "no safe moment was found"),
    ],
)  # fmt: skip
def test_why_a_process_is_busy(code, where, text):
    assert wording.say_why_busy(code, where) == text
