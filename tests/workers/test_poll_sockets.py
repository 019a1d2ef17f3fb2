"""Socket files are listed anew when one came or went, and not missed when two come at once."""

import errno
import os
import time

import pytest
from worker_kit import TIMEOUT

from mpsbar.agent import user_folders
from mpsbar.workers import poll
from mpsbar.workers.poll import SocketList


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(folder))
    return folder


@pytest.fixture
def listings(monkeypatch):
    """How often the folder was really listed."""
    count = []
    real = user_folders.list_directory

    def listed(folders):
        count.append(1)
        return real(folders)

    monkeypatch.setattr(user_folders, "list_directory", listed)
    return count


def pids(sockets):
    return [pid for pid, _ in sockets.list()]


def age(folder, seconds):
    """As if nothing had happened in it for a while."""
    stamp = time.time() - seconds
    os.utime(folder, (stamp, stamp))


def test_who_comes_and_goes_is_seen(folder):
    sockets = SocketList()
    assert pids(sockets) == []  # there is no folder yet
    folder.mkdir(0o700)
    for pid in (7, 8):
        (folder / f"{pid}.sock").touch()
        assert pids(sockets)[-1] == pid
    (folder / "7.sock").unlink()
    assert pids(sockets) == [8]


def test_a_quiet_folder_is_not_listed_again(folder, listings):
    folder.mkdir(0o700)
    (folder / "7.sock").touch()
    age(folder, 10)
    sockets = SocketList()
    for _ in range(5):
        assert pids(sockets) == [7]
    assert len(listings) == 1


def test_a_folder_that_has_just_changed_is_listed_again(folder, monkeypatch):
    """Its stamp may be too coarse to show the next change."""
    # What has just changed counts as such for longer than this test may stand still.
    monkeypatch.setattr(poll, "_SETTLED_SECONDS", TIMEOUT)
    folder.mkdir(0o700)
    (folder / "7.sock").touch()
    age(folder, 0)
    stamp = folder.stat().st_mtime_ns
    sockets = SocketList()
    assert pids(sockets) == [7]
    (folder / "8.sock").touch()
    os.utime(folder, ns=(stamp, stamp))  # the clock stood still
    assert pids(sockets) == [7, 8]


def test_a_folder_that_is_no_longer_safe_is_not_looked_at(folder, tmp_path):
    folder.mkdir(0o700)
    (folder / "7.sock").touch()
    age(folder, 10)
    sockets = SocketList()
    assert pids(sockets) == [7]
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert pids(sockets) == []


def test_a_folder_that_could_not_be_listed_is_listed_again(folder, monkeypatch):
    """Out of descriptors once, a monitor saw no worker until the folder changed."""
    sockets = SocketList()
    folder.mkdir(0o700, exist_ok=True)
    (folder / "7.sock").touch()
    age(folder, 10)
    real = user_folders.list_directory

    def fail(_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(user_folders, "list_directory", fail)
    assert pids(sockets) == []
    monkeypatch.setattr(user_folders, "list_directory", real)
    assert pids(sockets) == [7]
    (folder / "8.sock").touch()
    monkeypatch.setattr(user_folders, "list_directory", fail)
    assert pids(sockets) == [7]  # what was known stays
