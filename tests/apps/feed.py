"""A monitor whose snapshots a test writes: the boundary between the app and all that it shows."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from mpsbar.model.snapshot import Snapshot


class Feed:
    """What was asked stands in `asked`, with the future that the test lets end."""

    def __init__(self, latest: Snapshot) -> None:
        self.latest = latest
        self.interval = 2.0
        self.asked: list[tuple[Any, Future[Any]]] = []
        self.looking = 0
        self.log: list[str] = []
        self._on_tick: Any = None

    def start(self, on_tick: Any) -> None:
        self._on_tick = on_tick

    def show(self, snapshot: Snapshot) -> None:
        """As after a tick; the app hears of it on its main thread a moment later."""
        self.latest = snapshot
        self._on_tick(snapshot)

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
