"""The person at a real Mac: the same scenes on the real AppKit, with the real clock.

Menus are opened by telling their delegates and clicked by their items' actions: nothing moves a
pointer. What only the double can show (`Mac.state`, sleep, alerts) skips the rest of the scene.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from unittest.mock import patch

import pytest

from appkit.mac import Mac, OpenMenu, shown

_LONGEST = 15.0  # seconds of the real clock that one wait of a scene may take
_NAP = 0.02


class RealMac:
    """The same names as Mac. On the main thread."""

    def __init__(self) -> None:
        self.has_quit = False
        self._mode = ""

    def __getattr__(self, name: str) -> NoReturn:
        if not hasattr(Mac, name) and name != "state":
            raise AttributeError(name)
        pytest.skip(f"only the double of AppKit has {name}")

    def run(self, start: Callable[[], object], script: Callable[[], object]) -> None:
        """Quitting would end the tests: instead the app is told that it ends, and `run` returns."""
        import rumps
        from AppKit import NSStatusBar
        from PyObjCTools import AppHelper

        events = (
            rumps.events.before_start, rumps.events.on_sleep, rumps.events.on_wake,
            rumps.events.before_quit,
        )  # fmt: skip
        try:
            with (
                patch.object(AppHelper, "runEventLoop", lambda: self._play(script)),
                patch.object(AppHelper, "installMachInterrupt", lambda: None),
                patch.object(rumps, "quit_application", self._quit),
            ):
                start()
            assert self.has_quit, "the scene ended and the app had not quit"
            NSStatusBar.systemStatusBar().removeStatusItem_(self.item())
        finally:
            if not self.has_quit:  # a scene that failed or was skipped leaves no timers behind
                self._quit()
            for event in events:
                event.callbacks.clear()

    def _play(self, script: Callable[[], object]) -> None:
        from AppKit import NSApp

        NSApp().finishLaunching()
        self.wait(0)
        script()

    def _quit(self, _sender: object = None) -> None:
        import rumps

        self.has_quit = True
        rumps.events.before_quit.emit()

    def wait(self, seconds: float = 0.0) -> None:
        """What is due in the run loop is done, and events are handed on, as NSApplication does."""
        if seconds > _LONGEST:
            pytest.skip(f"{seconds} s are too long for a real clock")
        from AppKit import NSApp, NSDate, NSDefaultRunLoopMode, NSEventMaskAny

        end = NSDate.dateWithTimeIntervalSinceNow_(max(seconds, _NAP))
        mode = self._mode or NSDefaultRunLoopMode
        while end.timeIntervalSinceNow() > 0:
            event = NSApp().nextEventMatchingMask_untilDate_inMode_dequeue_(
                NSEventMaskAny, end, mode, True
            )
            if event is not None:
                NSApp().sendEvent_(event)

    def wait_for(self, condition: Callable[[], object], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not so within {seconds} s: {condition}"
            self.wait(_NAP)

    def item(self) -> Any:
        import rumps

        return getattr(rumps.App, "*app_instance")._nsapp.nsstatusitem

    def bar(self) -> str:
        return shown(self.item().button())

    def changes_in_open_menus(self) -> list[str]:
        return []  # nobody notes them here

    def open_menu(self, menu: Any) -> None:
        delegate = menu.delegate()
        if delegate is not None:
            delegate.menuNeedsUpdate_(menu)
            delegate.menuWillOpen_(menu)

    def close_menu(self, menu: Any) -> None:
        if menu.delegate() is not None:
            menu.delegate().menuDidClose_(menu)

    @contextmanager
    def menu(self, *path: str) -> Iterator[OpenMenu]:
        from AppKit import NSEventTrackingRunLoopMode

        opened = OpenMenu(self, self.item().menu())
        self._mode = NSEventTrackingRunLoopMode
        try:
            opened.begin(path)
            try:
                yield opened
            finally:
                opened.end()
        finally:
            self._mode = ""
        if opened.chosen is not None:
            menu = opened.chosen.menu()
            menu.performActionForItemAtIndex_(menu.indexOfItem_(opened.chosen))

    def click(self, *path: str) -> None:
        with self.menu(*path[:-1]) as menu:
            menu.click(path[-1])

    def peek(self) -> None:
        self.open_menu(self.item().menu())
