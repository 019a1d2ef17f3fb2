"""The double of AppKit keeps its honesty rules: nothing passes here that Apple's headers refuse."""

# ruff: noqa: N802, PLW0642 - Objective-C's names, and its way of an init

import importlib
import json
import sys
import threading
import zipfile

import appkit
import pytest
from appkit import excerpt, index, install
from appkit.classes import ObjCClass
from appkit.modules import build_modules
from appkit.objects import NSObject
from desktop_kit import in_thread


def test_message_apple_lacks_is_an_attribute_error():
    with appkit.installed() as mac:
        from AppKit import NSMenuItem

        item = NSMenuItem.alloc().init()
        with pytest.raises(AttributeError, match=r"-\[NSMenuItem setAttributedTitel:\]"):
            item.setAttributedTitel_(None)
        with pytest.raises(AttributeError, match="Apple has no"):
            NSMenuItem.seperatorItem()
        assert len(mac.take_faults()) == 2


def test_message_only_the_double_lacks_is_named():
    with appkit.installed() as mac:
        from AppKit import NSMenu

        with pytest.raises(NotImplementedError, match=r"-\[NSMenu setShowsStateColumn:\]"):
            NSMenu.alloc().init().setShowsStateColumn_(True)
        with pytest.raises(NotImplementedError, match=r"\+\[NSMenu popUpContextMenu:"):
            NSMenu.popUpContextMenu_withEvent_forView_(None, None, None)
        assert len(mac.take_faults()) == 2


def test_a_property_with_an_is_getter_has_no_other():
    with appkit.installed() as mac:
        from AppKit import NSMenuItem

        item = NSMenuItem.alloc().init()
        assert item.isHidden() is False
        with pytest.raises(AttributeError):
            item.hidden()
        mac.take_faults()


def test_swallowed_faults_fail_the_session():
    with pytest.raises(AssertionError, match="against Apple's rules"), appkit.installed():
        from AppKit import NSMenu

        try:
            NSMenu.alloc().init().addItm_(None)
        except AttributeError:
            pass  # as rumps does in App.title


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("setTitle_", ()),
        ("setTitle_", ("a", "b")),
        ("setTitle_", (3,)),
        ("setTitle_", (None,)),
        ("setState_", ("1",)),
        ("setState_", (1.5,)),
        ("setHidden_", ("yes",)),
        ("setAction_", ("two words",)),
        ("setAction_", (7,)),
        ("setIndentationLevel_", (None,)),
        ("setKeyEquivalentModifierMask_", (-1,)),
    ],
)
def test_arguments_are_checked(message, arguments):
    with appkit.installed() as mac:
        import objc
        from AppKit import NSMenuItem

        with pytest.raises((TypeError, objc.error)):
            getattr(NSMenuItem.alloc().init(), message)(*arguments)
        assert len(mac.take_faults()) == 1


def test_structs_blocks_and_out_arguments_are_checked():
    with appkit.installed(bundle="org.example.app") as mac:
        from AppKit import NSImage, NSTextField
        from Foundation import NSMakeRect
        from ServiceManagement import SMAppService
        from UserNotifications import UNUserNotificationCenter

        NSTextField.alloc().initWithFrame_(NSMakeRect(0, 0, 320, 160))
        NSImage.alloc().init().setSize_((18, 18))
        center = UNUserNotificationCenter.currentNotificationCenter()
        for wrong in (
            lambda: NSTextField.alloc().initWithFrame_((0, 0, 320, 160)),
            lambda: NSImage.alloc().init().setSize_((18,)),
            lambda: center.requestAuthorizationWithOptions_completionHandler_(4, "handler"),
            lambda: SMAppService.mainAppService().registerAndReturnError_(0),
        ):
            with pytest.raises(TypeError):
                wrong()
        assert len(mac.take_faults()) == 4


