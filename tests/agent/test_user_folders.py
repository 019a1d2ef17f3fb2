"""The run directory: found without the environment, safe against what others have put there."""

import os
import pwd
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from worker_kit import ROOT

from mpsbar.agent import user_folders

# The password database says that this user lives in a folder of the test's.
HOME = """
real = pwd.getpwuid
pwd.getpwuid = lambda uid: pwd.struct_passwd((*real(uid)[:5], os.environ["TEST_HOME"], "/bin/sh"))
import mpsbar
"""


@pytest.fixture(autouse=True)
def no_override(monkeypatch):
    monkeypatch.delenv("MPSBAR_RUN_DIR", raising=False)
    monkeypatch.setattr(user_folders, "_homes", {})


def as_user(monkeypatch, home, uid=os.geteuid()):
    user_folders._homes.clear()
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(home)))
    monkeypatch.setattr(os, "geteuid", lambda: uid)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_linux_keeps_hosts_with_a_shared_home_apart(monkeypatch, tmp_path):
    as_user(monkeypatch, tmp_path, 1234)
    monkeypatch.setattr(user_folders.sys, "platform", "linux")
    monkeypatch.setattr(socket, "gethostname", lambda: "gpu-7/../x")
    assert user_folders.find_run_folders() == [
        f"{tmp_path}/.local/state/mpsbar/run-gpu-7_.._x",
        "/tmp/mpsbar-1234",
    ]


def test_macos_has_its_own_places(monkeypatch, tmp_path):
    as_user(monkeypatch, tmp_path, 501)
    monkeypatch.setattr(user_folders.sys, "platform", "darwin")
    assert user_folders.find_run_folders() == [
        f"{tmp_path}/Library/Application Support/mpsbar/run",
        "/private/tmp/mpsbar-501",
    ]


@pytest.mark.parametrize("name", ["HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"])
def test_the_environment_does_not_move_it(monkeypatch, tmp_path, name):
    before = user_folders.find_run_folders()
    monkeypatch.setenv(name, str(tmp_path))
    assert user_folders.find_run_folders() == before


def test_a_user_without_an_account_or_home_has_the_temporary_place(monkeypatch, tmp_path):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert user_folders.find_run_folders() == [
        f"{user_folders._shared_temporary()}/mpsbar-{os.geteuid()}"
    ]
    as_user(monkeypatch, tmp_path / "not there")
    assert len(user_folders.find_run_folders()) == 1


def test_prepare_makes_it_ours_alone(tmp_path):
    directory = tmp_path / "a" / "run"
    user_folders.prepare(str(directory))
    assert mode_of(directory) == 0o700


@pytest.mark.parametrize("umask", [0, 0o777])
def test_what_prepare_made_is_ours_alone_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        user_folders.prepare(str(tmp_path / "a" / "b" / "run"))
    finally:
        os.umask(before)
    for folder in ("a", "a/b", "a/b/run"):
        assert mode_of(tmp_path / folder) == 0o700


def test_folders_are_made_below_a_relative_path_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    user_folders.make_folders("a/b")
    user_folders.make_folders("a/b")
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750, 0o711, 0o2755])
def test_prepare_changes_nothing_on_a_directory_that_was_there(tmp_path, mode):
    tmp_path.chmod(mode)
    user_folders.prepare(str(tmp_path))
    assert mode_of(tmp_path) == mode


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o770, 0o702, 0o2775])
def test_a_directory_that_others_can_write_is_refused_and_left_as_it_is(
    monkeypatch, tmp_path, mode
):
    """1777 is /tmp: as root, a chmod would lock everybody else out of it."""
    (tmp_path / "12.sock").touch()
    tmp_path.chmod(mode)
    for refuses in (user_folders.prepare, user_folders.check):
        with pytest.raises(PermissionError, match="is writable by other users: choose") as told:
            refuses(str(tmp_path))
        assert ("chmod go-w" in str(told.value)) == (mode != 0o1777)
    assert mode_of(tmp_path) == mode
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path))
    assert user_folders.list_sockets() == []
    tmp_path.chmod(0o755)
    assert [pid for pid, _ in user_folders.list_sockets()] == [12]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_directory_of_another_user_is_refused_and_left_as_it_is(tmp_path):
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 54321, 54321)
    with pytest.raises(PermissionError, match="belongs to another user"):
        user_folders.prepare(str(tmp_path))
    assert (mode_of(tmp_path), tmp_path.stat().st_uid) == (0o755, 54321)


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(OSError, match="is not a directory"):
            user_folders.prepare(str(tmp_path / name))


def test_a_directory_of_another_user_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        user_folders.check(str(tmp_path))
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path))
    (tmp_path / "12.sock").touch()
    assert user_folders.list_sockets() == []


def test_a_path_the_kernel_cannot_hold_is_refused():
    fits = "/" + "x" * (user_folders.MAX_PATH - len("/12.sock") - 1)
    assert len(user_folders.socket_path(fits, 12)) == user_folders.MAX_PATH
    with pytest.raises(OSError, match="longer than 103 bytes"):
        user_folders.socket_path(fits + "x", 12)
    with pytest.raises(OSError, match="longer than 103 bytes"):
        user_folders.socket_path(fits[:-1] + "ä", 12)


def test_only_sockets_named_by_a_pid_are_listed(monkeypatch, tmp_path):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path))
    for name in ("12", "7", "0", "-3", "a", "12.sock.bak", "9" * 11, "٣"):
        (tmp_path / f"{name}.sock").touch()
    assert [pid for pid, _ in user_folders.list_sockets()] == [7, 12]


AFTER_FORK = """
import os, pwd, sys, warnings
warnings.simplefilter("ignore")
import mpsbar
from mpsbar.agent import lifecycle

def forbid(uid):  # opendirectoryd answers over XPC, which a forked child must not use
    os._exit(9)

os.register_at_fork(after_in_child=lambda: setattr(pwd, "getpwuid", forbid))
if sys.argv[1] == "attached":
    assert mpsbar.attach()
pid = os.fork()
if pid == 0:
    attached = mpsbar.attach()
    os._exit(0 if attached else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("parent", ["attached", "imported"])
def test_a_forked_child_does_not_ask_the_password_database(parent):
    """On a home of its own: the folder is the one below the home, as without MPSBAR_RUN_DIR."""
    command = [sys.executable, "-c", AFTER_FORK.replace("import mpsbar\n", HOME, 1), parent]
    # Not pytest's tmp_path, below which a socket's path is too long: it would be in the folder of this user.
    with tempfile.TemporaryDirectory(prefix="mpsbar-") as home:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "TEST_HOME": home},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        made = [path.name for path in Path(home).rglob("mpsbar/*")]
    assert (done.returncode, done.stderr) == (0, "")
    assert len(made) == 1
    assert made[0].startswith("run")


def test_a_number_that_is_no_pid_is_no_socket(tmp_path):
    tmp_path.chmod(0o700)
    for name in ("7.sock", "2147483647.sock", "2147483648.sock", "9999999999.sock", "07.sock"):
        (tmp_path / name).touch()
    assert [pid for pid, _ in user_folders.list_sockets([str(tmp_path)])] == [7, 2147483647]
