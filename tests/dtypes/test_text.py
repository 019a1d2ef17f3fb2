"""The words of the dtype probe: known bugs, and why nothing was measured."""

import pytest
from probe_samples import make_probe

from mpsbar.dtypes.text import draw_bar, say_end, say_known_bug


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("long_matmul", "pytorch #193487, #177116, #195163, affects torch 2.7 to 2.13 on M1/M2"),
        ("rprop", "pytorch #118117, affects torch 2.2"), ("conv_batch", "pytorch #96225, affects all torch releases so far"),
        ("repeated_sum", "pytorch #178497, affects torch since 2.11"), ("no_such", ""),
    ],
)  # fmt: skip
def test_where_a_bug_is_known(check, words):
    assert say_known_bug(check) == words


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ("no_python", "there is no Python at /venv/bin/python"), ("not_python", "/venv/bin/python can't be run as Python: why"),
        ("unsafe", "/venv/bin/python was not run: why"),
        ("no_torch", "/venv/bin/python has no torch; choose another with --python PATH"),
        ("broken_torch", "torch can't be imported in /venv/bin/python: why"),
        ("no_device", "torch 2.13.0 in /venv/bin/python has no usable mps: why"),
        ("crashed", "/venv/bin/python crashed before the first operation: why"),
        ("exited", "/venv/bin/python exited before the first operation: why"),
        ("hung", "/venv/bin/python did not reach the first operation in time"),
        ("stopped", "nothing could be measured in /venv/bin/python"),
    ],
)  # fmt: skip
def test_why_nothing_was_measured(ended, words):
    error = "why" if words.endswith("why") else None
    assert say_end(make_probe(ended=ended, error=error)) == words


def test_a_bar_of_thirty_cells():
    assert draw_bar(0.5) == "█" * 15 + "░" * 15
    assert (draw_bar(0.0), draw_bar(1.0)) == ("░" * 30, "█" * 30)
