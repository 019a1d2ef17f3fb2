"""What a click or a key does. Menu bar and terminal differ only in how they ask and notify."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from mpsbar.core.actions import (
    Action,
    AskLimit,
    CancelFree,
    ChangeSetting,
    Command,
    Connect,
    Connected,
    Copy,
    Free,
    Freed,
    FreeWhenPossible,
    InspectPythons,
    Limit,
    Limited,
    ProbeDtypes,
    SetAutoFree,
    StartAtLogin,
    Stop,
    Stopped,
    Tensors,
    WatchEnd,
)
from mpsbar.core.addresses import ExportState
from mpsbar.core.dtype_results import Probe
from mpsbar.core.errors import UserError
from mpsbar.core.health import find_budget
from mpsbar.core.limits import parse_limit
from mpsbar.core.machine import Delivery, DeliveryCheck
from mpsbar.core.settings import AUTO_FREE_KEYS, change
from mpsbar.doctor.rules import DoctorReport
from mpsbar.dtypes.preconditions import find_objections
from mpsbar.dtypes.summary import render_brief, say_headline
from mpsbar.dtypes.text import say_end
from mpsbar.language import _
from mpsbar.monitor import Monitor
from mpsbar.system import paths
from mpsbar.system.files import read_stamp
from mpsbar.system.settings_file import read_settings, write_setting
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.text import dialogs
from mpsbar.ui.text.login import login_title, say_login

if TYPE_CHECKING:
    from mpsbar.desktop.login import LoginStatus

_T = TypeVar("_T")
_log = logging.getLogger("mpsbar")


class FrontEnd(Protocol):
    """How one front end asks and notifies; called on its main thread, except for `call_on_main`."""

    def ask(self, question: dialogs.Dialog, answer: Callable[[int], None]) -> None:
        """Show a question; `answer` is called with the number of the button, unless dismissed."""

    def ask_text(self, question: dialogs.Dialog, text: str, answer: Callable[[str], None]) -> None:
        """Let the person change a text; `answer` is called with it, unless dismissed."""

    def notify(self, notice: dialogs.Notice, key: str) -> None:
        """Announce something; a notice replaces an older one with the same key."""

    def show(self, text: dialogs.Dialog) -> None:
        """Show the result of something that took a while, without getting in the way."""

    def notify_failure(self, what: str, error: Exception) -> None:
        """Show that something failed; it is logged already."""

    def copy(self, text: str) -> None:
        """Put it on the clipboard; raises UserError where that is not possible."""

    def open(self, file: Path) -> bool:
        """Open a file with the default program for it; False: there is none."""

    def changed(self) -> None:
        """`Controller.ui_state` has changed: draw it."""

    def call_on_main(self, function: Callable[[], None]) -> None:
        """Call it soon on the main thread. From any thread."""


class Controller:
    """Used on the main thread. What takes time runs on others; its result is handled on this one.

    `own_actions` are those that only this front end has.
    """

    def __init__(
        self,
        monitor: Monitor,
        front_end: FrontEnd,
        ui_state: UiState,
        own_actions: Mapping[Action, Callable[["Controller"], None]] | None = None,
    ) -> None:
        self.ui_state = ui_state
        self.front_end = front_end
        self._monitor = monitor
        self._own_actions = own_actions or {}
        self._settings_file = paths.settings_file()  # kept, because it is read at every tick
        self._settings_stamp = read_stamp(self._settings_file)
        # `mpsbar top` does not wait for threads of this name when it ends.
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="mpsbar-action")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="mpsbar-write")
        self._is_closed = False

    # --- what a front end calls

    def click(self, row: Row) -> None:
        """Do what a row of the menu stands for. A failure is logged and shown, never raised."""
        _log.info("clicked %s", row.key)
        try:
            frees = [action for action in row.actions if isinstance(action, Free)]
            if len(frees) > 1:
                self._free_all(frees)
                return
            for action in row.actions:
                self.perform(action)
        except Exception as error:  # noqa: BLE001 - logged and shown
            self.fail(row.text.rstrip("…"), error)

    def open_children(self, row: Row) -> None:
        """Count the tensors that a submenu shows, when it comes into view."""
        action = row.opens
        # Not while it is pending: each request to a worker that hangs would occupy a thread.
        if action is None or action in self._monitor.latest.pending:
            return
        name = self._monitor.latest.names.get(action.pid, str(action.pid))
        self._when_done(
            row.text, self._monitor.perform(action), partial(self._notify_tensors, name)
        )

    def perform(self, action: Action) -> None:  # noqa: C901, PLR0912 - a flat table of actions
        match action:
            case Free() | FreeWhenPossible() | CancelFree():
                self._free(action)
            case Limit():
                self._limit(action)
            case AskLimit():
                self._ask_limit(action)
            case Command.ASK_PYTHON:
                self._ask_python()
            case SetAutoFree():
                self._monitor.set_auto_free(action)
            case Stop():
                self._stop(action)
            case Connect():
                self._connect(action)
            case ProbeDtypes():
                self._probe(action)
            case Command.CANCEL_PROBE:
                self._monitor.cancel_probe()
            case InspectPythons():
                future = self._monitor.perform(action)
                self._when_done(_("Copy Diagnostics"), future, self._copy_diagnostics)
            case Command.OPEN_REPORT:
                self._open_report()
            case Copy(text):
                self.front_end.copy(text)
                self.front_end.notify(dialogs.copied_notice(text), "copied")
            case WatchEnd():
                self._watch_end(action)
            case ChangeSetting():
                self._change_setting(action)
            case StartAtLogin():
                self._start_at_login(action)
            case _:
                self._own_actions[action](self)

    def follow_settings(self) -> None:
        """Take over what was chosen about automatic frees in another mpsbar; after each tick.

        Only the one that holds the lock frees, and it may not be the one that was asked.
        """
        stamp = read_stamp(self._settings_file)
        if stamp == self._settings_stamp:
            return
        self._settings_stamp = stamp
        loaded = read_settings()
        if loaded.is_file_usable:  # else it is being edited
            shared = {
                key: getattr(loaded.settings, key)
                for key in AUTO_FREE_KEYS
                if loaded.origins.get(key) != "environment"
            }
            self._set(replace(self.ui_state, settings=replace(self.ui_state.settings, **shared)))

    def read_login(self) -> None:
        """Ask the system whether mpsbar opens at login: the person may have changed it there."""
        from mpsbar.desktop.login import read_login

        self.run(login_title(), read_login, self._show_login)

    def read_enabled(self) -> None:
        """Read which Pythons are connected, from mpsbar's own list: none of them is looked at."""
        from mpsbar.workers.environments import read_enabled

        def show(enabled: list[str]) -> None:
            if self.ui_state.enabled is None:
                self._set(replace(self.ui_state, enabled=tuple(enabled)))

        self.run(_("Finding Pythons"), read_enabled, show)

    def read_pythons(self) -> None:
        """Look for Pythons with a framework, and which are connected, for the menu.

        Not at start: in Documents, Desktop or Downloads macOS may ask the person for permission.
        """

        def find() -> tuple[tuple[str, ...], tuple[str, ...]]:
            from mpsbar.doctor.pythons import find_usable
            from mpsbar.workers.environments import read_enabled

            enabled = tuple(p for p in read_enabled() if Path(p).exists())
            return tuple(find_usable(self._monitor.latest, enabled)), enabled

        self.run(_("Finding Pythons"), find, self._show_pythons)

    def _show_pythons(self, found: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
        pythons, enabled = found
        self._set(replace(self.ui_state, pythons=pythons, enabled=enabled))

    def note_delivery(self, delivery: Delivery) -> None:
        """Notes what became of the last alert; `mpsbar doctor` reads it from a file."""
        if delivery != self.ui_state.delivery:
            from mpsbar.desktop.notifications import write_delivery

            check = DeliveryCheck(time.time(), delivery)
            self.write(_("Saving the alert check"), partial(write_delivery, check))
            self._set(replace(self.ui_state, delivery=delivery))

    def note_export(self, state: ExportState) -> None:
        """Takes over whether metrics are served, and if not, why."""
        self._set(replace(self.ui_state, export=state))

    def forget_end(self, pid: int, started: float | None) -> None:
        """Clear the check mark of an ended process, or the next one with its pid would have it."""
        self._set(replace(self.ui_state, watched=self.ui_state.watched - {(pid, started)}))

    def notify_freed(self, outcome: Freed) -> None:
        self.front_end.notify(dialogs.freed_notice(outcome), f"freed-{outcome.pid}")

    def run(self, what: str, work: Callable[[], _T], then: Callable[[_T], None]) -> None:
        """Do `work` off the main thread, then call `then` with its result on the main thread."""
        self._when_done(what, self._pool.submit(work), then)

    def write(self, what: str, work: Callable[[], None]) -> None:
        """Write a file off the main thread, one at a time: of two clicks the later wins."""
        self._when_done(what, self._writer.submit(work), lambda _: None)

    def close(self) -> None:
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=True)  # a setting chosen just before Quit is saved

    # --- workers

    def _free(self, action: Free | FreeWhenPossible | CancelFree) -> None:
        self._when_done(_("Free Cache"), self._monitor.perform(action), self.notify_freed)

    def _free_all(self, actions: list[Free]) -> None:
        """Free many workers, with one notice when all have answered."""
        outcomes = list[Freed]()

        def notify(outcome: Freed) -> None:
            outcomes.append(outcome)
            detail = dialogs.freed_notice(outcome, is_one_of_many=True)
            self.front_end.notify(detail, f"freed-{outcome.pid}")
            if len(outcomes) == len(actions):
                self.front_end.notify(dialogs.all_freed_notice(outcomes), "freed-all")

        for action in actions:
            self._when_done(_("Free All Caches"), self._monitor.perform(action), notify)

    def _limit(self, action: Limit) -> None:
        def notify(outcome: Limited) -> None:
            self.front_end.notify(dialogs.limited_notice(outcome), f"limited-{outcome.pid}")

        self._when_done(_("Limit Memory"), self._monitor.perform(action), notify)

    def _ask_limit(self, action: AskLimit) -> None:
        """Explain what a limit means before it is set; without a size, let the person type it."""
        snapshot = self._monitor.latest
        worker = next((w for w in snapshot.workers if w.pid == action.pid), None)
        if worker is None:
            self._limit(
                Limit(action.pid, action.limit, action.started)
            )  # the outcome says that it has ended
            return
        budget = find_budget(snapshot, (worker,))
        if action.limit is not None:
            limit = Limit(action.pid, action.limit, action.started)
            self._confirm(dialogs.ask_limit(worker, action.limit), lambda: self._limit(limit))
            return

        def on_answer(text: str) -> None:
            try:
                self._limit(Limit(action.pid, parse_limit(text, budget), action.started))
            except UserError as complaint:
                question = dialogs.ask_own_limit(worker, budget, str(complaint))
                self.front_end.ask_text(question, text, on_answer)

        usual = dialogs.suggest_limit(worker, budget)
        self.front_end.ask_text(dialogs.ask_own_limit(worker, budget), usual, on_answer)

    def _notify_tensors(self, name: str, outcome: Tensors) -> None:
        if outcome.state != "done":
            notice = dialogs.tensors_refused_notice(name, outcome)
            self.front_end.notify(notice, f"tensors-{outcome.pid}")

    def _stop(self, action: Stop) -> None:
        def stop() -> None:
            self._when_done(_("Stop"), self._monitor.perform(action), self._notify_stopped)

        self._confirm(dialogs.ask_stop(action), stop)

    def _notify_stopped(self, outcome: Stopped) -> None:
        _log.info("stop %s: %s", outcome.pid, outcome.state)
        self.front_end.notify(dialogs.stopped_notice(outcome), f"stopped-{outcome.pid}")

    def _connect(self, action: Connect) -> None:
        self._confirm(dialogs.ask_connect(action), lambda: self._connect_python(action))

    def _connect_python(self, action: Connect) -> None:
        self._when_done(_("Connect"), self._monitor.perform(action), self._show_connected)

    def _show_connected(self, outcome: Connected) -> None:
        _log.info("connect %s: %s", outcome.python, outcome.state)
        self.front_end.show(dialogs.connected_dialog(outcome))
        self.read_pythons()

    def _ask_python(self, text: str = "", complaint: str = "") -> None:
        def on_answer(typed: str) -> None:
            python = Path(typed.strip()).expanduser()
            if python.is_absolute() and python.is_file():
                self._connect_python(Connect(str(python)))
            else:
                self._ask_python(typed, dialogs.say_no_python(typed))

        self.front_end.ask_text(dialogs.ask_python(complaint), text, on_answer)

    def _watch_end(self, action: WatchEnd) -> None:
        self._monitor.watch_end(action)
        process = {(action.pid, action.started)}
        watched = self.ui_state.watched | process if action.on else self.ui_state.watched - process
        self._set(replace(self.ui_state, watched=watched))

    # --- dtype probe, diagnostics, report

    def _probe(self, action: ProbeDtypes) -> None:
        """Ask before a run is disturbed; refuse when memory is about to run out."""

        def probe() -> None:
            self._when_done(
                _("Run dtype Probe"), self._monitor.perform(action), self._notify_probed
            )

        objections = find_objections(self._monitor.latest)
        if not objections:
            probe()
        elif objections[0].is_refusal:
            self.front_end.ask(dialogs.refuse_probe(objections[0].text), lambda _: None)
        else:
            self._confirm(dialogs.ask_probe(objections[0].text), probe)

    def _notify_probed(self, probe: Probe) -> None:
        text = say_headline(probe) if probe.cells else say_end(probe)
        self.front_end.notify(dialogs.probe_notice(text, probe.ended == "cancelled"), "probe")

    def _copy_diagnostics(self, doctor_report: DoctorReport) -> None:
        from mpsbar.doctor.diagnostics import read_versions, render_diagnostics
        from mpsbar.dtypes.results import find_result

        latest = self._monitor.latest
        home, dtypes = str(Path.home()), render_brief(find_result(latest))
        text = render_diagnostics(read_versions(), latest, doctor_report, home, dtypes)
        self.front_end.copy(text)
        self.front_end.notify(dialogs.copied_diagnostics_notice(), "diagnostics")

    def _open_report(self) -> None:
        """Check torch in every Python, which takes seconds, then write and open the report."""
        if self.ui_state.is_reporting:
            return
        doctor_report = self._monitor.perform(InspectPythons())
        self._set(replace(self.ui_state, is_reporting=True))
        self.front_end.notify(dialogs.making_report_notice(), "report")
        self.run(_("Open Report"), partial(self._write_report, doctor_report), self._show_report)

    def _write_report(self, doctor_report: "Future[DoctorReport]") -> Path:
        """Writes the report and returns its file; runs on a thread beside the main one."""
        from mpsbar.end_reader import read_all_ends
        from mpsbar.history.report.build import write_report  # 9 MB that few need

        try:
            latest = self._monitor.latest
            return write_report(latest, doctor_report.result(), ends=read_all_ends(latest.time))
        finally:
            self.front_end.call_on_main(self._end_report)

    def _end_report(self) -> None:
        self._set(replace(self.ui_state, is_reporting=False))

    def _show_report(self, file: Path) -> None:
        notice = dialogs.report_notice(str(file), self.front_end.open(file))
        self.front_end.notify(notice, "report")

    # --- settings

    def _change_setting(self, action: ChangeSetting) -> None:
        settings = change(self.ui_state.settings, action.key, action.value)
        self._set(replace(self.ui_state, settings=settings))
        self.write(_("Saving the settings"), partial(write_setting, action.key, action.value))

    def _start_at_login(self, action: StartAtLogin) -> None:
        from mpsbar.desktop import login

        if self.ui_state.login == "needs_approval":
            self._open_login_settings()
        else:
            switch = login.turn_on if action.on else login.turn_off
            self.run(login_title(), switch, self._show_switched)

    def _show_switched(self, status: "LoginStatus") -> None:
        self._show_login(status)
        if status.state == "needs_approval":
            self._open_login_settings()
        elif status.why is not None:
            text = say_login(status.state, status.where, status.why, status.detail)
            self.front_end.notify(dialogs.Notice("mpsbar", text), "login")

    def _show_login(self, status: "LoginStatus") -> None:
        self._set(
            replace(self.ui_state, login=status.state)
        )  # where it is unavailable, a click says why

    def _open_login_settings(self) -> None:
        from mpsbar.desktop.login import open_login_settings

        self.run(_("Opening Login Items"), open_login_settings, lambda _: None)

    # --- inside

    def _set(self, ui_state: UiState) -> None:
        if ui_state != self.ui_state:
            self.ui_state = ui_state
            self.front_end.changed()

    def _confirm(self, question: dialogs.Dialog, do: Callable[[], None]) -> None:
        """Ask the person; the first button does it, the others change nothing."""

        def on_answer(button: int) -> None:
            if button == 0:
                do()

        self.front_end.ask(question, on_answer)

    def _when_done(self, what: str, future: "Future[_T]", then: Callable[[_T], None]) -> None:
        """Call `then` with the result on the main thread, once there is one."""

        def end() -> None:
            try:
                then(future.result())
            except Exception as error:  # noqa: BLE001 - logged and shown
                self.fail(what, error)

        def call_end(_future: "Future[_T]") -> None:
            if future.cancelled():
                return
            if not self._is_closed:
                self.front_end.call_on_main(end)
            elif error := future.exception():  # after Quit it can only be logged
                _log.error("%s failed", what, exc_info=error)

        future.add_done_callback(call_end)

    def fail(self, what: str, error: Exception) -> None:
        """Log and show that something failed."""
        _log.error("%s failed", what, exc_info=error)
        self.front_end.notify_failure(what, error)
