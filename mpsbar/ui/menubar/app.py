"""The menu bar app: when it draws, notifies, sleeps and wakes, and how it quits."""

import logging
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import rumps
from AppKit import NSApplication, NSApplicationActivationPolicyAccessory
from PyObjCTools import AppHelper

from mpsbar.core.actions import Freed
from mpsbar.core.addresses import DEFAULT_ADDRESS, ExportState
from mpsbar.core.events import Alert
from mpsbar.core.machine import IconCheck
from mpsbar.core.settings import OFF, LoadedSettings
from mpsbar.core.snapshot import Snapshot
from mpsbar.desktop.command_line_link import find_tool
from mpsbar.desktop.icon_visibility import check_icon, write_icon
from mpsbar.desktop.notifications import Notifier
from mpsbar.language import _
from mpsbar.monitor import Monitor
from mpsbar.system.native_operations import read_native_operations
from mpsbar.system.single_instance import Claim
from mpsbar.ui.bar import build_bar
from mpsbar.ui.controller import Controller
from mpsbar.ui.menu import SECTIONS, build_menu
from mpsbar.ui.menubar.app_commands import APP_COMMANDS
from mpsbar.ui.menubar.front_end import MenuBarFrontEnd, give_focus_back
from mpsbar.ui.menubar.icon import MenuBarIcon
from mpsbar.ui.menubar.menu_items import MenuLevel, listen
from mpsbar.ui.menubar.run_loop import Timer, avoid_nap, guarded, is_tracking
from mpsbar.ui.rows import UiState
from mpsbar.ui.text.alerts import say_alert
from mpsbar.ui.text.dialogs import complaints_notice, running_notice

OPEN_SECONDS = 0.5  # between two updates of an open menu
CLOSED_SECONDS = 5.0  # the bar follows each tick; this is for what comes without one
AWAKE_TICKS = 12  # after so many without a wake event the computer did not sleep
ICON_SECONDS = 3.0  # after the start: the bar has settled
FOCUS_SECONDS = 0.2  # between two checks whether macOS has activated us
FOCUS_TRIES = 10
_log = logging.getLogger("mpsbar")


class Metrics(Protocol):
    """The protocol of fleet.service.MetricsService, which serves metrics for Prometheus."""

    state: ExportState

    def serve(self, setting: str) -> None: ...

    def close(self) -> None: ...