def test_names_apple_lacks_and_names_we_lack():
    with appkit.installed() as mac:
        with pytest.raises(ImportError):
            from AppKit import NSMenuItm  # noqa: F401
        with pytest.raises(ImportError):
            from Foundation import NSMenu  # noqa: F401
        with pytest.raises(NotImplementedError, match="NSTableView"):
            from AppKit import NSTableView  # noqa: F401
        from AppKit import NSControlStateValueMixed, NSKeyDown, NSStatusItem  # noqa: F401

        assert (NSControlStateValueMixed, NSKeyDown) == (-1, 10)
        mac.take_faults()


def test_messages_of_a_later_macos_are_absent():
    with appkit.installed(macos="13.0") as mac:
        from AppKit import NSMenuItem

        item = NSMenuItem.alloc().init()
        assert not item.respondsToSelector_("setSubtitle:")
        with pytest.raises(AttributeError, match="setSubtitle"):
            item.setSubtitle_("cached 3.1 GB")
        assert len(mac.take_faults()) == 1
    with appkit.installed(macos="14.4"):
        from AppKit import NSMenuItem

        item = NSMenuItem.alloc().init()
        assert item.respondsToSelector_("setSubtitle:")
        item.setSubtitle_("cached 3.1 GB")


def test_appkit_off_the_main_thread_raises_and_is_remembered():
    with appkit.installed() as mac:
        from AppKit import NSMenu, NSMenuItem

        item = NSMenuItem.alloc().init()
        assert isinstance(in_thread(lambda: item.setTitle_("x"))[0], appkit.OffMainThreadError)
        assert isinstance(in_thread(item.title)[0], appkit.OffMainThreadError)
        assert isinstance(in_thread(lambda: NSMenu.alloc())[0], appkit.OffMainThreadError)  # noqa: PLW0108
        assert len(mac.take_faults()) == 3
        assert item.title() == ""


def test_foundation_works_on_any_thread_but_a_timer_needs_a_loop():
    with appkit.installed() as mac:
        from Foundation import NSDate, NSThread, NSTimer

        seen = []
        assert (
            in_thread(lambda: seen.append((NSDate.date() is None, NSThread.isMainThread()))) == []
        )
        assert seen == [(False, False)]
        schedule = NSTimer.scheduledTimerWithTimeInterval_target_selector_userInfo_repeats_
        assert in_thread(lambda: schedule(1, object(), "x:", None, True)) != []
        assert len(mac.take_faults()) == 1


def test_every_class_of_the_double_is_held_to_the_index():
    with appkit.installed():
        modules = build_modules()
        classes = {
            v for m in modules.values() for v in vars(m).values() if isinstance(v, ObjCClass)
        }
        assert len(classes) > 45
        assert all(index.has_class(cls.__name__) for cls in classes)
    with pytest.raises(TypeError, match="Apple has no -fly:"):
        ObjCClass("NSMenu", (NSObject,), {"fly_": lambda self, x: x}, framework="AppKit")
    with pytest.raises(TypeError, match="subclass of NSButton"):
        ObjCClass("NSStatusBarButton", (NSObject,), {}, framework="AppKit")


def test_python_subclasses_follow_pyobjc():
    with appkit.installed():
        import objc
        from Foundation import NSObject

        class Delegate(NSObject):
            def initWithName_(self, name):
                self = objc.super(Delegate, self).init()
                self.name = name
                return self

            @objc.python_method
            def rename(self, name, suffix):
                self.name = name + suffix

            def snake_case(self, any_number, of_arguments):
                return any_number + of_arguments

        made = Delegate.alloc().initWithName_("a")
        made.rename("b", "c")
        assert (made.name, made.snake_case(1, 2)) == ("bc", 3)
        with pytest.raises(NotImplementedError):
            Delegate()
        for name in ("menuWillOpen_", "refresh", "_draw"):
            body = {name: lambda self, one, two: None}
            with pytest.raises(objc.BadPrototypeError):
                type(NSObject)(f"Bad{name}", (NSObject,), body)
        with pytest.raises(objc.error, match="overriding existing"):
            type(NSObject)("Delegate", (NSObject,), {})


