"""Serves the last snapshot as a page for Prometheus, to several threads at once, or as a file."""

import contextlib
import platform
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder, generate_latest

from mpsbar import __version__
from mpsbar.core.errors import UserError, reason_of
from mpsbar.core.snapshot import Snapshot
from mpsbar.fleet.metrics import Totals, build_metrics, gauge
from mpsbar.language import _
from mpsbar.system.files import replace_file

# Readings are old after this many missed ticks. By the settings ticks are at most an hour apart.
_MISSED_TICKS = 5
_SHORTEST_AGE = 60.0


class TickingMonitor(Protocol):
    """The part of a Monitor that is read here."""

    latest: Snapshot
    ticks: int
    tick_seconds: float | None

    @property
    def pause(self) -> float: ...


class NoReadingError(Exception):
    """There is no reading yet, or it is too old. The text is a sentence for people."""


class Exporter:
    """A collector of prometheus_client over `monitor.latest`; call `follow` at least every tick."""

    def __init__(self, monitor: TickingMonitor) -> None:
        self._monitor = monitor
        self._totals = Totals()
        # Earlier events are not counted: a service that is turned off and on again would make
        # Prometheus raise an alert for the same end twice.
        self._totals.skip(monitor.latest)
        self._lock = threading.Lock()
        self._ticks = 0
        self._ticked = time.monotonic()
        self.scrapes = 0
        self.scrape_seconds: float | None = None
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def follow(self) -> None:
        """Counts new events, also between two scrapes. Any thread may call it."""
        with self._lock:
            if self._monitor.ticks != self._ticks:
                self._ticks = self._monitor.ticks
                self._ticked = time.monotonic()
                self._totals.add(self._monitor.latest)

    def render(self) -> bytes:
        """Returns the metrics in the text format of files."""
        self._check()
        return generate_latest(self.registry)

    def render_for(self, accept: str) -> tuple[bytes, str]:
        """Returns the page and its content type, in a format that the scraper accepts."""
        self._check()
        began = time.perf_counter()
        encode, content_type = choose_encoder(accept)
        page = encode(self.registry)
        self.scrapes += 1
        self.scrape_seconds = time.perf_counter() - began
        return page, content_type

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics; prometheus_client calls it for each page."""
        build = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("mpsbar_build", "This mpsbar.", value=build)
        yield from build_metrics(self._monitor.latest, self._totals)
        yield from self._own_health()

    def _own_health(self) -> Iterator[Metric]:
        for name, meaning, count in (
            ("mpsbar_ticks", "Readings of this computer.", self._monitor.ticks),
            ("mpsbar_scrapes", "Pages served.", self.scrapes),
            ("mpsbar_cpu_seconds", "CPU time of this mpsbar.", time.process_time()),
        ):
            yield CounterMetricFamily(name, meaning, value=count)
        for name, meaning, number in (
            ("tick_duration_seconds", "Time the last reading took.", self._monitor.tick_seconds),
            (
                "last_tick_timestamp_seconds",
                "When this computer was last read, in seconds since the epoch.",
                self._monitor.latest.time,
            ),
            ("scrape_duration_seconds", "Time the last page took.", self.scrape_seconds),
        ):
            if number is not None:
                yield gauge(f"mpsbar_{name}", meaning, (), [((), number)])

    def _check(self) -> None:
        if not self._monitor.ticks:
            raise NoReadingError("mpsbar has not read this computer yet.")
        oldest = max(_SHORTEST_AGE, _MISSED_TICKS * self._monitor.pause)
        age = time.monotonic() - self._ticked
        if self._ticks and age > oldest:
            raise NoReadingError(f"mpsbar last read this computer {age:.0f} seconds ago.")


class TextFile:
    """Writes the metrics to a file for node_exporter's textfile collector, without a port of ours.

    The file is replaced as a whole, and removed at the end, or its last values would be served
    forever.
    """

    def __init__(self, exporter: Exporter, path: str) -> None:
        self._exporter, self._path = exporter, Path(path)
        if self._path.suffix != ".prom":
            raise UserError(
                _("{file} must end in .prom: node_exporter reads no other files").format(file=path)
            )
        if not self._path.parent.is_dir():
            raise UserError(_("{path} is not a folder").format(path=self._path.parent))

    def write(self) -> None:
        """Raises UserError if the file can't be written."""
        try:
            page = self._exporter.render()
        except NoReadingError:
            return
        try:
            # Readable by all: node_exporter runs as another user. A link is replaced, not followed.
            replace_file(self._path, page, mode=0o644, follow_links=False)
        except OSError as problem:
            reason = reason_of(problem)
            raise UserError(
                _("couldn't write {file}: {problem}").format(file=self._path, problem=reason)
            ) from None

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
