"""Which of the runs that ended `mpsbar why PID|NAME` means."""

import pytest

from mpsbar.cli.ended_runs import choose, render
from mpsbar.core.events import EndedProcess

NAMES = (
    "transformers_train.py", "train.py", "train.py rank 0 of 2", "notebook kernel", "gunicorn app:app",
)  # fmt: skip
ENDS = [EndedProcess(pid, 1.0, name, 9.0) for pid, name in enumerate(NAMES, start=1)]


@pytest.mark.parametrize(
    ("which", "pids"),
    [
        (None, [1, 2, 3, 4, 5]),
        ("4", [4]),
        ("train.py", [2, 3]),  # not transformers_train.py, which only has it in its name
        ("Train", [2, 3]),
        ("gunicorn", [5]),
        ("kernel", [4]),  # nothing is called so: what has it in its name
        ("formers", [1]),
        ("nobody", []),
    ],
)
def test_those_that_are_called_so_come_before_those_that_have_it_in_their_names(which, pids):
    assert [end.pid for end in choose(ENDS, which)] == pids


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (
            EndedProcess(7, 1.0, "train.py", 1e20, ran=90.0, peak=2 << 30),
            "train.py ended: exit code unknown.\n  train.py (7), ended ?, ran for 90 s, peak 2.0 GB",
        ),
        (
            EndedProcess(7, 1.0, "train.py", 1e20, was_seen=False),
            "train.py ended: exit code unknown.\n  train.py (7), last seen ?",
        ),
    ],
)
def test_a_time_that_no_calendar_has_is_unknown(end, text):
    """It is from a file that somebody may have changed."""
    assert render(end) == text
