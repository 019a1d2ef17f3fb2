"""The run directory: decided without the environment, safe against what others prepared."""

import os
import pwd
import socket
import stat
from types import SimpleNamespace

import pytest

from mpsbar.agent import places


@pytest.fixture(autouse=True)
def no_override(monkeypatch):
    monkeypatch.delenv("MPSBAR_RUN_DIR", raising=False)


def as_user(monkeypatch, home, uid=os.geteuid()):
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(home)))
    monkeypatch.setattr(os, "geteuid", lambda: uid)


def test_linux_keeps_hosts_with_a_shared_home_apart(monkeypatch, tmp_path):
    as_user(monkeypatch, tmp_path, 1234)
    monkeypatch.setattr(places.sys, "platform", "linux")
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-7/../x")
    assert places.candidates() == [
        f"{tmp_path}/.local/state/mpsbar/run-gpu-7_.._x",
        "/tmp/mpsbar-1234",
    ]


def test_macos_has_its_own_places(monkeypatch, tmp_path):
    as_user(monkeypatch, tmp_path, 501)
    monkeypatch.setattr(places.sys, "platform", "darwin")
    assert places.candidates() == [
        f"{tmp_path}/Library/Application Support/mpsbar/run",
        "/private/tmp/mpsbar-501",
    ]


@pytest.mark.parametrize("name", ["HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"])
def test_the_environment_does_not_move_it(monkeypatch, tmp_path, name):
    before = places.candidates()
    monkeypatch.setenv(name, str(tmp_path))
    assert places.candidates() == before


def test_a_user_without_an_account_or_home_has_the_temporary_place(monkeypatch, tmp_path):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert places.candidates() == [f"{places._shared_temporary()}/mpsbar-{os.geteuid()}"]
    as_user(monkeypatch, tmp_path / "not there")
    assert len(places.candidates()) == 1


def test_prepare_makes_it_ours_alone(tmp_path):
    directory = tmp_path / "a" / "run"
    places.prepare(str(directory))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o755)
    places.prepare(str(directory))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(OSError, match="is not a directory"):
            places.prepare(str(tmp_path / name))


def test_a_directory_of_another_user_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        places.check(str(tmp_path))
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path))
    (tmp_path / "12.sock").touch()
    assert places.list_sockets() == []


def test_a_path_the_kernel_cannot_hold_is_refused():
    fits = "/" + "x" * (places.MAX_PATH - len("/12.sock") - 1)
    assert len(places.socket_path(fits, 12)) == places.MAX_PATH
    with pytest.raises(OSError, match="longer than 103 bytes"):
        places.socket_path(fits + "x", 12)
    with pytest.raises(OSError, match="longer than 103 bytes"):
        places.socket_path(fits[:-1] + "ä", 12)


def test_only_sockets_named_by_a_pid_are_listed(monkeypatch, tmp_path):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path))
    for name in ("12", "7", "0", "-3", "a", "12.sock.bak", "9" * 11, "٣"):
        (tmp_path / f"{name}.sock").touch()
    assert [pid for pid, _ in places.list_sockets()] == [7, 12]
