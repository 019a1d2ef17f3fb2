"""What a click leads to: what takes time happens off the main thread, its end is told on it."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import rumps
from PyObjCTools import AppHelper

from mpsbar import __version__
from mpsbar.apps.menubar import dialogs
from mpsbar.apps.menubar.background import Background
from mpsbar.apps.report import write_report
from mpsbar.apps.versions import read_versions
from mpsbar.desktop import clipboard, command_line, login
from mpsbar.desktop.open import ACTIVITY_MONITOR, INSTRUMENTS, open_application, open_file
from mpsbar.model.action import (
    Action,
    CancelProbe,
    CheckUp,
    Choose,
    Connect,
    Connected,
    Copy,
    Free,
    Freed,
    InstallCommand,
    OpenReport,
    ProbeDtypes,
    Quit,
    ShowAbout,
    ShowProfiling,
    StartAtLogin,
    Stop,
    Stopped,
    WatchEnd,
)
from mpsbar.model.alerts import Alerts
from mpsbar.model.checkup import Checkup
from mpsbar.model.complaint import Complaint
from mpsbar.model.desk import Desk
from mpsbar.model.dtypes import Probe
from mpsbar.model.moment import judge_moment
from mpsbar.model.settings import change
from mpsbar.monitor import Monitor
from mpsbar.storage.paths import log_file
from mpsbar.storage.results import find_result
from mpsbar.storage.settings import write_setting
from mpsbar.views import dialog_words as words
from mpsbar.views import tool_words
from mpsbar.views.diagnostics import render_diagnostics
from mpsbar.views.probe import say_headline, say_moment
from mpsbar.views.probe_words import say_end
from mpsbar.views.profiling import SNIPPET
from mpsbar.views.row import Row
from mpsbar.views.settings_words import login as say_login

_log = logging.getLogger("mpsbar")


class Clicks:
    """On the main thread. `desk` is what the menu is built with; `tell` shows a notice."""

    def __init__(
        self,
        monitor: Monitor,
        desk: Desk,
        alerts: Alerts,
        tell: Callable[[words.Notice, str], None],
        changed: Callable[[], None],
    ) -> None:
        self.desk = desk
        self._monitor, self._alerts = monitor, alerts
        self._tell, self._changed = tell, changed
        self.background = Background(self._fail)
        self._doers: dict[type, Callable[[Any], object]] = {
            Free: self._free,
            Stop: self._stop,
            Connect: self._connect,
            CheckUp: self._check_up,
            ProbeDtypes: self._probe,
            CancelProbe: lambda _: self._monitor.cancel_probe(),
            Copy: lambda asked: self._copy(asked.text),
            WatchEnd: self._watch_end,
            Choose: self._choose,
            StartAtLogin: self._start_at_login,
            ShowProfiling: lambda _: self._show_profiling(),
            OpenReport: lambda _: self._make_report(),
            InstallCommand: lambda _: self._install_command(),
            ShowAbout: lambda _: _show(words.about(__version__)),
            Quit: lambda _: rumps.quit_application(),
        }

    def click(self, row: Row) -> None:
        """What fails is told; it must not end the app."""
        _log.info("clicked %s", row.key)
        try:
            self._do(row.actions)
        except Exception as error:  # noqa: BLE001 - logged and told
            _log.exception("%s failed", row.key)
            self._fail(row.text.rstrip("…"), error)

    def open(self, row: Row) -> None:
        """A submenu comes into view."""
        asked = row.opens
        # Not twice: a worker that hangs would fill the pool, and Stop… would wait behind it.
        if asked is not None and asked not in self._monitor.latest.pending:
            self._monitor.perform(asked)

    def read_login(self) -> None:
        self.background.run("Start at Login", login.read_login, self._show_login)

    def _do(self, actions: tuple[Action, ...]) -> None:
        frees = [action for action in actions if isinstance(action, Free)]
        if len(frees) > 1:
            self._free_all(frees)
            return
        for action in actions:
            self._doers[type(action)](action)

    def _fail(self, what: str, error: Exception) -> None:
        self._tell(words.tell_failure(what, error, str(log_file())), f"failed-{what}")

    def _free(self, action: Free) -> None:
        show = partial(self._show_freed, self._monitor.latest.names)
        self.background.follow("Free Cache", self._monitor.perform(action), show)

    def _show_freed(self, names: dict[int, str], outcome: Freed) -> None:
        self._tell(words.tell_freed(_named(outcome, names)), f"freed-{outcome.pid}")

    def _free_all(self, actions: list[Free]) -> None:
        """Many workers, one notice."""
        names, ended = self._monitor.latest.names, list[Freed]()

        def show(outcome: Freed) -> None:
            ended.append(_named(outcome, names))
            if len(ended) == len(actions):
                self._tell(words.tell_all_freed(ended), "freed-all")

        for action in actions:
            self.background.follow("Free All Caches", self._monitor.perform(action), show)

    def _stop(self, action: Stop) -> None:
        if _show(words.ask_stop(action)) == 0:
            self.background.follow("Stop", self._monitor.perform(action), self._show_stopped)

    def _show_stopped(self, outcome: Stopped) -> None:
        _log.info("stop %s: %s", outcome.pid, outcome.state)
        if outcome.state != "asked":  # who was asked shows it in its row
            self._tell(words.tell_stopped(outcome), f"stopped-{outcome.pid}")

    def _connect(self, action: Connect) -> None:
        if _show(words.ask_connect(action)) == 0:
            self.background.follow("Connect", self._monitor.perform(action), self._show_connected)

    def _show_connected(self, outcome: Connected) -> None:
        _log.info("connect %s: %s", outcome.python, outcome.state)
        told = words.tell_connected(outcome)
        dialogs.tell(told.title, told.text, told.buttons[0])

    def _probe(self, action: ProbeDtypes) -> None:
        """It must not disturb a run; when memory is about to run out it waits for better days."""
        latest = self._monitor.latest
        for reason in judge_moment(latest)[:1]:
            name = latest.names.get(reason.pid) if reason.pid is not None else None
            is_refused = reason.level == "critical"
            if _show(words.ask_probe(say_moment(reason, name), is_refused)) != 0 or is_refused:
                return
        self.background.follow("Run dtype Probe", self._monitor.perform(action), self._show_probed)

    def _show_probed(self, probe: Probe) -> None:
        if probe.ended != "cancelled":
            text = say_headline(probe) if probe.cells else say_end(probe)
            self._tell(words.tell_probed(text), "probe")

    def _check_up(self, action: CheckUp) -> None:
        future = self._monitor.perform(action)
        self.background.follow("Copy Diagnostics", future, self._copy_diagnostics)

    def _copy_diagnostics(self, checkup: Checkup) -> None:
        latest = self._monitor.latest
        home, probe = str(Path.home()), find_result(latest)
        self._copy(render_diagnostics(read_versions(), latest, checkup, home, probe))
        self._tell(words.tell_copied_diagnostics(), "diagnostics")

    def _make_report(self) -> None:
        """Looking at each Python's torch takes seconds: the row tells of it."""
        if self.desk.is_reporting:
            return
        self._set(replace(self.desk, is_reporting=True))
        future = self._monitor.perform(CheckUp())
        self.background.run("Open Report", partial(self._write_report, future), self._show_report)

    def _write_report(self, checkup: "Future[Checkup]") -> Path:
        """Off the main thread."""
        try:
            return write_report(self._monitor.latest, checkup.result())
        finally:
            AppHelper.callAfter(self._end_report)

    def _end_report(self) -> None:
        self._set(replace(self.desk, is_reporting=False))

    def _show_report(self, file: Path) -> None:
        if not open_file(file, "darwin"):
            raise Complaint(f"no program opened {file}")

    def _copy(self, text: str) -> None:
        if not clipboard.copy(text, "darwin"):
            raise Complaint("the clipboard did not take it")

    def _watch_end(self, asked: WatchEnd) -> None:
        who = (asked.pid, asked.started)
        if asked.on:
            self._alerts.watch_end(asked.pid, asked.started, asked.name)
            watched = self.desk.watched | {who}
        else:
            self._alerts.unwatch(asked.pid, asked.started)
            watched = self.desk.watched - {who}
        self._set(replace(self.desk, watched=watched))

    def forget_end(self, pid: int, started: float | None) -> None:
        """It was told; a check mark would pass to the next process with its pid."""
        self._set(replace(self.desk, watched=self.desk.watched - {(pid, started)}))

    def _choose(self, choice: Choose) -> None:
        settings = change(self.desk.settings, choice.key, choice.value)
        self._set(replace(self.desk, settings=settings))
        write = partial(write_setting, choice.key, choice.value)
        self.background.write("Saving the settings", write)

    def _start_at_login(self, asked: StartAtLogin) -> None:
        if self.desk.login == "needs_approval":
            self.background.run("Login settings", login.open_login_settings, lambda _: None)
            return
        switch = login.turn_on if asked.on else login.turn_off
        self.background.run("Start at Login", switch, self._show_switched)

    def _show_switched(self, status: login.LoginStatus) -> None:
        self._show_login(status)
        if status.state == "needs_approval":
            self.background.run("Login settings", login.open_login_settings, lambda _: None)
        elif status.why is not None:
            sentence = say_login(status.state, status.where, status.why, status.detail)
            self._tell(words.Notice("mpsbar", sentence), "login")

    def _show_login(self, status: login.LoginStatus) -> None:
        self._set(replace(self.desk, login=status.state))  # "unavailable": the click tells why

    def _show_profiling(self) -> None:
        chosen = _show(words.ask_profiling())
        if chosen == 0:
            self._copy(SNIPPET)
        for number, name, application in (
            (1, "Instruments", INSTRUMENTS),
            (2, "Activity Monitor", ACTIVITY_MONITOR),
        ):
            if chosen == number and not open_application(application, "darwin"):
                _show(words.no_application(name))

    def _install_command(self) -> None:
        tool, home = command_line.find_tool(), str(Path.home())
        folders = command_line.suggest_folders(home)
        chosen = _show(tool_words.ask_folder(folders, home))
        folder = folders[chosen] if chosen < len(folders) else None
        if chosen == len(folders):
            folder = dialogs.choose_folder(home, *tool_words.choose_folder())
        if tool is not None and folder is not None:
            link = partial(command_line.install, tool, folder)
            self.background.run("Install Command Line Tool", link, self._show_link_soon)

    def _show_link_soon(self, link: command_line.Link) -> None:
        """Not over a menu that was opened meanwhile: its tracking takes the alert's clicks."""
        dialogs.when_free(self._show_link, link)

    def _show_link(self, link: command_line.Link) -> None:
        _log.info("command line tool: %s %s", link.state, link.path)
        told = tool_words.tell_link(link.state, link.path, link.on_path, link.by_hand, link.detail)
        if _show(told) == 0 and len(told.buttons) > 1:
            self._copy(link.by_hand)

    def _set(self, desk: Desk) -> None:
        if desk != self.desk:
            self.desk = desk
            self._changed()


def _named(outcome: Freed, names: dict[int, str]) -> Freed:
    """As it was called at the click: who did not answer did not tell its name either."""
    return replace(outcome, name=names.get(outcome.pid, outcome.name))


def _show(dialog: words.Dialog) -> int:
    return dialogs.ask(dialog.title, dialog.text, dialog.buttons)
