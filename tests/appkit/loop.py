"""NSRunLoop with its modes and NSTimer, on a virtual clock that only waiting moves."""

# ruff: noqa: N802, N815 - the names are Objective-C's

import collections
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from appkit import session
from appkit.clock import NSDate, make_date
from appkit.messages import send
from appkit.objects import NSObject, stored

DEFAULT = "kCFRunLoopDefaultMode"
COMMON = "kCFRunLoopCommonModes"
TRACKING = "NSEventTrackingRunLoopMode"
MODAL = "NSModalPanelRunLoopMode"
_COMMON_MODES = frozenset([DEFAULT, TRACKING, MODAL])  # what AppKit adds to the common ones
_SHORTEST = 0.0001  # Apple: an interval of 0 or less means 0.1 ms
_SAME_INSTANT = 10_000  # more firings than this without time passing is a loop without end


def main_loop() -> "NSRunLoop":
    return session.current().only("main loop", NSRunLoop.alloc)


class NSTimer(NSObject, framework="Foundation"):
    tolerance, setTolerance_ = stored("tolerance", 0.0)
    userInfo = stored("info")[0]

    def _setup(self) -> None:
        self._due = session.current().now
        self._valid = True

    def initWithFireDate_interval_target_selector_userInfo_repeats_(
        self, date: NSDate, interval: float, target: Any, selector: Any, info: Any, repeats: bool
    ) -> "NSTimer":
        self._action: Callable[[], object] = lambda: send(target, selector, self)
        self._info = info
        return self._begin(date._time, interval, repeats)

    def initWithFireDate_interval_repeats_block_(
        self, date: NSDate, interval: float, repeats: bool, block: Callable[[Any], object]
    ) -> "NSTimer":
        self._action = lambda: block(self)
        return self._begin(date._time, interval, repeats)

    def _begin(self, due: float, interval: float, repeats: bool) -> "NSTimer":
        self._due, self._repeats = due, bool(repeats)
        self._interval = max(interval, _SHORTEST)
        return self

    @classmethod
    def timerWithTimeInterval_target_selector_userInfo_repeats_(
        cls, interval: float, target: Any, selector: Any, info: Any, repeats: bool
    ) -> "NSTimer":
        first = NSDate.dateWithTimeIntervalSinceNow_(interval)
        made: NSTimer = cls.alloc()
        return made.initWithFireDate_interval_target_selector_userInfo_repeats_(
            first, interval, target, selector, info, repeats
        )

    @classmethod
    def scheduledTimerWithTimeInterval_target_selector_userInfo_repeats_(
        cls, interval: float, target: Any, selector: Any, info: Any, repeats: bool
    ) -> "NSTimer":
        made = cls.timerWithTimeInterval_target_selector_userInfo_repeats_(
            interval, target, selector, info, repeats
        )
        NSRunLoop.currentRunLoop().addTimer_forMode_(made, DEFAULT)
        return made

    def invalidate(self) -> None:
        self._valid = False

    def isValid(self) -> bool:
        return self._valid

    def timeInterval(self) -> float:
        return self._interval if self._repeats else 0.0

    def fireDate(self) -> NSDate:
        return make_date(self._due)

    def setFireDate_(self, date: NSDate) -> None:
        self._due = date._time

    def fire(self) -> None:
        """Missed firings are made up for by one; the next keeps to the first one's beat."""
        if self._repeats:
            late = max(0.0, session.current().now - self._due)
            self._due += self._interval * (late // self._interval + 1)
        else:
            self._valid = False
        self._action()


class NSRunLoop(NSObject, framework="Foundation"):
    """One for the main thread, which a test runs; another thread's is never run by anybody."""

    def _setup(self) -> None:
        self._timers: list[tuple[NSTimer, str]] = []
        self._modes = [DEFAULT]
        self._calls: collections.deque[Callable[[], object]] = collections.deque()
        self._wake = threading.Condition()

    @classmethod
    def currentRunLoop(cls) -> "NSRunLoop":
        now = session.current()
        if now.is_main():
            return main_loop()
        return now.only(("loop", threading.get_ident()), NSRunLoop.alloc)

    @classmethod
    def mainRunLoop(cls) -> "NSRunLoop":
        return main_loop()

    def currentMode(self) -> str:
        return self._modes[-1]

    def addTimer_forMode_(self, timer: NSTimer, mode: str) -> None:
        if self is not main_loop():
            problem = RuntimeError("a timer in the run loop of a thread that runs none")
            session.current().fault(problem)
        if (timer, mode) not in self._timers:
            self._timers.append((timer, mode))

    def limitDateForMode_(self, mode: str) -> NSDate | None:
        timer = self._next_timer(mode)
        return None if timer is None else timer.fireDate()

    def runMode_beforeDate_(self, mode: str, date: NSDate) -> bool:
        with self._in_mode(mode):
            return self._run_until(date._time)

    def runUntilDate_(self, date: NSDate) -> None:
        self._run_until(date._time)

    @contextmanager
    def _in_mode(self, mode: str) -> Iterator[None]:
        self._modes.append(mode)
        try:
            yield
        finally:
            self._modes.pop()

    def _perform(self, call: Callable[[], object], wait: bool) -> None:
        """performSelectorOnMainThread: common modes, in order, from any thread."""
        if wait and session.current().is_main():
            call()
            return
        done = threading.Event()
        with self._wake:
            self._calls.append(lambda: (call(), done.set()))
            self._wake.notify_all()
        if wait and not done.wait(timeout=60):  # a loaded machine; longer is a deadlock
            session.current().fault(RuntimeError("the main thread never ran what was waited for"))

    def _later(self, call: Callable[[], object], delay: float) -> None:
        timer: NSTimer = NSTimer.alloc()
        timer._action = call
        self.addTimer_forMode_(timer._begin(session.current().now + delay, delay, False), DEFAULT)

    def _next_timer(self, mode: str) -> NSTimer | None:
        self._timers = [(timer, own) for timer, own in self._timers if timer._valid]
        ready = [timer for timer, own in self._timers if _fires_in(own, mode)]
        return min(ready, key=lambda timer: timer._due, default=None)

    def _run_until(self, end: float) -> bool:
        """Everything due until then, in order; the clock jumps from one to the next."""
        now = session.current()
        for firing in itertools.count():
            self._serve()
            timer = self._next_timer(self._modes[-1])
            if timer is None or timer._due > end:
                break
            now.now = max(now.now, timer._due)
            timer.fire()
            if firing > _SAME_INSTANT and now.now >= end:
                now.fault(RuntimeError("timers fire without end and no time passes"))
        now.now = max(now.now, end)
        return bool(self._timers)

    def _serve(self) -> None:
        session.current().check_alive()
        _run_background()
        while self._calls:
            self._calls.popleft()()

    def _wait_for_call(self, seconds: float) -> None:
        """Real time: until another thread wants something here."""
        with self._wake:
            self._wake.wait_for(lambda: bool(self._calls), timeout=seconds)
        self._serve()


def _fires_in(own: str, mode: str) -> bool:
    return own == mode or (own == COMMON and mode in _COMMON_MODES)


def _run_background() -> None:
    """Completion handlers, each on a thread of its own as from a dispatch queue, one by one."""
    queue = session.current().background
    while queue:
        thread = threading.Thread(target=queue.popleft(), daemon=True)
        thread.start()
        thread.join(timeout=60)  # a loaded machine; longer is a deadlock
        if thread.is_alive():
            session.current().fault(RuntimeError("a completion handler does not return"))
