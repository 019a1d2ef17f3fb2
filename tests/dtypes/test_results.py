"""Results on disk: one file for each Python, torch, system and device, shown as long as they hold."""

import errno
import json
import os
import stat
import sys
from dataclasses import replace

import pytest
from probe_samples import make_probe

from mpsbar.agent import user_folders
from mpsbar.core.errors import UserError
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.dtypes import results
from mpsbar.dtypes.results import LatestResult, find_result, read_result, write_result

NOBODY = Snapshot(0.0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "probes"


def here(**values):
    """A result of this Python, as if its torch were 2.13.0."""
    usual = {
        "python": sys.executable,
        "prefix": os.path.realpath(sys.prefix),
        "system": user_folders.system_version(),
    }
    return make_probe(**{**usual, **values})


def test_written_and_read_again(folder):
    probe = here()
    file = write_result(probe)
    assert file.parent == folder
    assert read_result(file) == probe
    assert find_result(NOBODY) == probe
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir()] == [file.name]  # no temporary one


def test_readable_with_the_standard_library():
    record = json.loads(write_result(here()).read_text())
    assert (record["schema"], record["torch"], record["device"]) == (1, "2.13.0", "mps")
    assert record["safe"]["float32"] is True
    assert record["safe"]["float64"] is False
    assert {"operation": "add", "dtype": "float32", "state": "works"}.items() <= record["cells"][
        2
    ].items()


def test_each_has_a_file_of_its_own():
    files = {write_result(here(**change)) for change in (
        {}, {"torch": "2.14.0"}, {"system": "15.2"}, {"device": "cpu"}, {"prefix": "/other"}, {"version": "3.12.1"},
    )}  # fmt: skip
    assert len(files) == 6
    assert write_result(here(seconds=1.0)) in files  # the same four: the same file


def test_one_with_holes_does_not_replace_a_whole_one():
    file = write_result(here())
    assert write_result(here(ended="cancelled")) is None
    assert read_result(file).ended == "ok"
    assert write_result(here(ended="cancelled", torch="2.14.0")) is not None
    assert write_result(here(torch="2.14.0")) is not None


