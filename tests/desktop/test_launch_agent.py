"""Start at login for a tool install on macOS: the LaunchAgent's file, and what is done beside it."""

import os
import plistlib
import stat
import sys

import appkit
import pytest

from mpsbar.desktop import launch_agent, login, login_macos

LABEL = "io.github.mpsbar.agent"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A Mac's home and its launchctl, which writes down what it was asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XPC_SERVICE_NAME", raising=False)
    for folder in ("Library/Logs", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    launchctl = tmp_path / "bin/launchctl"
    launchctl.write_text(
        f'#!/bin/sh\necho "$@" >> "{tmp_path}/asked"\necho no such job >&2\nexit 3\n'
    )
    tool = tmp_path / "bin/mpsbar"
    tool.write_text("#!/bin/sh\n")
    for file in (launchctl, tool):
        file.chmod(0o755)
    monkeypatch.setattr(launch_agent, "LAUNCHCTL", str(launchctl))
    monkeypatch.setattr(sys, "argv", [str(tool), "login", "on"])
    monkeypatch.setattr(login, "_platform", lambda: login_macos)
    return tmp_path


@pytest.fixture
def plist(home):
    return home / "Library/LaunchAgents" / f"{LABEL}.plist"


@pytest.fixture
def mac(home):
    with appkit.installed(home=home) as made:
        yield made


def tree(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_job_to_the_letter(home, plist, mac):
    assert login.turn_on() == login.LoginStatus("on", "agent", str(plist))
    assert plistlib.loads(plist.read_bytes()) == {
        "Label": LABEL,
        "ProgramArguments": [f"{home}/bin/mpsbar"],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "LimitLoadToSessionType": "Aqua",
        "ProcessType": "Interactive",
        "StandardOutPath": f"{home}/Library/Logs/mpsbar/login.log",
        "StandardErrorPath": f"{home}/Library/Logs/mpsbar/login.log",
        "EnvironmentVariables": {"MPSBAR_LOGIN_ITEM": "1"},
    }
    assert stat.S_IMODE(plist.stat().st_mode) == 0o644
    assert not (home / "asked").exists()  # loading it would start a second copy


def test_on_and_off_leave_nothing(home, plist, mac, capfd):
    before = tree(home)
    login.turn_on()
    (home / "Library/Logs/mpsbar/login.log").write_text("as launchd makes it")
    assert login.turn_on().state == "on"
    assert login.turn_off() == login.LoginStatus("off", "agent", str(plist))
    assert (home / "asked").read_text() == f"bootout gui/{os.getuid()}/{LABEL}\n"
    assert capfd.readouterr() == ("", "")  # nobody needs to know that it was not loaded
    (home / "asked").unlink()
    assert tree(home) == before
    login.turn_off()
    assert tree(home) == before


def test_the_app_s_own_log_and_agents_of_others_stay(home, plist, mac):
    login.turn_on()
    (home / "Library/Logs/mpsbar/mpsbar.log").write_text("kept")
    (plist.parent / "other.plist").write_text("kept")
    login.turn_off()
    remaining = [path for path in tree(home / "Library") if path.endswith(("log", "plist"))]
    assert remaining == ["LaunchAgents/other.plist", "Logs/mpsbar/mpsbar.log"]


def test_the_job_does_not_end_itself(home, monkeypatch, mac):
    login.turn_on()
    monkeypatch.setenv("XPC_SERVICE_NAME", LABEL)
    assert login.turn_off().state == "off"
    assert not (home / "asked").exists()


def test_without_launchctl_it_is_off_all_the_same(monkeypatch, mac, plist):
    monkeypatch.setattr(launch_agent, "LAUNCHCTL", "/nowhere/launchctl")
    login.turn_on()
    assert login.turn_off().state == "off"
    assert not plist.exists()


def test_switched_off_in_system_settings_needs_the_user(mac):
    login.turn_on()
    mac.state.legacy_login_status = 2
    assert login.read_login().state == "needs_approval"
    assert login.turn_on().state == "needs_approval"
    assert login.open_login_settings()
    assert mac.state.opened == ["System Settings: Login Items"]
    for unknown in (0, 3):  # written, and not yet seen by macOS
        mac.state.legacy_login_status = unknown
        assert login.read_login().state == "on"


def test_without_pyobjc_the_file_tells(home, plist):
    assert login.turn_on().state == "on"
    assert login.turn_off().state == "off"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"bplist00garbage",
        b"<plist><array/></plist>",
        plistlib.dumps({"Label": LABEL, "ProgramArguments": ["/x"]}),
        plistlib.dumps({"Label": LABEL, "EnvironmentVariables": "MPSBAR_LOGIN_ITEM"}),
        b"<!DOCTYPE x [<!ENTITY a 'b'>]><plist><dict/></plist>",
    ],
)
def test_a_file_of_another_is_left(plist, content, mac):
    plist.parent.mkdir()
    plist.write_bytes(content)
    for status in (login.read_login(), login.turn_on(), login.turn_off()):
        assert (status.state, status.why, status.where) == ("unavailable", "foreign", str(plist))
    assert plist.read_bytes() == content


@pytest.mark.parametrize("command", [[], "text", [3], None, ["/gone/mpsbar"]])
def test_ours_with_a_command_that_does_not_run_is_off(plist, command, mac):
    plist.parent.mkdir()
    job = {"EnvironmentVariables": {"MPSBAR_LOGIN_ITEM": "-1"}}
    plist.write_bytes(
        plistlib.dumps(job if command is None else {**job, "ProgramArguments": command})
    )
    assert (login.read_login().state, login.read_login().why) == ("off", "command_gone")
    assert login.turn_on().state == "on"
    login.turn_off()
    assert plist.parent.exists()  # not ours


def test_a_folder_that_cannot_be_written_is_said(home, plist, mac):
    plist.parent.write_text("a file")
    status = login.turn_on()
    assert (status.state, status.why, status.detail) == ("off", "not_written", "Not a directory")


@pytest.mark.parametrize("name", ["a\x07b", "a\udcffb"])
def test_a_path_that_no_plist_can_hold_is_said(home, plist, monkeypatch, mac, name):
    monkeypatch.setattr(sys, "argv", [f"{home}/{name}/mpsbar"])
    assert login.turn_on().why == "odd_path"
    assert not plist.parent.exists()


def test_paths_that_xml_must_escape(home, plist, monkeypatch, mac):
    tool = home / "a <b> & \"c\" 'd'" / "mpsbar"
    tool.parent.mkdir()
    (home / "bin/mpsbar").rename(tool)
    monkeypatch.setattr(sys, "argv", [str(tool)])
    assert login.turn_on().state == "on"
    assert plistlib.loads(plist.read_bytes())["ProgramArguments"] == [str(tool)]


def test_uvx_is_not_for_ever(monkeypatch, plist, mac):
    monkeypatch.setattr(sys, "argv", ["/Users/x/.cache/uv/archive-v0/q/bin/mpsbar"])
    assert (login.turn_on().state, login.turn_on().why) == ("unavailable", "temporary_command")
    assert not plist.exists()
