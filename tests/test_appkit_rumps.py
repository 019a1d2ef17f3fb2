"""The real rumps and PyObjC's real AppHelper, unmodified, run on the double of AppKit."""

# ruff: noqa: N802 - Objective-C's names

import gc
import signal
import threading

import appkit
import pytest

pytestmark = pytest.mark.skipif(
    appkit.why_no_rumps() is not None, reason=str(appkit.why_no_rumps())
)


@pytest.fixture
def mac():
    with appkit.installed() as made:
        yield made


def run(mac, app, script):
    """The script, and then Quit."""

    def whole():
        script()
        mac.click("Quit")

    mac.run(app.run, whole)


def make_delegate():
    from Foundation import NSObject

    class Delegate(NSObject):
        def menuWillOpen_(self, menu):
            self.seen.append("open")

        def menuDidClose_(self, menu):
            self.seen.append("closed")

    made = Delegate.alloc().init()
    made.seen = []
    return made


def test_an_app_starts_is_clicked_and_quits(mac):
    import rumps

    seen = []
    app = rumps.App(
        "mpsbar", title="7.6 GB", menu=["Free", ("train.py", ["Copy PID", None, "Stop"]), None]
    )
    app.menu["Free"].set_callback(lambda item: seen.append(item.title))
    app.menu["train.py"]["Copy PID"].set_callback(lambda item: seen.append(item.title), key="c")
    app.menu["train.py"].state = 1
    rumps.events.before_start.register(lambda: seen.append("start"))
    rumps.events.before_quit.register(lambda: seen.append("quit"))

    def script():
        assert mac.bar() == "7.6 GB"
        with mac.menu() as menu:
            assert menu.lines() == ["Free", "✓ train.py  ▸", "─", "Quit"]
            menu.enter("train.py")
            assert menu.lines() == ["Copy PID  ⌘C", "─", "(Stop)"]
        mac.click("Free")
        mac.click("train.py", "Copy PID")

    run(mac, app, script)
    assert seen == ["start", "Free", "Copy PID", "quit"]


def test_rows_that_cannot_be_clicked(mac):
    import rumps

    app = rumps.App("mpsbar", menu=["Grey", "Hidden", ("Way", ["In"])])
    app.menu["Hidden"].set_callback(print)
    app.menu["Hidden"].hide()

    def script():
        for title in ("Grey", "Hidden", "Way", "Absent"):
            with pytest.raises(appkit.NotClickableError):
                mac.click(title)
        app.menu["Hidden"].show()
        with mac.menu() as menu:
            assert menu.lines() == ["(Grey)", "Hidden", "Way  ▸", "Quit"]

    run(mac, app, script)


def test_a_rumps_timer_stands_still_under_an_open_menu(mac):
    import rumps

    ticks, start = [], mac.state.now
    app = rumps.App("mpsbar")
    timer = rumps.Timer(lambda _: ticks.append(mac.state.now - start), 2)

    def script():
        timer.start()
        mac.wait(5)
        assert ticks == [0, 2, 4]
        with mac.menu() as menu:
            menu.wait(10)
            assert ticks == [0, 2, 4]
        mac.wait(3)
        assert ticks == [0, 2, 4, 15, 16, 18]  # one for all that were missed, then the old beat

    run(mac, app, script)


def test_common_modes_keep_it_going(mac):
    import rumps
    from AppKit import NSRunLoop, NSRunLoopCommonModes

    ticks = []
    app = rumps.App("mpsbar")
    timer = rumps.Timer(ticks.append, 2)

    def script():
        timer.start()
        NSRunLoop.currentRunLoop().addTimer_forMode_(timer._nstimer, NSRunLoopCommonModes)
        mac.wait(1)
        with mac.menu() as menu:
            menu.wait(6)
        assert len(ticks) == 4
        timer.stop()
        mac.wait(60)
        assert len(ticks) == 4

    run(mac, app, script)


def test_call_after_works_under_an_open_menu_and_call_later_waits(mac):
    import rumps
    from PyObjCTools import AppHelper

    app, seen = rumps.App("mpsbar"), []

    def script():
        def work():
            AppHelper.callAfter(lambda: seen.append(("after", threading.current_thread() is main)))
            AppHelper.callLater(3, seen.append, "later")

        main = threading.current_thread()
        with mac.menu() as menu:
            threading.Thread(target=work).start()
            mac.wait_for(lambda: seen)
            assert seen == [("after", True)]
            menu.wait(10)
            assert len(seen) == 1
        mac.wait()
        assert seen[1:] == ["later"]

    run(mac, app, script)