def test_without_a_name_it_is_not_kept():
    assert write_result(here(torch=None)) is None
    assert write_result(here(cells=())) is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{\"schema\": 1, \"kind\"", "is incomplete or not JSON"), ("", "is incomplete"), ("\0\0", "is incomplete"),
        ("[" * 100_000, "is incomplete"), ('{"kind": "mpsbar probe", "schema": 9}', "another version of mpsbar (schema 9)"),
        ("{}", "not a result of mpsbar probe"), ("[]", "not a result"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_result(tmp_path, content, text):
    (tmp_path / "file").write_text(content)
    with pytest.raises(UserError) as caught:
        read_result(tmp_path / "file")
    assert text in str(caught.value)
    assert str(tmp_path / "file") in str(caught.value)


def test_no_such_file(tmp_path):
    with pytest.raises(UserError, match=r"couldn't read .*: No such file"):
        read_result(tmp_path / "none")
    with pytest.raises(UserError, match=r"couldn't read .*: it is not a file"):
        read_result(tmp_path)


def test_one_that_is_too_large_or_a_pipe(tmp_path):
    (tmp_path / "large").write_text(" " * (1 << 20) + "{}")
    with pytest.raises(UserError, match="larger than 1024 KiB"):
        read_result(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="it is not a file"):
        read_result(tmp_path / "pipe")


def test_a_damaged_one_among_good_ones_is_passed_over(folder):
    file = write_result(here())
    (folder / "other.json").write_text(file.read_text()[:100])
    assert find_result(NOBODY) == read_result(file)


def test_a_full_disk_leaves_the_old_result_and_no_rest(folder, monkeypatch):
    file = write_result(here())
    before = file.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_result(here(seconds=9.0))
    assert file.read_bytes() == before
    assert [path.name for path in folder.iterdir()] == [file.name]


def test_of_another_system_or_torch_it_is_not_shown(tmp_path):
    write_result(here(system="15.2"))
    assert find_result(NOBODY) is None
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").touch()
    write_result(here(torch_file=str(package / "__init__.py")))
    assert find_result(NOBODY) is not None  # nothing can be seen: it counts
    for version, is_shown in (("2.13.0", True), ("2.14.0", False)):
        (package / "version.py").write_text(f"__all__ = []\n__version__ = '{version}'\n")
        assert (find_result(NOBODY) is not None) == is_shown
    (package / "__init__.py").unlink()  # uninstalled
    assert find_result(NOBODY) is None
    write_result(here(python=str(tmp_path / "gone")))
    assert find_result(NOBODY) is None


def test_an_old_python_cannot_tell_the_system():
    write_result(here(system="10.16"))
    assert find_result(NOBODY) is not None


def test_the_first_interpreter_that_was_probed(tmp_path):
    other = tmp_path / "other" / "bin" / "python"
    other.parent.mkdir(parents=True)
    other.touch()
    ours = write_result(here(time=1.0)) and here(time=1.0)
    theirs = here(time=2.0, python=str(other), prefix=os.path.realpath(tmp_path / "other"))
    write_result(theirs)
    assert find_result(NOBODY) == theirs  # the last

    def worker(python, torch="2.13.0"):
        return Worker(1, "w", "live", 0.0, executable=python, frameworks={"torch": torch})

    assert find_result(Snapshot(0.0, (worker(sys.executable),))) == ours
    assert (
        find_result(
            Snapshot(0.0, (worker(str(other.with_name("python3"))), worker(sys.executable)))
        )
        == theirs
    )
    assert find_result(Snapshot(0.0, (worker(sys.executable, "2.14.0"),))) is None
    assert (
        find_result(Snapshot(0.0, (worker("/nobody/bin/python"), worker(sys.executable)))) == ours
    )
    process = Process(7, 0.0, "p", ("torch",), python=sys.executable)
    assert find_result(Snapshot(0.0, processes=(process,))) == ours
    assert (
        find_result(Snapshot(0.0, processes=(replace(process, python="/nobody/bin/python"),)))
        is None
    )


def test_an_accelerator_before_the_cpu():
    write_result(here(time=1.0))
    write_result(here(time=2.0, device="cpu"))
    assert find_result(NOBODY).device == "mps"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_looked_at(folder):
    write_result(here())
    os.chown(folder, 65534, 65534)
    assert find_result(NOBODY) is None
    with pytest.raises(PermissionError):
        write_result(here())


@pytest.fixture
def finding(monkeypatch):
    """The result that is found next, and how often it was searched for."""
    found = [None, 0]

    def find(snapshot):
        found[1] += 1
        return found[0]

    monkeypatch.setattr(results, "find_result", find)
    return found


def test_the_latest_result_is_read_again_only_when_something_may_have_changed(folder, finding):
    now = [0.0]
    last = LatestResult(lambda: now[0])
    empty = Snapshot(0.0)
    assert (last.read(empty), finding[1]) == (None, 0)  # never probed: nothing is read
    folder.mkdir(parents=True)
    finding[0] = "first"
    assert (last.read(empty), last.read(empty), finding[1]) == ("first", "first", 1)
    busy = Snapshot(0.0, processes=(Process(1, 1.0, "x", ("torch",), python="/v/bin/python"),))
    assert (last.read(busy), finding[1]) == ("first", 2)
    finding[0] = "second"
    (folder / "x.json").touch()
    assert (last.read(busy), finding[1]) == ("second", 3)
    now[0] += 31.0
    assert (last.read(busy), finding[1]) == ("second", 4)


def test_a_result_is_parsed_once_and_again_when_it_was_rewritten(monkeypatch):
    write_result(here())
    parsed, parse = [], results.parse_probe_json
    monkeypatch.setattr(
        results, "parse_probe_json", lambda record: parsed.append(record) or parse(record)
    )
    now = [0.0]
    last = LatestResult(lambda: now[0])
    first = last.read(NOBODY)
    assert (first, len(parsed)) == (here(), 1)
    now[0] += 31.0
    assert last.read(NOBODY) is first
    assert len(parsed) == 1
    write_result(here(seconds=77.0))
    assert (last.read(NOBODY).seconds, len(parsed)) == (77.0, 2)


def test_without_a_folder_there_is_no_latest_result(monkeypatch):
    monkeypatch.setattr("mpsbar.system.paths.probe_folder", lambda: None)
    assert LatestResult().read(Snapshot(0.0)) is None
