"""A monitor whose snapshots a test writes: the boundary between the app and all that it shows."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mpsbar.core.actions import SetAutoFree, WatchEnd
from mpsbar.core.alerts import Alerts
from mpsbar.core.events import EventLog
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import Trends


class FakeMonitor:
    """What was asked stands in `asked`, with the future that the test lets end."""

    def __init__(self, latest: Snapshot) -> None:
        self.alerts, self._tracker, self._events = Alerts(), ProcessTracker(), EventLog()
        self._trends = Trends()
        self.latest = self._follow(latest)
        self.interval = 2.0
        self.asked: list[tuple[Any, Future[Any]]] = []
        self.chosen: list[SetAutoFree] = []
        self.settings: Settings | None = None  # the last that were applied
        self.looking = 0
        self.log: list[str] = []
        self._on_tick: Any = None

    def start(self, on_tick: Any) -> None:
        self._on_tick = on_tick

    def show(self, snapshot: Snapshot) -> None:
        """As after a tick; the app hears of it on its main thread a moment later."""
        self.latest = self._follow(snapshot)
        self._on_tick(self.latest)

    def happen(self, what: Any) -> None:
        """Stands on the next snapshot."""
        self._events.add(self.latest.time, what)

    def _follow(self, snapshot: Snapshot) -> Snapshot:
        """What happened since the last one, as the monitor finds it."""
        for tracked, ended in self._tracker.update(snapshot):
            if tracked.is_connected:
                self._events.add(snapshot.time, ended)
        for alert in self.alerts.consider(snapshot, self._tracker):
            self._events.add(snapshot.time, alert)
        if snapshot.machine is not None:  # a test may show one that cannot be drawn
            self._trends.add(snapshot)
        return replace(
            snapshot, events=self._events.recent, process_series=self._trends.copy_processes(),
            machine_series=self._trends.copy_machine(),
        )  # fmt: skip

    def apply(self, settings: Settings) -> None:
        self.interval = settings.interval
        self.settings = settings
        self.alerts.apply(settings)

    def watch_end(self, request: WatchEnd) -> None:
        self.alerts.watch_end(request)

    def set_auto_free(self, action: SetAutoFree) -> None:
        self.chosen.append(action)

    def perform(self, action: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.asked.append((action, future))
        return future

    @contextmanager
    def watched(self) -> Iterator[None]:
        self.looking += 1
        yield
        self.looking -= 1

    def cancel_probe(self) -> None:
        self.log.append("cancel_probe")

    def rest(self) -> None:
        self.log.append("rest")

    def wake(self) -> None:
        self.log.append("wake")

    def close(self) -> None:
        self.log.append("close")
