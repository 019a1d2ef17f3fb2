"""A timer that also fires while the menu or an alert is open, which rumps' own does not."""

from collections.abc import Callable
from typing import Any

from Foundation import (
    NSActivityUserInitiatedAllowingIdleSystemSleep,
    NSDate,
    NSObject,
    NSProcessInfo,
    NSRunLoop,
    NSRunLoopCommonModes,
    NSTimer,
)

# Of the interval: how much later macOS may fire to save battery, with other timers.
_TOLERANCE = 0.1


def avoid_nap() -> Any:
    """macOS holds back the timers and threads of an app without windows (App Nap), and the bar
    would show what was. The computer itself may sleep. To be kept: it lasts as long as this."""
    begin = NSProcessInfo.processInfo().beginActivityWithOptions_reason_
    return begin(NSActivityUserInitiatedAllowingIdleSystemSleep, "shows live figures in the bar")


class MpsbarTimerTarget(NSObject):  # type: ignore[misc]
    """A class of its own: NSTimer calls an Objective-C object."""

    def fire_(self, _timer: Any) -> None:
        self.on_fire()


class Timer:
    """Fires at once, then every so many seconds. On the main thread only."""

    def __init__(self, on_fire: Callable[[], None]) -> None:
        self._target = MpsbarTimerTarget.alloc().init()
        self._target.on_fire = on_fire
        self._timer: Any = None
        self.interval: float | None = None

    def set(self, seconds: float) -> None:
        """A running NSTimer keeps its interval for ever: another takes its place."""
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
