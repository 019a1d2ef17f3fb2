"""What a key or a click leads to: asked of the monitor, told in the log when it has ended."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpsbar.apps.report import write_report
from mpsbar.apps.terminal.stage import Stage
from mpsbar.desktop.open import open_file
from mpsbar.model.action import (
    Action,
    CancelProbe,
    CheckUp,
    Connect,
    Connected,
    Copy,
    Free,
    Freed,
    OpenReport,
    ProbeDtypes,
    Stop,
    Stopped,
    Tensors,
    WatchEnd,
)
from mpsbar.model.checkup import Checkup
from mpsbar.model.dtypes import Probe
from mpsbar.model.moment import judge_moment
from mpsbar.model.text import printable
from mpsbar.monitor import Monitor
from mpsbar.views import dialog_words as words
from mpsbar.views import outcome_words
from mpsbar.views.frame import Style
from mpsbar.views.probe import say_headline, say_moment
from mpsbar.views.probe_words import say_end
from mpsbar.views.row import Row
from mpsbar.views.terminal_box import Box
from mpsbar.views.terminal_keys import (
    can_press,
    find_row,
    help_lines,
    help_title,
    say_copied,
    say_making_report,
    say_report,
)

Follow = Callable[["Future[Any]", Callable[[Any], None]], None]


class Deeds:
    """On the main thread; `follow` calls back there when a future has ended."""

    def __init__(
        self, stage: Stage, monitor: Monitor, follow: Follow, copy: Callable[[str], None]
    ) -> None:
        self._stage, self._monitor, self._follow = stage, monitor, follow
        self._to_clipboard = copy
        self._answer: Callable[[int], None] = lambda _: None
        self._opened: str | None = None  # the key of the row whose children the box shows
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="mpsbar-action")  # the report's
        # Every action that a row of the menu can carry here.
        self._doers: dict[type, Callable[[Any], object]] = {
            Free: self._free,
            Stop: self._stop,
            Connect: self._connect,
            Copy: self._copy,
            WatchEnd: stage.watch_end,
            ProbeDtypes: self._probe,
            CancelProbe: lambda _: monitor.cancel_probe(),
            OpenReport: lambda _: self._make_report(),
        }

    def press(self, char: str) -> None:
        chosen = self._stage.chosen
        row = find_row(char, self._stage.menu, chosen.row if chosen else None)
        if row is not None and can_press(row):
            self.do(row)

    def do(self, row: Row) -> None:
        if row.opens is not None:
            self._follow(self._monitor.perform(row.opens), self._show_tensors)
        if row.children:
            self._opened = row.key
            self.refresh_box()
            return
        self._do_all(row.actions)

    def show_menu(self) -> None:
        """All that can be done with the chosen process."""
        chosen = self._stage.chosen
        if chosen is None or not chosen.row.children:
            return
        rows = [row for row in chosen.row.children if can_press(row)]
        marked = [("✓ " if row.is_checked else "") + row.text for row in rows]
        self._ask(
            Box("menu", chosen.cells["NAME"], (), tuple(marked)),
            lambda number: self.do(rows[number]),
        )

    def show_help(self) -> None:
        self._opened = None
        self._stage.open(Box("help", help_title(), tuple(help_lines())))

    def answer(self, number: int) -> None:
        """Of the open box; what it asks next may open another."""
        self._stage.open(None)
        self._answer(number)

    def close_box(self) -> None:
        self._opened = None
        self._stage.open(None)

    def refresh_box(self) -> None:
        """What is counted meanwhile is shown in the open box."""
        if self._opened is None:
            return
        for entry in self._stage.entries:
            for row in entry.row.children:
                if row.key == self._opened:
                    title = f"{entry.cells['NAME']}: {row.text}"
                    lines = tuple(child.text for child in row.children)
                    self._stage.open(Box("text", title, lines))

    def _do_all(self, actions: tuple[Action, ...]) -> None:
        """Many frees, one sum."""
        frees = [action for action in actions if isinstance(action, Free)]
        ended: list[Freed] = []

        def add(outcome: Freed) -> None:
            self._show_freed(outcome)
            ended.append(outcome)
            if len(ended) == len(frees):
                self._stage.note(words.tell_all_freed(ended).title)

        if len(frees) > 1:
            for free in frees:
                self._follow(self._monitor.perform(free), add)
            return
        for action in actions:
            if doer := self._doers.get(type(action)):
                doer(action)

    def _ask(self, box: Box, answer: Callable[[int], None]) -> None:
        self._opened = None
        self._answer = answer
        self._stage.open(box)

    def _ask_first(self, dialog: words.Dialog, deed: Callable[[], None]) -> None:
        """The careful answer is the one that Enter takes."""
        box = Box("ask", dialog.title, tuple(dialog.text.split("\n")), dialog.buttons)
        last = len(dialog.buttons) - 1
        self._ask(replace(box, at=last), lambda number: deed() if number == 0 else None)

    def _copy(self, asked: Copy) -> None:
        self._to_clipboard(asked.text)
        self._stage.note(say_copied(asked.text))

    def _free(self, action: Free) -> None:
        self._follow(self._monitor.perform(action), self._show_freed)

    def _show_freed(self, outcome: Freed) -> None:
        name = self._stage.snapshot.names.get(outcome.pid, outcome.name)
        style: Style = "ok" if outcome.state == "done" else "warning"
        self._stage.note(f"{printable(name)}: {outcome_words.freed(outcome)}", style)

    def _stop(self, action: Stop) -> None:
        def stop() -> None:
            self._follow(self._monitor.perform(action), self._show_stopped)

        self._ask_first(words.ask_stop(action), stop)

    def _show_stopped(self, outcome: Stopped) -> None:
        self._stage.note(f"{printable(outcome.name)}: {outcome_words.stopped(outcome)}")

    def _connect(self, action: Connect) -> None:
        def connect() -> None:
            self._follow(self._monitor.perform(action), self._show_connected)

        self._ask_first(words.ask_connect(action), connect)

    def _show_connected(self, outcome: Connected) -> None:
        self._stage.note(f"{printable(outcome.python)}: {outcome_words.connected(outcome)}")

    def _probe(self, action: ProbeDtypes) -> None:
        """Asks before it disturbs a run; refuses when memory is about to run out."""
        snapshot = self._stage.snapshot

        def probe() -> None:
            self._follow(self._monitor.perform(action), self._show_probed)

        for reason in judge_moment(snapshot)[:1]:
            name = snapshot.names.get(reason.pid) if reason.pid is not None else None
            if reason.level == "critical":
                self._stage.note(say_moment(reason, name), "warning")
            else:
                self._ask_first(words.ask_probe(say_moment(reason, name), False), probe)
            return
        probe()

    def _show_probed(self, probe: Probe) -> None:
        text = say_headline(probe) if probe.cells else say_end(probe)
        self._stage.note(f"{words.tell_probed(text).title}: {text}")

    def _make_report(self) -> None:
        self._stage.note(say_making_report())
        self._follow(self._monitor.perform(CheckUp()), self._write_report)

    def _write_report(self, checkup: Checkup) -> None:
        written = self._pool.submit(write_report, self._monitor.latest, checkup)
        self._follow(written, self._show_report)

    def _show_report(self, file: Path) -> None:
        self._stage.note(say_report(str(file), open_file(file)))

    def _show_tensors(self, outcome: Tensors) -> None:
        """They are in the box by now, unless it was closed."""
        if outcome.state != "done":
            self._stage.note(f"{outcome.pid}: {outcome_words.tensors_refused(outcome)}", "warning")