def test_a_title_set_off_the_main_thread_is_found_out(mac):
    import rumps

    app = rumps.App("mpsbar", menu=["Row"])

    def script():
        def work():
            with pytest.raises(appkit.OffMainThreadError):
                app.menu["Row"].title = "6.2 GB"

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(timeout=60)  # a loaded machine
        assert mac.take_faults() == [
            "OffMainThreadError: -[NSMenuItem setTitle:] off the main thread"
        ]

    run(mac, app, script)


def test_the_menu_tells_its_delegate_and_closes_before_the_action(mac):
    import rumps

    app, delegate = rumps.App("mpsbar", menu=["Free", ("train.py", ["Stop"])]), make_delegate()
    app.menu["Free"].set_callback(lambda _: delegate.seen.append("action"))
    app.menu._menu.setDelegate_(delegate)
    app.menu["train.py"]._menu.setDelegate_(delegate)

    def script():
        mac.click("Free")
        assert delegate.seen == ["open", "closed", "action"]
        delegate.seen.clear()
        with mac.menu("train.py"):
            assert delegate.seen == ["open", "open"]
        assert delegate.seen == ["open", "open", "closed", "closed"]

    run(mac, app, script)


def test_rows_changed_in_an_open_menu_are_noted(mac):
    import rumps

    app = rumps.App("mpsbar", menu=["a"])

    def script():
        app.menu.add("b")
        assert mac.state.changed_while_open == []
        with mac.menu() as menu:
            app.menu["a"].title = "A"
            app.menu.add("c")
            del app.menu["b"]
            assert menu.lines() == ["(A)", "Quit", "(c)"]
        assert mac.state.changed_while_open == ["inserted 'c'", "removed 'b'"]

    run(mac, app, script)


def test_alert_and_window(mac):
    import rumps

    app, ticks = rumps.App("mpsbar"), []
    timer = rumps.Timer(ticks.append, 1)

    def script():
        timer.start()
        mac.wait()
        mac.answer("Cancel", meanwhile=lambda: mac.wait(10))
        assert rumps.alert("Stop?", "100 % sure", ok="Stop", cancel="Cancel") == 0
        assert len(ticks) == 1  # an alert stops rumps' timers too
        assert mac.state.alerts == ["Stop?: 100 % sure"]
        window = rumps.Window("Name", "Rename", default_text="a", cancel=True)
        window.add_button("Later")
        mac.answer("OK", text="b")
        response = window.run()
        assert (response.clicked, response.text) == (1, "b")
        mac.answer("Later")
        assert window.run().clicked == 2
        timer.stop()

    run(mac, app, script)


def test_an_alert_nobody_answers_hangs_through_all_of_rumps(mac):
    import rumps

    app = rumps.App("mpsbar", menu=["Stop"])
    later = rumps.Timer(lambda timer: (timer.stop(), rumps.alert("Stop?")), 1)
    app.menu["Stop"].set_callback(lambda _: later.start())
    with pytest.raises(appkit.Hangs, match="Stop"):
        run(mac, app, lambda: (mac.click("Stop"), mac.wait(2)))


def test_an_alert_inside_the_action_of_an_item_is_a_fault(mac):
    """On some Macs the menu still fades then, and takes its clicks."""
    import rumps

    app = rumps.App("mpsbar", menu=["Stop"])
    app.menu["Stop"].set_callback(lambda _: rumps.alert("Stop?"))

    def script():
        mac.click("Stop")
        assert "inside the action" in mac.take_faults()[0]

    run(mac, app, script)


def test_a_delegate_that_nobody_keeps_is_gone(mac):
    import rumps
    from Foundation import NSObject

    heard = []

    class Listener(NSObject):
        def menuWillOpen_(self, menu):
            heard.append(menu)

    app = rumps.App("mpsbar", menu=["Stop"])
    kept = Listener.alloc().init()
    app.menu._menu.setDelegate_(kept)

    def script():
        with mac.menu():
            assert len(heard) == 1
        app.menu._menu.setDelegate_(Listener.alloc().init())
        gc.collect()
        with mac.menu():
            assert len(heard) == 1

    run(mac, app, script)


