"""The sentences of the settings and of starting at login, to the letter."""

from typing import get_args

import pytest

from mpsbar.core.settings import LoadedSettings, Settings
from mpsbar.core.toml import parse_toml
from mpsbar.desktop.login import LoginState, Why
from mpsbar.ui.text.settings import login, render_settings, say_settings_ok

WHERE = "/x/mpsbar.desktop"


def test_settings_with_their_origins():
    origins = {"bar": "file", "interval": "environment", "cool_down": "flag"}
    text = render_settings(
        LoadedSettings(Settings("dot", 0.5, cool_down=3), "/x/settings.toml", origins)
    )
    assert text == (
        "# /x/settings.toml\n"
        'bar = "dot"  # file\n'
        "interval = 0.5  # MPSBAR_INTERVAL\n"
        "alerts = true  # default\n"
        'alert_causes = ["pressure", "memory", "swap", "leak", "speed", "ended", "reset"]  # default\n'
        "cool_down = 3  # --cool-down\n"
        "last_words = true  # default\n"
        'keep_cache_below = "off"  # default\n'
        "free_when_idle = false  # default\n"
        "free_at_critical_pressure = false  # default\n"
        'theme = "dark"  # default\n'
        "welcome = true  # default\n"
        'export = "off"  # default\n'
        "hosts = []  # default\n"
        "groups = {}  # default"
    )
    assert parse_toml(text)["interval"] == 0.5


def test_a_hostile_path_stays_a_comment():
    text = render_settings(LoadedSettings(Settings(), "/x\nbar = 3\x1b/settings.toml"))
    assert parse_toml(text)["bar"] == "memory"
    assert "\x1b" not in text


def test_no_mistake():
    loaded = LoadedSettings(Settings(), "/x/settings.toml")
    assert say_settings_ok(loaded, True) == "/x/settings.toml: no errors found"
    assert say_settings_ok(loaded, False) == "/x/settings.toml does not exist; using the defaults"


@pytest.mark.parametrize(
    ("state", "why", "detail", "sentence"),
    [
        ("on", None, None, f"mpsbar opens at login ({WHERE})"),
        ("off", None, None, "mpsbar does not open at login"),
        ("needs_approval", None, None, "mpsbar is not allowed to open at login yet: turn it on in System Settings > General > Login Items"),
        ("unavailable", "disk_image", None, "mpsbar can't change whether it opens at login: it is running from its disk image; move it to the Applications folder first"),
        ("unavailable", "translocated", None, "mpsbar can't change whether it opens at login: it hasn't been moved since it was downloaded; move it to the Applications folder"),
        ("unavailable", "old_macos", None, "mpsbar can't change whether it opens at login: macOS 13 or later is required"),
        ("off", "refused", "no {x}\x1b", "mpsbar does not open at login: macOS refused (no {x}\ufffd)"),
        ("off", "refused", None, "mpsbar does not open at login: macOS refused (?)"),
        ("unavailable", "foreign", None, f"mpsbar can't change whether it opens at login: {WHERE} was not created by mpsbar and was left unchanged"),
        ("off", "not_written", "Permission denied", f"mpsbar does not open at login: couldn't change {WHERE} (Permission denied)"),
        ("off", "command_gone", "/y/mpsbar", f"mpsbar does not open at login: {WHERE} would start /y/mpsbar, which no longer exists; mpsbar login on fixes this"),
        ("unavailable", "temporary_command", "/y", "mpsbar can't change whether it opens at login: /y is temporary; install mpsbar first"),
        ("unavailable", "odd_path", "/a=b", "mpsbar can't change whether it opens at login: the path /a=b contains characters that can't be written there"),
        ("off", "disabled_by_user", None, "mpsbar does not open at login: it is turned off in the desktop's settings"),
    ],
)  # fmt: skip
def test_login(state, why, detail, sentence):
    assert login(state, WHERE, why, detail) == sentence


def test_every_state_and_reason_has_its_words():
    for state in get_args(LoginState):
        for why in get_args(Why):
            assert login(state, None, why, None)
