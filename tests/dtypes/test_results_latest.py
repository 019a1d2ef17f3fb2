"""The probe that holds now: read once, and again when a result, a Python or time has come."""

import pytest

from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes import results
from mpsbar.dtypes.results import LatestResult


@pytest.fixture
def folder(tmp_path, monkeypatch):
    made = tmp_path / "probe"
    monkeypatch.setattr("mpsbar.system.paths.probe_folder", lambda: made)
    return made


@pytest.fixture
def asked(monkeypatch):
    """What is found next, and how often it was looked for."""
    found = [None, 0]

    def find(snapshot):
        found[1] += 1
        return found[0]

    monkeypatch.setattr(results, "find_result", find)
    return found


def test_it_is_read_again_only_when_something_may_have_changed(folder, asked):
    now = [0.0]
    last = LatestResult(lambda: now[0])
    nobody = Snapshot(0.0)
    assert (last.read(nobody), asked[1]) == (None, 0)  # never probed: nothing is read
    folder.mkdir()
    asked[0] = "first"
    assert (last.read(nobody), last.read(nobody), asked[1]) == ("first", "first", 1)
    someone = Snapshot(0.0, processes=(Process(1, 1.0, "x", ("torch",), python="/v/bin/python"),))
    assert (last.read(someone), asked[1]) == ("first", 2)
    asked[0] = "second"
    (folder / "x.json").touch()
    assert (last.read(someone), asked[1]) == ("second", 3)
    now[0] += 31.0
    assert (last.read(someone), asked[1]) == ("second", 4)


def test_a_folder_that_cannot_be_looked_at_is_no_result(monkeypatch):
    monkeypatch.setattr("mpsbar.system.paths.probe_folder", lambda: None)
    assert LatestResult().read(Snapshot(0.0)) is None
