"""One writer for every file that is written whole: at once, with the right mode, or not at all."""

import os
import stat

import pytest

from mpsbar.system import files
from mpsbar.system.files import (
    NotAFileError,
    TooLargeError,
    move_aside,
    read_bytes,
    read_json_to_change,
    read_own_json,
    read_text,
    replace_file,
    write_own_json,
)


@pytest.fixture
def umask():
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_for_this_user_alone_and_its_folders_too(tmp_path, umask):
    umask(0)
    file = tmp_path / "a" / "b" / "file"
    replace_file(file, b"one")
    assert (file.read_bytes(), mode_of(file)) == (b"one", 0o600)
    assert mode_of(file.parent) == mode_of(file.parent.parent) == 0o700
    assert os.listdir(file.parent) == ["file"]


def test_an_existing_file_keeps_its_mode_unless_one_is_given(tmp_path, umask):
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o640)
    replace_file(file, b"new")
    assert (file.read_bytes(), mode_of(file)) == (b"new", 0o640)
    umask(0o027)
    replace_file(file, b"newer", mode=0o666)
    assert (file.read_bytes(), mode_of(file)) == (b"newer", 0o640)
    umask(0)
    replace_file(file, b"newest", mode=0o644)
    assert (file.read_bytes(), mode_of(file)) == (b"newest", 0o644)


def test_a_read_only_file_is_left_as_it_is(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(PermissionError):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"


@pytest.mark.parametrize("follow", [True, False])
def test_a_link_is_followed_or_replaced(tmp_path, follow):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace_file(link, b"new", follow_links=follow)
    assert link.read_bytes() == b"new"
    assert link.is_symlink() == follow
    assert target.read_bytes() == (b"new" if follow else b"old")


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_folder_in_its_place_stays_and_nothing_is_left_beside_it(tmp_path, mode):
    folder = tmp_path / "file"
    folder.mkdir()
    with pytest.raises(OSError):
        replace_file(folder, b"new", mode=mode)
    assert os.listdir(tmp_path) == ["file"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def fail(_descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        replace_file(file, b"new")
    assert (os.listdir(tmp_path), file.read_bytes()) == (["file"], b"old")


def test_a_name_that_somebody_planted_is_not_written_through(tmp_path, monkeypatch):
    """Even if the name of the file that is written first could be foreseen."""
    monkeypatch.setattr("os.urandom", bytes)
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / ".file.000000000000").symlink_to(other)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "file", b"new")
    assert other.read_text() == "mine"
    assert not (tmp_path / "file").exists()


def test_what_is_no_small_file_is_not_read(tmp_path):
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_bytes(b"12345")
    assert read_bytes(file, 5) == b"12345"
    with pytest.raises(TooLargeError):
        read_bytes(file, 4)
    with pytest.raises(NotAFileError):
        read_bytes(pipe, 5)


def test_what_cannot_be_read_is_an_empty_text(tmp_path):
    file = tmp_path / "file"
    assert read_text(file, 100) == ""
    file.write_bytes(b"a\xff")
    assert (read_text(file, 100), read_text(file, 1), read_text(tmp_path, 100)) == (
        "a\ufffd",
        "",
        "",
    )


def parse_value(record):
    return record["value"]


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_logged", set())
    return tmp_path / "own.json"


def test_an_own_file_is_read_as_it_was_written(own_file, caplog):
    assert read_own_json(own_file, 100, parse_value) is None
    assert read_json_to_change(own_file, 100, parse_value) is None
    write_own_json(own_file, {"value": [1]})
    assert read_own_json(own_file, 100, parse_value) == [1]
    assert read_json_to_change(own_file, 100, parse_value) == [1]
    assert caplog.messages == []


DAMAGED = {
    "": "it is damaged",
    "[1]": "it is damaged",
    "{}": "it is damaged",
    "\xff": "it is damaged",
    "[" * 90_000: "it is damaged",
    " " * 200_000: "it is larger than 97 KiB",
}


@pytest.mark.parametrize(("text", "reason"), DAMAGED.items(), ids=range(len(DAMAGED)))
def test_what_we_would_not_have_written_is_said_once_and_renamed_before_a_change(
    own_file, caplog, text, reason
):
    own_file.write_text(text, encoding="latin-1")
    own_file.chmod(0o600)
    for _ in range(3):
        assert read_own_json(own_file, 100_000, parse_value) is None
    assert caplog.messages == [f"mpsbar will not use {own_file}: {reason}"]
    assert read_json_to_change(own_file, 100_000, parse_value) is None
    (moved,) = own_file.parent.iterdir()
    assert moved.name.startswith("own.json.broken-")
    assert f"({reason}); it was renamed to {moved}" in caplog.messages[-1]
    assert moved.read_text(encoding="latin-1") == text


def test_what_cannot_be_renamed_is_not_changed(own_file, monkeypatch):
    own_file.write_text("[")
    own_file.chmod(0o600)
    monkeypatch.setattr("mpsbar.system.files.range", lambda *_: (), raising=False)
    with pytest.raises(FileExistsError, match="too many damaged files"):
        move_aside(own_file)
    with pytest.raises(FileExistsError):
        read_json_to_change(own_file, 100, parse_value)
    assert own_file.read_text() == "["