def test_apple_objects_take_no_python_attributes():
    with appkit.installed() as mac:
        from AppKit import NSMenuItem

        with pytest.raises(AttributeError, match="no Python attribute"):
            NSMenuItem.alloc().init().worker = 3
        mac.take_faults()


def test_timers_keep_to_their_modes():
    with appkit.installed() as mac:
        from AppKit import NSEventTrackingRunLoopMode, NSRunLoopCommonModes
        from Foundation import NSDefaultRunLoopMode, NSObject, NSRunLoop, NSTimer

        class Ticker(NSObject):
            def tick_(self, timer):
                fired.append((timer.userInfo(), mac.state.now - start))

        fired, start, loop, ticker = (
            [],
            mac.state.now,
            NSRunLoop.currentRunLoop(),
            Ticker.alloc().init(),
        )
        for mode in (NSDefaultRunLoopMode, NSRunLoopCommonModes, NSEventTrackingRunLoopMode):
            make = NSTimer.timerWithTimeInterval_target_selector_userInfo_repeats_
            loop.addTimer_forMode_(make(2, ticker, "tick:", mode[:10], True), mode)
        mac.wait(2)
        assert fired == [("kCFRunLoop", 2.0)] * 2
        fired.clear()
        with loop._in_mode(NSEventTrackingRunLoopMode):
            mac.wait(3)
        assert fired == [("NSEventTra", 2.0), ("kCFRunLoop", 4.0), ("NSEventTra", 4.0)]


def test_a_timer_in_two_modes_fires_once_and_a_missed_one_once():
    with appkit.installed() as mac:
        from AppKit import NSEventTrackingRunLoopMode, NSRunLoopCommonModes
        from Foundation import NSDefaultRunLoopMode, NSRunLoop, NSTimer

        fired = []
        ticker = type("Plain", (), {"tick_": lambda self, timer: fired.append(mac.state.now)})()
        loop, start = NSRunLoop.currentRunLoop(), mac.state.now
        both = NSTimer.timerWithTimeInterval_target_selector_userInfo_repeats_(
            2, ticker, "tick:", None, True
        )
        loop.addTimer_forMode_(both, NSDefaultRunLoopMode)
        loop.addTimer_forMode_(both, NSRunLoopCommonModes)
        mac.wait(4)
        assert [at - start for at in fired] == [2, 4]
        mac.sleep(60)
        mac.wait(3)
        assert [at - start for at in fired] == [2, 4, 64, 66]
        both.invalidate()
        with loop._in_mode(NSEventTrackingRunLoopMode):
            mac.wait(10)
        assert len(fired) == 4


def test_performing_on_the_main_thread_from_another():
    with appkit.installed() as mac:
        from Foundation import NSObject, NSThread

        class Runner(NSObject):
            def note_(self, what):
                seen.append((what, NSThread.isMainThread()))

        seen, runner = [], Runner.alloc().init()
        perform = runner.performSelectorOnMainThread_withObject_waitUntilDone_
        assert in_thread(lambda: perform("note:", 1, False)) == []
        assert seen == []
        thread = threading.Thread(target=lambda: perform(runner.note_, 2, True))
        thread.start()
        mac.wait_for(lambda: len(seen) == 2)
        thread.join(timeout=60)  # a loaded machine
        assert seen == [(1, True), (2, True)]


def test_an_alert_without_an_answer_hangs():
    with appkit.installed() as mac:
        from AppKit import NSAlert, NSAlertSecondButtonReturn

        alert = NSAlert.alloc().init()
        alert.setMessageText_("Stop train.py?")
        alert.addButtonWithTitle_("Stop")
        alert.addButtonWithTitle_("Cancel")
        mac.answer("Cancel")
        assert alert.runModal() == NSAlertSecondButtonReturn
        with pytest.raises(appkit.Hangs, match="Stop train"):
            alert.runModal()
        with pytest.raises(appkit.Hangs):
            alert.messageText()  # the main thread never gets there


