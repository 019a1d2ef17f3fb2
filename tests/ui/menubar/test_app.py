"""The menu bar app as a whole: start, sleep, failures and quit; real rumps on the double of AppKit."""

from dataclasses import replace

from samples import GB, make_snapshot, make_training
from ui.menubar_kit import HEAD, TAIL, play

from mpsbar.core.events import Alert
from mpsbar.core.findings import Reason
from mpsbar.desktop.notifications import read_delivery

LEAK = Alert(
    "pressure",
    "warning",
    None,
    None,
    Reason("pressure", "warning", {"pressure": "warning"}),
    "raised",
    "pressure",
)


def test_start_with_no_worker(mac):
    def person(user):
        assert mac.bar() == ""
        assert user.lines() == [
            *HEAD,
            "(You have no PyTorch or MLX processes running.)",
            *TAIL,
        ]
        button = mac.item().button()
        assert button.image().isTemplate()
        sizes = [picture.pixelsWide() for picture in button.image().representations()]
        assert sizes == [18, 36, 54]
        assert button.accessibilityLabel() == (
            "mpsbar, No processes connected, GPU 43%, No problems"
        )

    play(mac, make_snapshot(), person)


def test_it_is_no_dock_app(mac, monkeypatch):
    """Before its status item exists: changed afterwards, macOS has drawn it without height."""
    from appkit.statusbar import NSStatusBar

    policies, state = [], mac.state
    make = NSStatusBar.statusItemWithLength_

    def note(bar, length):
        policies.append(state.single["application"]._policy)
        return make(bar, length)

    monkeypatch.setattr(NSStatusBar, "statusItemWithLength_", note)
    play(mac, make_snapshot(), lambda user: None)
    assert policies == [1]


def test_sleep_and_wake(mac):
    """No tick while it sleeps, one after; nothing is announced that only the pause made."""

    def person(user):
        user.show(make_snapshot(make_training(), time=1002.0))
        mac.sleep(3600)
        assert user.monitor.log == ["rest", "wake"]
        user.show(make_snapshot(make_training(state="busy", age=3600.0), time=4602.0))
        user.show(make_snapshot(make_training(), time=4604.0))
        mac.wait(1)
        assert user.notices.told == []
        assert "train.py\tmps\t6.0 GB\t━────\tcached 3.0 GB  ▸" in user.lines()

    play(mac, make_snapshot(make_training()), person)


def test_a_sleep_that_was_called_off_does_not_stop_the_looks_for_ever(mac):
    def person(user):
        mac.announce_sleep()
        mac.wait(30)
        assert user.monitor.log == ["rest"]
        mac.wait(60)
        assert user.monitor.log == ["rest", "wake"]
        mac.announce_sleep()
        mac.sleep(8 * 3600)
        mac.wait(3600)
        assert user.monitor.log == ["rest", "wake", "rest", "rest", "wake"]

    play(mac, make_snapshot(make_training()), person)


def test_quit_while_a_free_is_under_way(mac):
    """The last thing asked never ends; quitting does not wait for it."""

    def person(user):
        user.click("train.py", "Free Cache")

    user = play(mac, make_snapshot(make_training()), person)
    assert user.monitor.log[-1] == "close"
    assert not user.monitor.asked[0][1].done()


def test_a_crash_in_a_callback_is_logged_and_told_and_the_app_goes_on(mac, private):
    from mpsbar.system.log import start_log

    start_log()

    def person(user):
        user.monitor.perform = lambda action: 1 / 0
        user.click("train.py", "Free Cache")
        (title, text, _), *_ = user.notices.told
        assert (title, text.split(".")[0]) == (
            "Free Cache failed",
            "ZeroDivisionError: division by zero",
        )
        user.show(
            replace(make_snapshot(make_training()), machine=None)
        )  # a snapshot that cannot be drawn
        user.show(make_snapshot(make_training(held=7 * GB)))
        assert mac.bar() == " \u20077.0 GB"

    play(mac, make_snapshot(make_training()), person)
    log = (private / "log/mpsbar.log").read_text()
    assert "ZeroDivisionError: division by zero" in log
    assert "Traceback" in log
    assert "AttributeError" in log


