"""A recorder and its snapshots, on a clock of the test."""

import subprocess
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from history_kit import GB, MACHINE, make_private_worker

from mpsbar.core.alerts import Alerts
from mpsbar.core.events import EventLog
from mpsbar.core.findings import Health
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.snapshot import Snapshot
from mpsbar.history import recorder
from mpsbar.history.reader import open_to_read, read_period
from mpsbar.history.recorder import Recorder

START = 1_794_000_000.0


class Play:
    """A recorder and its snapshots, on a clock of the test."""

    def __init__(self, file, cap=recorder.CAP, wall=START):
        self.file, self.cap, self.wall, self.own = file, cap, wall, 1000.0
        self.problems, self.tracker = [], ProcessTracker()
        self.alerts, self.events = Alerts(), EventLog()
        self.recorder = Recorder(self.problems.append, file, cap, lambda: self.own)

    def tick(self, *workers, seconds=2.0, freed=(), health=None, processes=()):
        self.wall += seconds
        self.own += seconds
        known = tuple(worker.process for worker in workers)
        seen = Snapshot(self.wall, workers, MACHINE, (*known, *processes), health or Health())
        ended = self.tracker.update(seen)
        for what in (*freed, *self.alerts.consider(seen, self.tracker)):
            self.events.add(self.wall, what)
        seen = replace(seen, events=self.events.recent)
        before = self.recorder.record(seen, self.tracker.present.values(), ended)
        self.tracker.remember(before, self.wall)
        return before

    def ticks(self, number, *workers, **more):
        for _ in range(number):
            self.tick(*workers, **more)

    def count(self, table):
        with closing(open_to_read(self.file)) as connection:
            return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def read(self, points=10**9, hours=24 * 8):
        return read_period(self.wall - hours * 3600, self.wall + 1, points, self.file)


def train(held=6 * GB, cached=3 * GB, pid=4711, name="train.py"):
    return make_private_worker(pid, name, held, cached)


@contextmanager
def mounted(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(("mode=700", *options)), "tmpfs", str(folder)],
        capture_output=True,
    )
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here (root only)")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
