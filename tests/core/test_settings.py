"""What the user may choose, and the sentences for what cannot be."""

import datetime as dt

import pytest

from mpsbar.core.errors import UserError
from mpsbar.core.events import ALERT_CAUSES
from mpsbar.core.settings import (
    INTERVALS,
    KEEP_CACHE_BELOW,
    KEYS,
    Settings,
    change,
    parse_text,
    parse_values,
)
from mpsbar.core.toml import parse_toml

EXPORT_MUST = 'it must be "off", or an address of this computer only, such as "127.0.0.1:9478" (for others: mpsbar export --help)'


def parse_settings(table):
    values, complaints = parse_values(table)
    return Settings(**values), complaints


def test_no_settings_are_the_defaults():
    assert parse_settings({}) == (Settings(), ())
    assert Settings().alert_causes == (
        "pressure",
        "memory",
        "swap",
        "leak",
        "speed",
        "ended",
        "reset",
    )


def test_all_settings():
    table = {"bar": "gpu", "interval": 5, "alerts": False, "alert_causes": ["cache", "leak", "leak"], "cool_down": 0}  # fmt: skip
    settings, complaints = parse_settings(table)
    assert complaints == ()
    assert settings == Settings("gpu", 5.0, False, ("leak", "cache"), 0.0)
    assert isinstance(settings.interval, float)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"bar": "gpus"}, 'bar is "gpus": it must be one of memory, gpu, progress, dot, icon'),
        ({"bar": ["gpu"]}, 'bar is ["gpu"]: it must be one of memory, gpu, progress, dot, icon'),
        ({"interval": 0.1}, "interval is 0.1: it must be a number of seconds from 0.5 to 3600"),
        ({"interval": "2"}, 'interval is "2": it must be a number of seconds from 0.5 to 3600'),
        ({"interval": True}, "interval is true: it must be a number of seconds from 0.5 to 3600"),
        ({"interval": float("nan")}, "interval is nan: it must be a number of seconds from 0.5 to 3600"),
        ({"interval": 10**400}, f"interval is 1{'0' * 58}…: it must be a number of seconds from 0.5 to 3600"),
        ({"cool_down": 1 << 60000}, "cool_down is too long to show: it must be a number of seconds from 0 to 86400"),
        ({"alerts": 1}, "alerts is 1: it must be true or false"),
        ({"alerts": dt.date(2026, 1, 2)}, "alerts is 2026-01-02: it must be true or false"),
        ({"alert_causes": "leak"}, 'alert_causes is "leak": it must be a list of pressure, memory, swap, leak, speed, cache, ended, reset'),
        ({"alert_causes": ["leek"]}, 'alert_causes is ["leek"]: it must be a list of pressure, memory, swap, leak, speed, cache, ended, reset'),
        ({"alert_causes": [1]}, "alert_causes is [1]: it must be a list of pressure, memory, swap, leak, speed, cache, ended, reset"),
        ({"intervall": 3}, "intervall is not a setting; did you mean interval?"),
        ({"keep_cache_below": 4}, 'keep_cache_below is 4: it must be "off", or a size of at least "64MB", such as "4GB"'),
        ({"keep_cache_below": "1MB"}, 'keep_cache_below is "1MB": it must be "off", or a size of at least "64MB", such as "4GB"'),
        ({"free_when_idle": "yes"}, 'free_when_idle is "yes": it must be true or false'),
        ({"export": True}, f"export is true: {EXPORT_MUST}"),
        ({"export": "0.0.0.0:9478"}, f'export is "0.0.0.0:9478": {EXPORT_MUST}'),
        ({"export": "127.0.0.1:0"}, f'export is "127.0.0.1:0": {EXPORT_MUST}'),
        ({"hosts": "mac1"}, 'hosts is "mac1": it must be a list of names for ssh, such as ["mac1", "me@mac2"]'),
        ({"hosts": ["-oProxyCommand=evil"]}, 'hosts is ["-oProxyCommand=evil"]: it must be a list of names for ssh, such as ["mac1", "me@mac2"]'),
        ({"groups": ["mac1"]}, 'groups is ["mac1"]: it must be a table of lists, such as {studio = ["mac1", "mac2"]}'),
        ({"groups": {"a b": ["mac1"]}}, "groups is {'a b': ['mac1']}: it must be a table of lists, such as {studio = [\"mac1\", \"mac2\"]}"),
        ({"groups": {"lab": ["a;b"]}}, "groups is {'lab': ['a;b']}: it must be a table of lists, such as {studio = [\"mac1\", \"mac2\"]}"),
        ({"zoo": {}}, "zoo is not a setting; the settings are bar, interval, alerts, alert_causes, cool_down, last_words, keep_cache_below, free_when_idle, free_at_critical_pressure, theme, welcome, export, hosts, groups"),
        ({"": 1}, '"" is not a setting; the settings are bar, interval, alerts, alert_causes, cool_down, last_words, keep_cache_below, free_when_idle, free_at_critical_pressure, theme, welcome, export, hosts, groups'),
        ({"bar": "\x1b[2J\n"}, 'bar is "\\u001b[2J\\n": it must be one of memory, gpu, progress, dot, icon'),
    ],
)  # fmt: skip
def test_a_wrong_value_keeps_its_default_and_is_one_sentence(table, complaint):
    assert parse_settings(table) == (Settings(), (complaint,))