def test_terminate_never_returns():
    with appkit.installed():
        from AppKit import NSApplication
        from Foundation import NSNotificationCenter, NSObject

        class Delegate(NSObject):
            def applicationShouldTerminate_(self, application):
                return allowed[0]

            def applicationWillTerminate_(self, notification):
                seen.append("delegate")

            def leaving_(self, notification):
                seen.append(notification.name())

        allowed, seen, delegate = [0], [], Delegate.alloc().init()
        NSNotificationCenter.defaultCenter().addObserver_selector_name_object_(
            delegate, "leaving:", "NSApplicationWillTerminateNotification", None
        )
        app = NSApplication.sharedApplication()
        app.setDelegate_(delegate)
        app.terminate_(None)
        assert seen == []
        allowed[0] = 1
        with pytest.raises(appkit.Terminated):
            app.terminate_(None)
        assert seen == ["delegate", "NSApplicationWillTerminateNotification"]


def test_menu_rules():
    with appkit.installed() as mac:
        import objc
        from AppKit import NSMenu, NSMenuItem

        first, second, item = (
            NSMenu.alloc().init(),
            NSMenu.alloc().init(),
            NSMenuItem.alloc().init(),
        )
        first.addItem_(item)
        with pytest.raises(objc.error, match="already is in another menu"):
            second.addItem_(item)
        with pytest.raises(objc.error):
            second.removeItem_(item)
        with pytest.raises(objc.error):
            first.insertItem_atIndex_(NSMenuItem.separatorItem(), 5)
        first.removeItem_(item)
        second.addItem_(item)
        assert (first.numberOfItems(), second.indexOfItem_(item)) == (0, 0)
        assert len(mac.take_faults()) == 3


def test_notifications_need_a_bundle_and_answer_in_the_background():
    with appkit.installed(), pytest.raises(appkit.Aborted):
        from UserNotifications import UNUserNotificationCenter

        UNUserNotificationCenter.currentNotificationCenter()
    with appkit.installed(bundle="org.example.app") as mac:
        from Foundation import NSThread
        from UserNotifications import (
            UNAuthorizationOptionAlert,
            UNMutableNotificationContent,
            UNNotificationRequest,
            UNUserNotificationCenter,
        )

        answers = []
        center = UNUserNotificationCenter.currentNotificationCenter()
        center.requestAuthorizationWithOptions_completionHandler_(
            UNAuthorizationOptionAlert,
            lambda ok, err: answers.append((ok, NSThread.isMainThread())),
        )
        assert answers == []
        content = UNMutableNotificationContent.alloc().init()
        content.setTitle_("Freed 3.1 GB")
        request = UNNotificationRequest.requestWithIdentifier_content_trigger_("a", content, None)
        center.addNotificationRequest_withCompletionHandler_(request, None)
        mac.wait()
        assert answers == [(True, False)]
        assert [kept.content().title() for kept in mac.state.delivered] == ["Freed 3.1 GB"]


def test_banners_of_an_active_app_need_a_delegate():
    with appkit.installed(bundle="org.example.app") as mac:
        from Foundation import NSObject
        from UserNotifications import (
            UNMutableNotificationContent,
            UNNotificationPresentationOptionBanner,
            UNNotificationRequest,
            UNUserNotificationCenter,
        )

        class Presenter(NSObject):
            def userNotificationCenter_willPresentNotification_withCompletionHandler_(
                self, center, notification, handler
            ):
                handler(UNNotificationPresentationOptionBanner)

        content, presenter = UNMutableNotificationContent.alloc().init(), Presenter.alloc().init()
        content.setTitle_("Freed")
        request = UNNotificationRequest.requestWithIdentifier_content_trigger_("a", content, None)
        center = UNUserNotificationCenter.currentNotificationCenter()
        center.addNotificationRequest_withCompletionHandler_(request, None)
        assert mac.state.shown == []
        center.setDelegate_(presenter)
        center.addNotificationRequest_withCompletionHandler_(request, None)
        assert mac.state.shown == [("Freed", UNNotificationPresentationOptionBanner)]