def test_a_second_start_brings_a_notice(mac):
    from mpsbar.system.single_instance import claim, nudge

    def person(user):
        assert claim() is None
        assert nudge()
        mac.wait(6)
        assert user.notices.told[0][0] == "mpsbar is already running"
        mac.wait(20)
        assert len(user.notices.told) == 1

    play(mac, make_snapshot(), person)


def test_macos_is_asked_not_to_hold_back_its_timers(mac):
    from AppKit import NSActivityUserInitiatedAllowingIdleSystemSleep

    def person(user):
        import gc

        gc.collect()  # who does not keep the activity has none
        assert mac.state.activities == [NSActivityUserInitiatedAllowingIdleSystemSleep]

    play(mac, make_snapshot(), person)


def test_after_quitting_another_may_start(mac):
    from mpsbar.system.single_instance import claim

    play(mac, make_snapshot(), lambda user: None)
    assert claim() is not None


def test_the_keyboard_goes_back_to_the_app_that_had_it(mac):
    """rumps activates us at every start; a dialog activates us again when it is clicked for."""

    def person(user):
        app = mac.state.single["application"]
        assert app.isActive()
        mac.wait(1)
        assert not app.isActive()
        mac.answer("OK", meanwhile=lambda: seen.append(app.isActive()))
        user.click("About mpsbar")
        mac.wait(10)

    seen = []
    play(mac, make_snapshot(), person)
    assert seen == [True]


def test_the_keyboard_is_given_back_only_once(mac):
    """Whoever activates us after that, for a dialog, keeps it."""

    def person(user):
        app = mac.state.single["application"]
        mac.wait(0.3)
        assert not app.isActive()
        app._active = True
        mac.wait(3)
        assert app.isActive()

    play(mac, make_snapshot(), person)


def test_macos_may_activate_late(mac):
    def person(user):
        app = mac.state.single["application"]
        app._active = False
        mac.wait(0.5)
        app._active = True  # only now
        mac.wait(1)
        assert not app.isActive()

    play(mac, make_snapshot(), person)


def test_an_open_without_a_close_does_not_leave_the_menu_stale(mac):
    """As when macOS looks for a shortcut; then it is opened, at once or later."""

    def person(user):
        for seconds in (0, 1):
            user.show(make_snapshot(time=1000.0))
            mac.peek()
            mac.wait(seconds)
            user.show(make_snapshot(make_training(), time=1100.0 + seconds))
            mac.peek()
            assert any("train.py" in line for line in user.lines())
        mac.peek()
        mac.wait(1)
        assert user.monitor.looking == 0  # nobody looks
        assert user.app._clock.interval == 5.0

    play(mac, make_snapshot(), person)


def test_alerts_are_kept_in_the_menu_and_it_says_when_they_may_not_be_seen(mac):
    def person(user):
        assert not any("Alerts" in line for line in user.lines())
        user.monitor.happen(LEAK)
        user.show(make_snapshot(make_training(), time=1300.0))
        assert "Recent Alerts  ▸" in user.lines()
        assert "Alerts May Not Be Visible…" not in user.lines()
        (line,) = user.lines("Recent Alerts")
        assert line.startswith("(Warning: ")
        assert line.endswith((" ago))", "(just now))"))
        user.notices.delivery = "script"
        assert "Alerts May Not Be Visible…" in user.lines()
        mac.answer("Open Notification Settings")
        user.click("Alerts May Not Be Visible…")
        assert "Script Editor" in mac.state.alerts[-1]
        assert mac.state.opened[-1].startswith("x-apple.systempreferences:")
        user.notices.delivery = "off"
        assert "Alerts May Not Be Visible…" not in user.lines()
        assert "Notifications Are Off in System Settings…" in user.lines("Settings", "Alerts")

    play(mac, make_snapshot(make_training()), person)
    assert read_delivery().delivery == "off"