def test_wrong_ones_do_not_spoil_the_others():
    settings, complaints = parse_settings({"bar": 1, "interval": 5, "alerts": "no"})
    assert (settings, len(complaints)) == (Settings(interval=5), 2)


def test_a_hostile_key_is_shown_on_one_line():
    (complaint,) = parse_settings({"a\nb\x1b": 1})[1]
    assert complaint.isprintable()


def test_deep_nonsense_is_a_sentence_too():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    (complaint,) = parse_settings({"bar": nested})[1]
    assert complaint.startswith("bar is too long to show: ")


def test_change():
    assert change(Settings(), "interval", 30) == Settings(interval=30.0)
    with pytest.raises(UserError, match="interval is 0: it must be"):
        change(Settings(), "interval", 0)
    with pytest.raises(UserError, match=r"intervals is not a setting; did you mean interval\?"):
        change(Settings(), "intervals", 1)


def test_what_the_menu_offers_is_allowed():
    assert [change(Settings(), "interval", n).interval for n in INTERVALS] == [1, 2, 5, 10, 30]
    assert change(Settings(), "alert_causes", ALERT_CAUSES).alert_causes == ALERT_CAUSES
    sizes = [
        change(Settings(), "keep_cache_below", size).keep_cache_bytes for size in KEEP_CACHE_BELOW
    ]
    assert sizes == [n << 30 for n in (1, 2, 4, 8, 16)]
    assert KEYS == (
        "bar", "interval", "alerts", "alert_causes", "cool_down", "last_words", "keep_cache_below",
        "free_when_idle", "free_at_critical_pressure", "theme", "welcome", "export", "hosts", "groups",
    )  # fmt: skip


def test_hosts_groups_and_where_metrics_are_served():
    table = {
        "export": "localhost:9000", "hosts": ["a", "me@b", "a"], "groups": {"lab": ["c", "[::1]"]},
    }  # fmt: skip
    settings, complaints = parse_settings(table)
    assert complaints == ()
    assert (settings.export, settings.hosts) == ("127.0.0.1:9000", ("a", "me@b"))
    assert settings.groups == {"lab": ("c", "[::1]")}


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("bar", " dot ", "dot"),
        ("hosts", "a, b c", ["a", "b", "c"]),
        ("groups", "lab=a,b office=c", {"lab": ["a", "b"], "office": ["c"]}),
        ("groups", "lab", {"lab": "lab"}),
        ("interval", "5", 5.0),
        ("interval", "inf", "inf"),
        ("interval", "soon", "soon"),
        ("alerts", "Off", False),
        ("alerts", "1", True),
        ("alerts", "maybe", "maybe"),
        ("alert_causes", "leak, swap", ["leak", "swap"]),
        ("alert_causes", "none", []),
    ],
)
def test_the_words_of_an_environment_variable(key, text, value):
    assert parse_text(key, text) == value


def test_a_table_as_toml_gives_it():
    text = 'bar = "icon"\nalert_causes = []\ninterval = 0.5\n'
    assert parse_settings(parse_toml(text)) == (Settings("icon", 0.5, alert_causes=()), ())
