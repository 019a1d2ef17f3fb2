"""Which of the runs that ended `mpsbar why PID|NAME` means."""

import pytest

from mpsbar.cli.ended_runs import choose
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