def test_a_refused_notification_says_so():
    with appkit.installed(bundle="org.example.app") as mac:
        from UserNotifications import UNUserNotificationCenter

        mac.state.notifications, answers = "denied", []
        center = UNUserNotificationCenter.currentNotificationCenter()
        center.requestAuthorizationWithOptions_completionHandler_(
            4, lambda ok, err: answers.append((ok, err.domain(), err.code()))
        )
        center.getNotificationSettingsWithCompletionHandler_(
            lambda settings: answers.append(settings.authorizationStatus())
        )
        mac.wait()
        assert answers == [(False, "UNErrorDomain", 1), 1]


def test_login_item():
    with appkit.installed(bundle="org.example.app") as mac:
        from ServiceManagement import (
            SMAppService,
            SMAppServiceStatusEnabled,
            SMAppServiceStatusRequiresApproval,
        )

        service = SMAppService.mainAppService()
        assert service.registerAndReturnError_(None) == (True, None)
        assert service.status() == SMAppServiceStatusEnabled
        assert service.unregisterAndReturnError_(None) == (True, None)
        mac.state.login_after_register = SMAppServiceStatusRequiresApproval
        done, problem = service.registerAndReturnError_(None)
        assert (done, service.status(), problem.code()) == (False, 2, 1)


def test_no_module_stays_behind():
    with appkit.installed():
        import AppKit  # noqa: F401
    left = {"AppKit", "Foundation", "objc", "PyObjCTools.MachSignals"} & set(sys.modules)
    assert not {name for name in left if type(sys.modules[name]).__module__.startswith("appkit")}


def test_excerpt_drops_ghost_getters_and_shares_accessibility():
    method = [[], "10.0", None]
    menu = {"-isHidden": method, "-hidden": method, "-accessibilityLabel": method}
    classes = {name: {"super": "NSObject", "methods": {}} for name in excerpt.CLASSES}
    classes |= {
        "NSObject": {"super": None, "methods": {}},
        "NSMenu": {"super": "NSObject", "methods": menu},
    }
    whole = {
        "about": "",
        "classes": classes,
        "enums": {"NSA": 1, "kCFB": 2},
        "externs": [],
        "functions": ["NSLog"],
    }
    made = json.loads(json.dumps(excerpt.build_excerpt(whole)))
    assert made["classes"]["NSMenu"]["methods"] == {"-isHidden": "|10.0|"}
    assert made["classes"]["NSMenu"]["also"] == ["NSAccessibility"]
    assert (made["enums"], made["names"]) == (["NSA=1"], ["NSLog"])


def test_apphelper_is_taken_out_of_a_wheel(tmp_path):
    wheel = tmp_path / "cocoa.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("PyObjCTools/AppHelper.py", "helper = 1\n")
        archive.writestr("AppKit/__init__.py", "")
    packages = tmp_path / "packages"
    packages.mkdir()
    install.take_helper(wheel, packages)
    found = [path.relative_to(packages).as_posix() for path in packages.rglob("*.py")]
    assert found == ["PyObjCTools/AppHelper.py"]


def test_packages_that_import_appkit_are_loaded_anew(tmp_path, monkeypatch):
    (tmp_path / "appkit_user_for_test.py").write_text("from AppKit import NSMenu\nmade = []\n")
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):
        with appkit.installed(forget=("appkit_user_for_test",)):
            module = importlib.import_module("appkit_user_for_test")
            assert module.made == []
            module.made.append(module.NSMenu.alloc().init())
    assert "appkit_user_for_test" not in sys.modules
