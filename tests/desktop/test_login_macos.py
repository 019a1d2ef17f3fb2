"""Start at login for the app bundle: SMAppService on the double, and the one owner."""

import sys

import appkit
import pytest

from mpsbar.desktop import bundle, launch_agent, login, login_macos
from mpsbar.desktop.bundle import read_bundle

BUNDLE = "io.github.mpsbar"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(login, "_platform", lambda: login_macos)
    monkeypatch.setattr(launch_agent, "LAUNCHCTL", "/nowhere/launchctl")
    tool = tmp_path / "bin/mpsbar"
    tool.parent.mkdir()
    tool.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(tool)])
    return tmp_path


def test_on_and_off(home):
    with appkit.installed(home=home, bundle=BUNDLE) as mac:
        where = f"{home}/Applications/mpsbar.app"
        for nothing in (3, 0):  # NotFound, NotRegistered
            mac.state.login_status = nothing
            assert login.read_login() == login.LoginStatus("off", "app", where)
        assert login.turn_on() == login.LoginStatus("on", "app", where)
        assert login.turn_on().state == "on"
        assert login.turn_off() == login.LoginStatus("off", "app", where)
        assert login.turn_off().state == "off"
    assert not (home / "Library/LaunchAgents").exists()


def test_the_user_flips_it_in_system_settings(home):
    with appkit.installed(home=home, bundle=BUNDLE) as mac:
        login.turn_on()
        mac.state.login_status = 2
        assert login.read_login().state == "needs_approval"
        mac.state.login_status = 1
        assert login.read_login().state == "on"


def test_approval_is_asked_for_in_system_settings(home):
    with appkit.installed(home=home, bundle=BUNDLE) as mac:
        mac.state.login_after_register = 2
        status = login.turn_on()
        assert (status.state, status.why) == ("needs_approval", None)
        assert login.open_login_settings()
        assert mac.state.opened == ["System Settings: Login Items"]
        assert login.turn_off().state == "off"


def test_refused_by_macos_in_its_words(home):
    with appkit.installed(home=home, bundle=BUNDLE) as mac:
        mac.state.login_after_register = 3
        status = login.turn_on()
        assert (status.state, status.why, status.detail) == ("off", "refused", "Invalid signature")


def test_a_translocated_app_is_not_registered(tmp_path):
    place = tmp_path / "AppTranslocation"
    with appkit.installed(home=place, bundle=BUNDLE) as mac:
        for status in (login.read_login(), login.turn_on(), login.turn_off()):
            assert (status.state, status.why) == ("unavailable", "translocated")
        assert mac.state.login_status == 3


@pytest.mark.parametrize(
    ("path", "is_read_only", "why"),
    [
        ("/Volumes/mpsbar/mpsbar.app", True, "disk_image"),
        ("/Volumes/External/Applications/mpsbar.app", False, None),
        ("/private/var/folders/a/AppTranslocation/B/d/mpsbar.app", True, "translocated"),
        ("/Applications/mpsbar.app", False, None),
    ],
)
def test_where_an_app_may_lie(monkeypatch, path, is_read_only, why):
    monkeypatch.setattr(bundle, "_is_read_only", lambda _: is_read_only)
    assert bundle.judge_place(path) == why


def test_what_the_bundle_says_of_itself(home):
    with appkit.installed(home=home, bundle=BUNDLE) as mac:
        mac.state.info = {"CFBundleShortVersionString": "1.2"}
        assert read_bundle().info == {"CFBundleShortVersionString": "1.2"}
        mac.state.info = {}
        assert read_bundle().info == {}


def test_a_framework_python_is_no_app_of_ours(home):
    with appkit.installed(home=home, bundle="org.python.python"):
        assert read_bundle() is None
        assert login.read_login().owner == "agent"
    with appkit.installed(home=home):
        assert read_bundle() is None
    assert read_bundle() is None


def test_the_app_takes_over_from_the_tool(home):
    login_macos.turn_agent_on()
    plist = home / "Library/LaunchAgents/io.github.mpsbar.agent.plist"
    with appkit.installed(home=home, bundle=BUNDLE):
        assert (login.read_login().state, login.read_login().owner) == ("on", "agent")
        assert (login.turn_on().owner, plist.exists()) == ("app", False)
        assert (login.read_login().state, login.read_login().owner) == ("on", "app")
        assert login.turn_off().state == "off"
    login_macos.turn_agent_on()
    with appkit.installed(home=home, bundle=BUNDLE):
        assert login.turn_off().state == "off"
        assert (login.read_login().state, plist.exists()) == ("off", False)


def test_the_tools_agent_stays_where_the_app_is_refused(home):
    login_macos.turn_agent_on()
    plist = home / "Library/LaunchAgents/io.github.mpsbar.agent.plist"
    with appkit.installed(home=home, bundle=BUNDLE) as mac:
        mac.state.login_after_register = 3
        assert login.turn_on().why == "refused"
    assert plist.exists()


def test_an_agent_of_another_is_not_taken_over(home):
    plist = home / "Library/LaunchAgents/io.github.mpsbar.agent.plist"
    plist.parent.mkdir(parents=True)
    plist.write_text("theirs")
    with appkit.installed(home=home, bundle=BUNDLE):
        assert login.turn_on().state == "on"
        assert login.turn_off().state == "off"
    assert plist.read_text() == "theirs"
