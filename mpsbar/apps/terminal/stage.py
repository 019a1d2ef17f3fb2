"""What the terminal knows beside the snapshot: order, choice, filter, log. No textual in it."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from mpsbar.model.action import WatchEnd
from mpsbar.model.alerts import Alert, Alerts
from mpsbar.model.desk import Desk
from mpsbar.model.history import History
from mpsbar.model.settings import Settings
from mpsbar.model.snapshot import Snapshot
from mpsbar.views.alert_words import say_alert
from mpsbar.views.frame import Style
from mpsbar.views.menu import build_menu
from mpsbar.views.row import Menu
from mpsbar.views.terminal import Note, Scene, View, table_rows
from mpsbar.views.terminal_box import Box
from mpsbar.views.terminal_order import arrange
from mpsbar.views.terminal_rows import Entry, build_entries, charged

_EVERY_ROW = 10_000  # a terminal scrolls
_LOG_LINES = 200
_FILTER_LENGTH = 60


class Stage:
    """On the main thread alone. `scene` is what there is to draw."""

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        self.desk = Desk(is_app=True, settings=settings, most=_EVERY_ROW)
        self.view = View()
        self.snapshot = snapshot
        self._taken: Snapshot | None = None
        self.bells = 0  # for those whose end was asked to be told
        self._history = History()
        causes = settings.alert_causes if settings.alerts else ()
        self._alerts = Alerts(causes, settings.cool_down)
        self._met: set[tuple[int, float | None]] = set()
        self._log: deque[Note] = deque(maxlen=_LOG_LINES)
        self._everyone: tuple[Entry, ...] = ()
        self.entries: tuple[Entry, ...] = ()
        self.menu: Menu = build_menu(snapshot, self.desk)

    def take(self, snapshot: Snapshot) -> None:
        """A new look; the same one again tells nothing new."""
        if snapshot is not self._taken:
            self.snapshot = self._taken = snapshot
            self._history.add(snapshot)
            self._meet(snapshot)
            for alert in self._alerts.consider(snapshot):
                self._tell(alert)
        self.arrange()

    def arrange(self) -> None:
        """After a look, or after someone chose another order, filter or row."""
        self.menu = build_menu(self.snapshot, self.desk)
        rows = build_entries(self.menu.sections[1], self.snapshot)
        shown = self.view.shown
        before = [entry.key for entry in self._everyone]
        self._everyone = arrange(rows, shown.sort, shown.descending, before)
        wanted = self.view.filter
        places = {entry.key: place for place, entry in enumerate(self.entries)}
        self.entries = tuple(entry for entry in self._everyone if entry.matches(wanted))
        self._keep_choice(places.get(shown.chosen, 0))

    def scene(self) -> Scene:
        chosen = self.chosen
        track = None if chosen is None or chosen.pid is None else self._history.of(chosen.pid)
        return Scene(
            self.snapshot, self.menu, self.entries, len(self._everyone), track,
            tuple(self._log), self.view,
        )  # fmt: skip

    @property
    def chosen(self) -> Entry | None:
        wanted = self.view.shown.chosen
        return next((entry for entry in self.entries if entry.key == wanted), None)

    def note(self, text: str, style: Style = "") -> None:
        self._log.append(Note(time.strftime("%H:%M:%S"), text, style))

    # --- what a person does

    def choose(self, key: str) -> None:
        self._show(chosen=key)

    def move(self, by: int) -> None:
        keys = [entry.key for entry in self.entries]
        if not keys:
            return
        at = keys.index(self.view.shown.chosen) if self.view.shown.chosen in keys else 0
        self.choose(keys[min(max(at + by, 0), len(keys) - 1)])

    def scroll(self, width: int, height: int) -> None:
        """So far that the chosen row is seen."""
        rows = table_rows(self.scene(), width, height)
        keys = [entry.key for entry in self.entries]
        at = keys.index(self.view.shown.chosen) if self.view.shown.chosen in keys else 0
        offset = min(max(self.view.shown.offset, at - rows + 1), at)
        self._show(offset=max(min(offset, len(keys) - rows), 0))

    def sort_by(self, name: str) -> None:
        """The same column once more turns it round."""
        shown = self.view.shown
        is_word = name in ("NAME", "DEVICE", "NOTE", "PID")
        turned = not shown.descending if name == shown.sort else not is_word
        self._show(sort=name, descending=turned)
        self._forget_order()

    def sort_next(self) -> None:
        """Through the columns, and back to the order of the menu."""
        names = ("", "HELD", "CACHED", charged(self.snapshot), "NAME")
        now = self.view.shown.sort
        name = names[(names.index(now) + 1) % len(names)] if now in names else ""
        self._show(sort=name, descending=name != "NAME")
        self._forget_order()

    def turn(self) -> None:
        self._show(descending=not self.view.shown.descending)
        self._forget_order()

    def filter(self, text: str, is_typing: bool) -> None:
        self.view = replace(self.view, filter=text[:_FILTER_LENGTH], is_typing=is_typing)
        self.arrange()

    def open(self, box: Box | None) -> None:
        self.view = replace(self.view, box=box)

    def watch_end(self, asked: WatchEnd) -> None:
        who = frozenset({(asked.pid, asked.started)})
        watched = self.desk.watched | who if asked.on else self.desk.watched - who
        self.desk = replace(self.desk, watched=watched)
        self.arrange()

    # --- inside

    def _show(self, **changes: object) -> None:
        shown = replace(self.view.shown, **changes)  # type: ignore[arg-type]
        self.view = replace(self.view, shown=shown)

    def _forget_order(self) -> None:
        """What was asked anew is sorted anew, to the last byte."""
        self._everyone = ()
        self.arrange()

    def _keep_choice(self, place: int) -> None:
        """The same process; when it has gone, the one in its place."""
        keys = [entry.key for entry in self.entries]
        if keys and self.view.shown.chosen not in keys:
            self._show(chosen=keys[min(place, len(keys) - 1)])

    def _meet(self, snapshot: Snapshot) -> None:
        """The end of every connected worker is worth a line."""
        for worker in snapshot.workers:
            started = None if worker.process is None else worker.process.started
            if started is not None and (worker.pid, started) not in self._met:
                self._met.add((worker.pid, started))
                self._alerts.watch_end(worker.pid, started, worker.name)

    def _tell(self, alert: Alert) -> None:
        title, text = say_alert(alert)
        styles: dict[str, Style] = {"warning": "warning", "critical": "critical"}
        self.note(f"{title}: {text}", styles.get(alert.level, ""))
        who = (alert.pid or 0, alert.started)
        if alert.kind == "ended":
            self._met.discard(who)
            self.bells += who in self.desk.watched


def complain(stage: Stage, complaints: Sequence[str]) -> None:
    for complaint in complaints:
        stage.note(complaint, "warning")
