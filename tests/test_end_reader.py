"""Which runs ended, where the history is missing or unreadable."""

import pytest

from mpsbar.end_reader import read_all_ends
from mpsbar.system import paths


@pytest.fixture
def history(tmp_path, monkeypatch):
    for name in ("DATA", "RUN"):
        monkeypatch.setenv(f"MPSBAR_{name}_DIR", str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir(mode=0o700)
    return paths.history_file()


def test_a_missing_history_is_no_problem(history):
    problems = []
    assert (read_all_ends(1000.0, problems.append), problems) == ([], [])


def test_why_an_unreadable_history_is_so_is_handed_on(history):
    history.write_text("this is no database, but it is long enough to have a header" * 100)
    problems = []
    assert read_all_ends(1000.0, problems.append) == []
    assert problems == ["file is not a database"]
