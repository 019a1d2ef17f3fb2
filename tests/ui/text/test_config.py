"""The sentences of the settings, to the letter."""

from mpsbar.core.settings import LoadedSettings, Settings
from mpsbar.core.toml import parse_toml
from mpsbar.ui.text.config import render_settings, say_settings_ok


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
