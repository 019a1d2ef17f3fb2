"""The rows of the settings."""

from dataclasses import replace

from samples import make_snapshot
from ui.menu_kit import APP, rows, worker

from mpsbar.core.actions import ChangeSetting, WatchEnd
from mpsbar.core.settings import Settings
from mpsbar.ui.menu import build_menu


def test_settings_show_what_is_chosen():
    ui_state = replace(
        APP, settings=Settings(bar="dot", interval=5.0, alerts=False), login="needs_approval",
        watched=frozenset([(4711, 100.0)]),
    )  # fmt: skip
    found = rows(build_menu(make_snapshot(worker()), ui_state))
    checked = {key for key, row in found.items() if row.is_checked}
    assert checked == {
        "bar-dot", "interval-5", "watch-4711",
        "alerts-pressure", "alerts-memory", "alerts-swap", "alerts-leak", "alerts-speed",
        "alerts-ended", "alerts-reset",
        "keep-cache-off", "keep-4711-usual",
    }  # fmt: skip
    assert found["alerts-leak"].actions == ()
    assert found["login"].text == "Open at Login (Needs Approval…)"
    assert found["watch-4711"].actions == (WatchEnd(4711, 100.0, "train.py", on=False),)
    assert "login" not in rows(build_menu(make_snapshot(), replace(APP, login=None)))


def test_one_cause_of_alerts_is_switched_at_a_time():
    found = rows(build_menu(make_snapshot(), APP))
    assert found["alerts-leak"].actions == (
        ChangeSetting("alert_causes", ("pressure", "memory", "swap", "speed", "ended", "reset")),
    )
    assert found["alerts-cache"].actions == (
        ChangeSetting(
            "alert_causes",
            ("pressure", "memory", "swap", "leak", "speed", "cache", "ended", "reset"),
        ),
    )
