"""The app: what is drawn when, sleep and wake, alerts, and its end."""

import logging
import time
from contextlib import ExitStack
from dataclasses import replace

import rumps
from AppKit import NSApplication, NSApplicationActivationPolicyAccessory
from PyObjCTools import AppHelper

from mpsbar.apps.menubar.background import guarded
from mpsbar.apps.menubar.button import Button
from mpsbar.apps.menubar.clicks import Clicks
from mpsbar.apps.menubar.clock import Clock, avoid_nap
from mpsbar.apps.menubar.delegate import listen
from mpsbar.apps.menubar.pool import Level
from mpsbar.desktop.command_line import find_tool
from mpsbar.desktop.notify import Notifier
from mpsbar.desktop.screen import look_at_icon
from mpsbar.model.alerts import Alerts
from mpsbar.model.desk import Desk
from mpsbar.model.icon import IconSight
from mpsbar.model.settings import Loaded
from mpsbar.model.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.storage.icon import write_icon
from mpsbar.storage.instance import Claim
from mpsbar.views import dialog_words as words
from mpsbar.views.alert_words import say_alert
from mpsbar.views.bar import build_bar
from mpsbar.views.menu import SECTIONS, build_menu

OPEN_SECONDS = 0.5  # how soon an open menu follows
CLOSED_SECONDS = 5.0  # the bar follows each tick anyhow; this is for what no tick tells
AWAKE_TICKS = 12  # so many after "it will sleep" and no "it woke": it did not sleep
ICON_SECONDS = 3.0  # the bar has settled: is our icon in it?
_log = logging.getLogger("mpsbar")


class MenuBar:
    """`run` does not return: quitting ends the process."""

    def __init__(self, monitor: Monitor, loaded: Loaded, notifier: Notifier, claim: Claim) -> None:
        self._monitor, self._notifier, self._claim = monitor, notifier, claim
        self._complaints = loaded.complaints
        self._alerts = Alerts()
        self._clicks = Clicks(
            monitor,
            Desk(is_app=True, settings=loaded.settings, has_tool=find_tool() is not None),
            self._alerts,
            self._tell,
            self._changed,
        )
        self._clock = Clock(guarded(self._tick))
        self._is_open = False
        self._ticks_at_rest: int | None = None
        self._seen: Snapshot | None = None
        self._drawn: tuple[Snapshot, Desk] | None = None
        self._watching = ExitStack()
        self._apply_settings()
        # Nothing of ours on it: at each click rumps evaluates every property of this object.
        self._app = rumps.App("mpsbar", quit_button=None)

    def run(self) -> None:
        # Before the status item exists: changed afterwards, macOS has drawn it without height.
        policy = NSApplicationActivationPolicyAccessory
        NSApplication.sharedApplication().setActivationPolicy_(policy)
        rumps.events.before_start.register(guarded(self._start))
        rumps.events.on_sleep.register(guarded(self._sleep))
        rumps.events.on_wake.register(guarded(self._wake))
        rumps.events.before_quit.register(guarded(self._end))
        self._app.run()

    def _start(self) -> None:
        menu = self._app.menu
        self._level = Level(menu, SECTIONS, guarded(self._clicks.click), guarded(self._clicks.open))
        self._delegate = listen(
            menu._menu, guarded(self._lay_out), guarded(self._opened), guarded(self._closed)
        )
        self._button = Button(self._app._nsapp.nsstatusitem)
        self._lay_out()
        self._activity = avoid_nap()
        self._monitor.start(self._on_tick)
        self._clock.set(CLOSED_SECONDS)
        AppHelper.callLater(ICON_SECONDS, guarded(self._look_at_icon))
        self._clicks.read_login()
        if self._complaints:
            self._tell(words.tell_complaints(self._complaints), "settings")

    def _on_tick(self, _snapshot: Snapshot) -> None:
        """On the ticking thread."""
        AppHelper.callAfter(guarded(self._refresh))

    def _tick(self) -> None:
        self._refresh()
        self._doubt_sleep()
        if self._claim.nudged():
            self._tell(words.tell_running(), "running")

    def _refresh(self) -> None:
        snapshot = self._monitor.latest
        if snapshot is not self._seen:
            self._seen = snapshot
            self._consider(snapshot)
        before, now = self._drawn, (snapshot, self._clicks.desk)
        if before is not None and now[1] is before[1] and _is_same(before[0], snapshot):
            return
        self._drawn = now
        self._button.draw(build_bar(snapshot, self._clicks.desk.settings.bar))
        if self._is_open:
            self._level.update(build_menu(*now).sections)

    def _lay_out(self) -> None:
        """Just before the menu is shown; a closed one costs nothing."""
        if not self._is_open:
            self._level.lay_out(build_menu(self._monitor.latest, self._clicks.desk).sections)

    def _opened(self) -> None:
        self._is_open = True
        self._wake()
        self._watching.enter_context(self._monitor.watched())
        self._clock.set(OPEN_SECONDS)
        self._clicks.read_login()

    def _closed(self) -> None:
        self._is_open = False
        self._watching.close()
        self._clock.set(CLOSED_SECONDS)

    def _changed(self) -> None:
        """A setting, or what was asked of us."""
        self._apply_settings()
        self._refresh()

    def _apply_settings(self) -> None:
        settings = self._clicks.desk.settings
        self._monitor.interval = settings.interval
        self._alerts.causes = frozenset(settings.alert_causes if settings.alerts else ())
        self._alerts.cool_down = settings.cool_down

    def _consider(self, snapshot: Snapshot) -> None:
        for alert in self._alerts.consider(snapshot):
            title, text = say_alert(alert)
            _log.info("alert %s %s: %s: %s", alert.key, alert.kind, title, text)
            self._notifier.notify(title, text, alert.key)
            if alert.kind == "ended" and alert.pid is not None:
                self._clicks.forget_end(alert.pid, alert.started)

    def _tell(self, notice: words.Notice, key: str) -> None:
        """Not what a row tells while the menu is open; a failure has no row."""
        _log.info("%s: %s", notice.title, notice.text)
        if not (self._is_open and notice.is_in_row):
            self._notifier.notify(notice.title, notice.text, key)

    def _look_at_icon(self) -> None:
        """The best remote diagnosis when someone says that nothing appears."""
        seen = look_at_icon(self._app._nsapp.nsstatusitem)
        (_log.info if seen.doubt is None else _log.warning)("%s", seen)
        sight = IconSight(time.time(), seen.doubt, str(seen))
        self._clicks.background.write("Keeping the look at the icon", lambda: write_icon(sight))

    def _sleep(self) -> None:
        self._ticks_at_rest = 0
        self._monitor.rest()

    def _wake(self) -> None:
        self._ticks_at_rest = None
        self._monitor.wake()

    def _doubt_sleep(self) -> None:
        """A sleep that was called off has no end to be told; no timer fires in a real one."""
        if self._ticks_at_rest is None:
            return
        self._ticks_at_rest += 1
        if self._ticks_at_rest > AWAKE_TICKS:
            _log.warning("told to sleep, and still awake")
            self._wake()

    def _end(self) -> None:
        self._clock.stop()
        self._clicks.background.close()
        self._monitor.close()
        self._claim.close()


def _is_same(before: Snapshot, now: Snapshot) -> bool:
    """But for the time: what has not changed is the very same object, and quickly compared.

    Of the time only minutes are shown ("ended 3 min ago").
    """
    if before is now:
        return True
    return before.time // 60 == now.time // 60 and replace(before, time=now.time) == now
