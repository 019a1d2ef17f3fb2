"""Settings, alerts and login in the menu bar app, on the double of AppKit."""

from samples import make_snapshot, make_training
from ui.menubar_kit import play

from mpsbar.core.findings import Health, Reason
from mpsbar.core.settings import LoadedSettings, Settings
from mpsbar.system import paths
from mpsbar.system.settings_file import read_settings, write_setting


def test_settings_are_changed_and_kept_over_a_restart(mac, private):
    def person(user):
        user.click("Settings", "Menu Bar Shows", "GPU Usage")
        mac.wait(0)
        assert mac.bar() == " \u200743%"
        user.click("Settings", "Update Frequency", "Every 5 Seconds")
        assert user.monitor.interval == 5.0
        user.click("Settings", "Alerts", "Possible Memory Leak")
        assert "✓ GPU Usage" in user.lines("Settings", "Menu Bar Shows")

    play(mac, make_snapshot(make_training()), person)
    kept = read_settings().settings
    assert (kept.bar, kept.interval, "leak" in kept.alert_causes) == ("gpu", 5.0, False)


def test_what_top_has_chosen_about_automatic_frees_is_taken_over(mac, private, monkeypatch):
    def person(user):
        user.click("Settings", "Update Frequency", "Every 5 Seconds")
        mac.wait_for(lambda: read_settings().settings.interval == 5.0)
        write_setting("keep_cache_below", "4GB")
        write_setting("interval", 1.0)  # each program has its own
        user.show(make_snapshot(make_training(), time=1002.0))
        assert user.monitor.settings.keep_cache_below == "4GB"
        assert user.monitor.interval == 5.0
        assert "✓ 4.0 GB" in user.lines("Settings", "Free Automatically", "Keep Cache Below")
        # A file that is being written by hand, and a value that the environment has fixed.
        file = paths.settings_file()
        file.write_text("keep_cache_below = [")
        user.show(make_snapshot(make_training(), time=1004.0))
        monkeypatch.setenv("MPSBAR_KEEP_CACHE_BELOW", "1GB")
        file.write_text('keep_cache_below = "8GB"\nfree_when_idle = true\n')
        user.show(make_snapshot(make_training(), time=1006.0))
        settings = user.monitor.settings
        assert (settings.keep_cache_below, settings.free_when_idle) == ("4GB", True)
        # Switched off there; that another line is wrong is no reason to go on.
        file.write_text('bar = "none"\nfree_when_idle = false\n')
        user.show(make_snapshot(make_training(), time=1008.0))
        assert user.monitor.settings.free_when_idle is False

    play(mac, make_snapshot(make_training()), person)


def test_a_setting_that_cannot_be_kept_is_told_and_still_used(mac, private):
    (private / "config").mkdir()
    (private / "config/settings.toml").mkdir()

    def person(user):
        user.click("Settings", "Menu Bar Shows", "Dot Only")
        mac.wait_for(lambda: user.notices.told)
        (title, text, _), *_ = user.notices.told
        assert title == "Saving the settings failed"
        assert "settings.toml" in text
        assert str(private / "log") in text
        assert mac.bar() == "●"

    play(mac, make_snapshot(make_training()), person)


def test_alert_cool_down_and_recovery(mac):
    sick = Health("warning", (Reason("pressure", "warning"),))
    well = Health()

    def tell(user, at, health):
        user.show(make_snapshot(make_training(), time=1000.0 + at, health=health))
        return [title for title, _, _ in user.notices.told]

    def person(user):
        first = tell(user, 2, sick)
        assert len(first) == 1
        assert "Pressure" in first[0]
        assert tell(user, 4, sick) == first  # once
        for at in range(6, 36, 2):
            told = tell(user, at, well)
        assert told == first  # not over at once
        for at in range(36, 50, 2):
            told = tell(user, at, well)
        assert told == [*first, "Resolved: Memory Pressure"]
        for at in range(50, 110, 2):
            told = tell(user, at, sick)
        assert told == [*first, "Resolved: Memory Pressure"]  # still cooling down
        for at in range(110, 700, 30):
            told = tell(user, at, sick)
        assert told == [*first, "Resolved: Memory Pressure", *first]

    play(mac, make_snapshot(make_training()), person)


def test_alerts_can_be_switched_off(mac):
    sick = Health("warning", (Reason("pressure", "warning"),))

    def person(user):
        user.click("Settings", "Alerts", "Show Notifications")
        user.show(make_snapshot(make_training(), health=sick))
        assert user.notices.told == []

    play(mac, make_snapshot(make_training()), person)


def test_start_at_login_is_read_each_time_the_menu_opens(mac, monkeypatch):
    def person(user):
        from mpsbar.desktop import login, login_macos

        monkeypatch.setattr(login, "_platform", lambda: login_macos)

        def settings():
            with user.open() as menu:
                mac.wait_for(lambda: not user.app._controller._pool._work_queue.qsize())
                menu.wait(0.6)
                menu.enter("Settings")
                return menu.lines()[-1]

        mac.wait_for(lambda: settings() == "Open at Login")
        user.click("Settings", "Open at Login")
        mac.wait_for(lambda: settings() == "✓ Open at Login")
        assert mac.state.login_status == 1
        mac.state.login_status = 0  # by the person, in System Settings
        mac.wait_for(lambda: settings() == "Open at Login")
        mac.state.login_after_register = 2
        user.click("Settings", "Open at Login")
        mac.wait_for(lambda: mac.state.opened == ["System Settings: Login Items"])
        assert user.notices.told == []

    play(mac, make_snapshot(), person)


def test_start_at_login_tells_why_it_cannot_be(mac, monkeypatch):
    from mpsbar.desktop import login

    image = login.LoginStatus("unavailable", "app", "/Volumes/mpsbar/mpsbar.app", "disk_image")
    monkeypatch.setattr(login, "read_login", lambda: image)
    monkeypatch.setattr(login, "turn_on", lambda: image)

    def person(user):
        mac.wait_for(lambda: user.lines("Settings")[-1] == "Open at Login")
        user.click("Settings", "Open at Login")
        mac.wait_for(lambda: user.notices.told)
        assert user.notices.told[0][1] == (
            "mpsbar can't change whether it opens at login: it is running from its disk image;"
            " move it to the Applications folder first"
        )

    play(mac, make_snapshot(), person)


def test_complaints_about_the_settings_are_told_and_the_cool_down_is_theirs(mac):
    complaint = "bar is 7: it must be one of memory, gpu, progress, dot, icon"
    loaded = LoadedSettings(Settings(cool_down=1.0), "", complaints=(complaint,))

    def person(user):
        assert user.notices.told == [("Some settings can't be used", complaint, "settings")]
        assert user.monitor.alerts.cool_down == 1.0

    play(mac, make_snapshot(), person, loaded=loaded)