class MenuBar:
    """`run` does not return: quitting ends the process."""

    def __init__(
        self,
        monitor: Monitor,
        loaded: LoadedSettings,
        notifier: Notifier,
        claim: Claim,
        metrics: Metrics | None = None,
    ) -> None:
        self._monitor, self._notifier, self._claim = monitor, notifier, claim
        self._metrics = metrics
        self._served = OFF  # the setting that `metrics` was last given
        self._complaints = loaded.complaints
        self._front_end = MenuBarFrontEnd(notifier, self._changed)
        self._controller = Controller(
            monitor,
            self._front_end,
            UiState(
                is_clickable=True,
                settings=loaded.settings,
                home=str(Path.home()),
                read_native=read_native_operations,
                has_tool=find_tool() is not None,
                export=None if metrics is None else ExportState(),
                export_address=_address_of(loaded),
            ),
            APP_COMMANDS,
        )
        self._clock = Timer(guarded(self._tick))
        self._ticks_at_rest: int | None = None
        self._last_event = 0  # the number of the last that was shown
        self._drawn: tuple[Snapshot, UiState] | None = None
        self._watching = ExitStack()
        self._monitor.apply(loaded.settings)
        # A plain rumps.App, no subclass: at each click rumps evaluates every property of it.
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
        controller = self._controller
        self._level = MenuLevel(
            menu, SECTIONS, guarded(controller.click), guarded(controller.open_children)
        )
        self._delegate = listen(
            menu._menu, guarded(self._lay_out), guarded(self._opened), guarded(self._closed)
        )
        self._icon = MenuBarIcon(self._app._nsapp.nsstatusitem)
        self._lay_out()
        self._activity = avoid_nap()
        self._monitor.start(self._on_tick)
        self._clock.set(CLOSED_SECONDS)
        AppHelper.callLater(FOCUS_SECONDS, guarded(self._give_focus_back), FOCUS_TRIES)
        AppHelper.callLater(ICON_SECONDS, guarded(self._check_icon))
        self._apply_settings()
        self._controller.read_login()
        self._controller.read_enabled()
        if self._complaints:
            self._front_end.notify(complaints_notice(self._complaints), "settings")

    def _on_tick(self, _snapshot: Snapshot) -> None:
        """Called on the ticking thread."""
        AppHelper.callAfter(guarded(self._refresh))

    def _give_focus_back(self, tries: int) -> None:
        """Waits for it: macOS activates an app a moment after it was asked to."""
        if not give_focus_back() and tries > 1:
            AppHelper.callLater(FOCUS_SECONDS, guarded(self._give_focus_back), tries - 1)

    def _tick(self) -> None:
        self._note_lost_close()
        self._controller.note_delivery(self._notifier.delivery)
        self._refresh()
        self._check_awake()
        if self._claim.nudged():
            self._front_end.notify(running_notice(), "running")

    def _refresh(self) -> None:
        snapshot = self._monitor.latest
        self._notify(snapshot)
        self._controller.follow_settings()
        before, now = self._drawn, (snapshot, self._controller.ui_state)
        if before is not None and now[1] is before[1] and _is_same(before[0], snapshot):
            return
        self._drawn = now
        self._icon.draw(build_bar(snapshot, self._controller.ui_state.settings.bar))
        if self._front_end.is_menu_open:
            self._level.update(build_menu(*now).sections)

    def _lay_out(self) -> None:
        """Called just before the menu is shown: a closed menu is not drawn."""
        self._note_lost_close()
        if not self._front_end.is_menu_open:
            self._controller.note_delivery(self._notifier.delivery)
            self._level.lay_out(
                build_menu(self._monitor.latest, self._controller.ui_state).sections
            )

    def _note_lost_close(self) -> None:
        """macOS may open a menu without showing it, to look for shortcuts, and not say that it
        closed it. While one is really open, the run loop tracks it."""
        if self._front_end.is_menu_open and not is_tracking():
            self._closed()

    def _opened(self) -> None:
        self._watching.close()  # where a close was lost
        self._front_end.is_menu_open = True
        self._wake()
        self._watching.enter_context(self._monitor.watched())
        self._clock.set(OPEN_SECONDS)
        self._controller.read_login()
        if self._controller.ui_state.pythons is None:
            self._controller.read_pythons()

    def _closed(self) -> None:
        self._front_end.is_menu_open = False
        self._watching.close()
        self._clock.set(CLOSED_SECONDS)

    def _changed(self) -> None:
        """`Controller.ui_state` has changed."""
        self._apply_settings()
        self._refresh()

    def _apply_settings(self) -> None:
        settings = self._controller.ui_state.settings
        self._monitor.apply(settings)
        if self._metrics is not None and settings.export != self._served:
            self._served = settings.export
            self._controller.run(_("Serve Metrics"), self._serve, self._note_served)

    def _serve(self) -> None:
        """Serves metrics as the setting says, or stops; runs on a thread beside the main one.

        Of two clicks in a row, whichever runs last reads the later one.
        """
        if self._metrics is not None:
            self._metrics.serve(self._controller.ui_state.settings.export)

    def _note_served(self, _nothing: None) -> None:
        if self._metrics is not None:
            self._controller.note_export(self._metrics.state)

    def _notify(self, snapshot: Snapshot) -> None:
        for event in snapshot.events_after(self._last_event):
            self._last_event = event.number
            alert = event.what
            if isinstance(alert, Freed) and alert.when_possible and not alert.asked_here:
                self._controller.notify_freed(alert)  # asked for some minutes ago
            if not isinstance(alert, Alert):
                continue
            title, text = say_alert(alert)
            _log.info("alert %s %s: %s: %s", alert.key, alert.kind, title, text)
            self._notifier.notify(title, text, alert.key)
            if alert.kind == "ended" and alert.pid is not None:
                self._controller.forget_end(alert.pid, alert.started)

    def _check_icon(self) -> None:
        """Write down whether the icon is visible, for `mpsbar doctor` when someone sees none."""
        seen = check_icon(self._app._nsapp.nsstatusitem)
        (_log.info if seen.doubt is None else _log.warning)("%s", seen)
        icon = IconCheck(time.time(), seen.doubt, str(seen))
        self._controller.write(_("Saving the icon check"), lambda: write_icon(icon))

    def _sleep(self) -> None:
        self._ticks_at_rest = 0
        self._monitor.rest()

    def _wake(self) -> None:
        self._ticks_at_rest = None
        self._monitor.wake()

    def _check_awake(self) -> None:
        """A sleep that was called off sends no wake event; in a real one no timer fires."""
        if self._ticks_at_rest is None:
            return
        self._ticks_at_rest += 1
        if self._ticks_at_rest > AWAKE_TICKS:
            _log.warning("was told to sleep, and is still awake")
            self._wake()

    def _end(self) -> None:
        self._clock.stop()
        self._controller.close()
        if self._metrics is not None:
            self._metrics.close()
        self._monitor.close()
        self._claim.close()


def _address_of(loaded: LoadedSettings) -> str:
    """Returns the address at which metrics are served when they are turned on again."""
    return loaded.settings.export if loaded.settings.export != OFF else DEFAULT_ADDRESS


def _is_same(before: Snapshot, now: Snapshot) -> bool:
    """Compares all but the time, of which only minutes are shown ("ended 3 min ago").

    Quick, because what has not changed is the same object.
    """
    if before is now:
        return True
    return before.time // 60 == now.time // 60 and replace(before, time=now.time) == now
