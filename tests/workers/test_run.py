"""What `mpsbar run` changes, and what it says beforehand."""

import os

import pytest

from mpsbar.workers.run import SITE, build_environment, why_not_connected


def test_pythonpath_begins_with_our_folder_once():
    first = build_environment({"A": "1"})
    assert first == {"A": "1", "PYTHONPATH": str(SITE)}
    mine = build_environment({"PYTHONPATH": f"/mine{os.pathsep}/other"})
    assert mine["PYTHONPATH"].split(os.pathsep) == [str(SITE), "/mine", "/other"]
    assert build_environment(mine) == mine


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("python train.py", None),
        ("python -u train.py -I", None),
        ("python -m module -E", None),
        ("python -c code -I", None),
        ("python -I train.py", "-I"),
        ("/usr/bin/python3.12 -E train.py", "-E"),
        ("python3.13t -sE train.py", "-E"),
        ("python -W ignore -X dev -S train.py", "-S"),
        ("torchrun -I train.py", None),
        ("pythonic -I", None),
    ],
)
def test_isolated_pythons_are_reported_beforehand(command, flag):
    reason = why_not_connected(command.split(), {})
    assert (
        (reason is None) if flag is None else reason.startswith(f"python {flag} ignores PYTHONPATH")
    )


def test_the_switch_is_reported_too():
    assert why_not_connected(["python"], {"MPSBAR_DISABLE": "1"}) == "MPSBAR_DISABLE is set"
