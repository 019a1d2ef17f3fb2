"""The files of a deep probe: whole, unfinished, damaged."""

import pytest
from dtypes.deep_kit import make

from mpsbar.core.errors import UserError
from mpsbar.dtypes import deep_files
from mpsbar.dtypes.deep_results import DeepCell


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is incomplete or not JSON"), ("[]", "not a result of mpsbar probe --deep"),
        ('{"kind": "mpsbar probe", "schema": 1}', "not a result of mpsbar probe --deep"),
        ('{"kind": "mpsbar deep probe", "schema": 9}', "written by another version"),
        ('{"kind": "mpsbar deep probe", "schema": 1, "ended": 3}', "outcome of the probe"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_said_to_be_damaged(tmp_path, text, words):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=words):
        deep_files.read_deep_result(tmp_path / "x.json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(deep_files.paths, "probe_folder", lambda: tmp_path / "probes")
    return tmp_path / "probes" / "deep"


IDENTITY = {
    "prefix": "/venv", "version": "3.11.7", "torch": "2.13.0", "system": "15.1", "os": "macOS", "device": "mps",
    "fallback": None,
}  # fmt: skip


def test_what_was_measured_is_kept_line_by_line(folder):
    file = deep_files.PartialFile(IDENTITY, "/venv/bin/python", is_resumed=False)
    file.add([{"cell": "mm/float32", "state": "works", "expected": True}])
    found = deep_files.read_partial("/venv/bin/python")
    assert found["cells"] == {"mm/float32": DeepCell("mm", "float32", "works", True)}
    assert {name: found[name] for name in IDENTITY} == IDENTITY
    assert deep_files.read_partial("/other/python") is None
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    # Killed in the middle of a line, then resumed.
    file.close(is_finished=False)
    with path.open("a") as text:
        text.write('{"cell": "mm/floa')
    more = deep_files.PartialFile(IDENTITY, "/venv/bin/python", is_resumed=True)
    more.add([{"cell": "mm/int8", "state": "hung"}])
    assert list(deep_files.read_partial("/venv/bin/python")["cells"]) == ["mm/float32", "mm/int8"]
    more.close(is_finished=True)
    assert deep_files.read_partial("/venv/bin/python") is None


def test_only_a_whole_result_is_saved(folder, caplog):
    assert deep_files.write_deep_result(make(ended="cancelled")) is None
    assert deep_files.write_deep_result(make(only="mm")) is None
    assert deep_files.find_deep_result() is None
    file = deep_files.write_deep_result(make())
    assert deep_files.find_deep_result() == make()
    assert file.parent == folder
    folder.chmod(0o777)
    assert deep_files.find_deep_result() is None  # somebody else could have written it
    assert f"mpsbar will not use {folder}" in caplog.text
