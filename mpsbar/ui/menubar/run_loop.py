"""What the main thread's run loop calls: a timer, delayed functions, and a guard around both."""

import logging
from collections.abc import Callable
from typing import Any

from AppKit import NSEventTrackingRunLoopMode
from Foundation import (
    NSActivityUserInitiatedAllowingIdleSystemSleep,
    NSDate,
    NSObject,
    NSProcessInfo,
    NSRunLoop,
    NSRunLoopCommonModes,
    NSTimer,
)
from PyObjCTools import AppHelper

# Of the interval: how much later macOS may fire to save battery, with other timers.
_TOLERANCE = 0.1
# Not 0: only a call with a delay waits for the run loop's default mode.
_DELAY_SECONDS = 0.1
_log = logging.getLogger("mpsbar")


def guarded(function: Callable[..., Any]) -> Callable[..., None]:
    """The same function for AppKit and rumps to call: what it raises is logged, with traceback."""

    def call(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:  # noqa: BLE001 - PyObjC would end the app, rumps print it to nobody
            _log.exception("%s failed", getattr(function, "__qualname__", function))

    return call


def call_when_free(function: Callable[..., object], *arguments: object) -> None:
    """Call it once no menu or alert is open: an alert must not open over an open menu, whose
    tracking takes its clicks, nor over another alert."""
    AppHelper.callLater(_DELAY_SECONDS, guarded(function), *arguments)


def is_tracking() -> bool:
    """Returns whether a menu is open, as far as the run loop tells. On the main thread only."""
    return bool(NSRunLoop.mainRunLoop().currentMode() == NSEventTrackingRunLoopMode)


def avoid_nap() -> Any:
    """Keep macOS from delaying the timers and threads of an app without windows (App Nap), which
    would leave old figures in the bar. The computer may still sleep. Lasts while the caller keeps
    the returned object."""
    begin = NSProcessInfo.processInfo().beginActivityWithOptions_reason_
    return begin(NSActivityUserInitiatedAllowingIdleSystemSleep, "shows live figures in the bar")


class MpsbarTimerTarget(NSObject):  # type: ignore[misc]
    """NSTimer calls only Objective-C objects."""

    def fire_(self, _timer: Any) -> None:
        self.on_fire()


class Timer:
    """Fires at once, then periodically; also while the menu or an alert is open, which rumps' own
    timer does not. On the main thread only."""

    def __init__(self, on_fire: Callable[[], None]) -> None:
        self._target = MpsbarTimerTarget.alloc().init()
        self._target.on_fire = on_fire
        self._timer: Any = None
        self.interval: float | None = None

    def set(self, seconds: float) -> None:
        """Replace the NSTimer, because a running one cannot change its interval."""
        if seconds == self.interval:
            return
        self.stop()
        self.interval = seconds
        make = NSTimer.alloc().initWithFireDate_interval_target_selector_userInfo_repeats_
        self._timer = make(NSDate.date(), seconds, self._target, "fire:", None, True)
        self._timer.setTolerance_(seconds * _TOLERANCE)
        NSRunLoop.mainRunLoop().addTimer_forMode_(self._timer, NSRunLoopCommonModes)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.invalidate()
        self._timer = self.interval = None
