"""mpsbar export as a service: the files, judged by systemd and plistlib, and nothing left behind."""

import os
import plistlib
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worker_kit import ROOT, TIMEOUT

from mpsbar.desktop import login_export

ON_LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="would change this Mac's services")


def run(home, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MPSBAR_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-m", "mpsbar", "login", *arguments, "--export"], env=env | {"HOME": str(home)},
        capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@ON_LINUX
def test_the_whole_round(tmp_path):
    unit = tmp_path / ".config/systemd/user/mpsbar-export.service"
    on, off = f"mpsbar export starts at login ({unit})\n", "mpsbar export does not start at login\n"
    assert run(tmp_path, "status") == (1, off, "")
    assert run(tmp_path, "on") == (0, on, "")
    assert run(tmp_path, "on") == (0, on, "")
    assert run(tmp_path, "status") == (0, on, "")
    assert f'ExecStart="{sys.executable}" "-m" "mpsbar" "export"\n' in unit.read_text()
    wanted = unit.parent / "default.target.wants" / unit.name
    assert wanted.resolve() == unit
    assert run(tmp_path, "off") == (0, off, "")
    assert run(tmp_path, "off") == (0, off, "")
    assert list(tmp_path.iterdir()) == []


@ON_LINUX
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_root_removes_nothing_from_the_home_of_another_user(tmp_path):
    """Neither the unit nor the link that enables it, which goes first."""
    unit = tmp_path / ".config/systemd/user/mpsbar-export.service"
    link = unit.parent / "default.target.wants" / unit.name
    assert run(tmp_path, "on")[0] == 0
    for theirs in (link.parent.parent, tmp_path):
        os.chown(theirs, 54321, 54321)
        code, _, error = run(tmp_path, "off")
        assert code == 1
        assert f"{theirs} belongs to another user" in error
        assert link.resolve() == unit
        assert unit.exists()
        os.chown(theirs, 0, 0)
    assert run(tmp_path, "off")[0] == 0
    assert list(tmp_path.iterdir()) == []


@ON_LINUX
def test_a_unit_of_somebody_else_is_left(tmp_path):
    unit = tmp_path / ".config/systemd/user/mpsbar-export.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    words = f"mpsbar can't change whether mpsbar export starts at login: {unit} was not created by mpsbar and was left unchanged\n"
    for what in ("on", "off"):
        assert run(tmp_path, what) == (1, "", words)
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"


@pytest.mark.parametrize("folder", ["plain", "with space", "100%", "ü"])
def test_systemd_reads_the_unit(tmp_path, folder):
    """Also with a path that has to be quoted; systemd-analyze says if the program is not found."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    command = tmp_path / folder / "mpsbar"
    command.parent.mkdir()
    command.symlink_to("/bin/true")
    unit = tmp_path / "mpsbar-export.service"
    unit.write_text(login_export.build_unit([str(command), "export"], 0))
    env = os.environ | {"SYSTEMD_LOG_LEVEL": "warning", "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        [analyze, "verify", "--user", unit],
        env=env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    complaints = [line for line in done.stderr.splitlines() if "mpsbar-export" in line]
    assert complaints == []


@ON_LINUX
@pytest.mark.parametrize("folder", ['a"b', "it's", "$HOME", "back\\slash"])
def test_a_path_that_systemd_does_not_take(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / folder / "mpsbar")])
    status = login_export.turn_on()
    assert (status.state, status.why) == ("unavailable", "odd_path")
    assert not (tmp_path / "config").exists()


@given(
    st.text(st.characters(blacklist_characters='\n\0"\\$', blacklist_categories=["Cs"]), min_size=1)
)
def test_a_path_comes_back_as_it_was(path):
    assert login_export.unquote(login_export.quote(path)) == path


def test_the_job_for_launchd():
    job = plistlib.loads(plistlib.dumps(login_export.build_job(["/v/bin/mpsbar", "export"], 2)))
    assert job["Label"] == "io.github.mpsbar.export"
    assert job["ProgramArguments"] == ["/v/bin/mpsbar", "export"]
    assert job["KeepAlive"] == {"SuccessfulExit": False}
    assert job["EnvironmentVariables"] == {"MPSBAR_LOGIN_ITEM": "2"}