def test_what_a_script_raises_reaches_the_test(mac):
    import objc
    import rumps

    def wrong():
        raise objc.error("NSInvalidArgumentException")

    with pytest.raises(objc.error, match="NSInvalid"):
        run(mac, rumps.App("mpsbar"), wrong)


def test_a_script_without_a_quit_is_reported(mac):
    import rumps

    with pytest.raises(appkit.Hangs, match="still runs"):
        mac.run(rumps.App("mpsbar").run, lambda: None)


def test_sleep_and_wake(mac):
    import rumps

    app, seen = rumps.App("mpsbar"), []
    rumps.events.on_sleep.register(lambda: seen.append("sleep"))
    rumps.events.on_wake.register(lambda: seen.append("wake"))
    run(mac, app, lambda: mac.sleep(3600))
    assert seen == ["sleep", "wake"]


def test_sigint_quits(mac):
    import rumps

    app, seen = rumps.App("mpsbar"), []
    rumps.events.before_quit.register(lambda: seen.append("quit"))
    mac.run(app.run, lambda: mac.signal(signal.SIGINT))
    assert seen == ["quit"]


def test_icon_attributed_title_and_visibility(mac, tmp_path):
    import rumps
    from AppKit import (
        NSAttributedString,
        NSFont,
        NSFontAttributeName,
        NSImageLeft,
        NSWindowOcclusionStateVisible,
    )

    icon = tmp_path / "icon.png"
    icon.write_bytes(b"")
    app = rumps.App("mpsbar", icon=str(icon), template=True)

    def script():
        button = mac.item().button()
        assert (mac.bar(), button.image().isTemplate(), button.image().size()) == (
            "",
            True,
            (20, 20),
        )
        font = NSFont.monospacedDigitSystemFontOfSize_weight_(0, 0)
        text = NSAttributedString.alloc().initWithString_attributes_(
            "7.6 GB", {NSFontAttributeName: font}
        )
        button.setAttributedTitle_(text)
        button.setImagePosition_(NSImageLeft)
        button.setAccessibilityLabel_("mpsbar, 7.6 gigabytes")
        assert mac.bar() == "7.6 GB"
        assert button.window().occlusionState() & NSWindowOcclusionStateVisible
        mac.state.bar_has_room = False
        assert mac.item().isVisible()  # says nothing of the notch, as on a Mac
        assert not button.window().isVisible()

    run(mac, app, script)


def test_slider_and_decorators(mac):
    import rumps

    seen = []

    @rumps.slider("Refresh", value=2, min_value=1, max_value=10)
    def slide(sender):
        seen.append(sender.value)

    @rumps.clicked("Free", key="f")
    def free(item):
        seen.append(item.key)

    @rumps.timer(5)
    def tick(_):
        seen.append("tick")

    def script():
        mac.wait()
        mac.click("Free")
        with mac.menu("Refresh") as menu:
            assert menu.lines() == ["[NSSlider]"]
            menu.slide(7)

    run(mac, rumps.App("mpsbar", menu=["Free"]), script)
    assert seen == ["tick", "f", 7]


def test_a_callback_that_fails_is_printed_and_the_app_goes_on(mac, capsys):
    import rumps

    app = rumps.App("mpsbar", menu=["Bad"])
    app.menu["Bad"].set_callback(lambda _: 1 / 0)
    run(mac, app, lambda: mac.click("Bad"))
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_updates_in_place_do_not_grow(mac):
    import rumps

    app = rumps.App("mpsbar", menu=[f"row {n}" for n in range(20)])
    rows = list(app.menu.values())

    def refresh(times):
        for n in range(times):
            for row in rows:
                row.title = f"{n} GB"
                row.hidden = bool(n % 2)
        gc.collect()
        return len(gc.get_objects())

    def script():
        refresh(10)
        kept = len(rumps.rumps.NSApp._ns_to_py_and_callback)
        before = refresh(10)
        after = refresh(500)
        assert after - before < 50
        assert len(rumps.rumps.NSApp._ns_to_py_and_callback) == kept

    run(mac, app, script)


def test_each_session_has_a_rumps_of_its_own():
    for _ in range(2):
        with appkit.installed(bundle="org.example.app") as mac:
            import rumps

            assert len(rumps.rumps.NSApp._ns_to_py_and_callback) == 0
            run(mac, rumps.App("mpsbar"), lambda: None)
