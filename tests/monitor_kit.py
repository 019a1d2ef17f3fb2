"""A monitor of a computer whose answers a test writes, with real workers."""

import pytest
from system.scripted import Scripted
from worker_kit import ATTACH, TIMEOUT

from mpsbar.core.actions import Freed
from mpsbar.monitor import Monitor
from mpsbar.workers.poll import WorkerPoll

TORCH = {"torch": "/v/lib/libtorch_cpu.dylib"}
IDLE = ATTACH + "import time\nwhile True: time.sleep(0.05)\n"


@pytest.fixture
def computer():
    return Scripted(pids={2: "b"}, libraries={2: TORCH})


@pytest.fixture
def monitor(computer, workers, monkeypatch):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(workers.run_dir))
    monitor = Monitor(computer, interval=0.01, may_free=True)
    yield monitor
    monitor.close()


@pytest.fixture
def patient(monkeypatch):
    """A tick waits until every worker has answered: on busy cores half a second is not enough."""
    poll = WorkerPoll.poll
    monkeypatch.setattr(
        WorkerPoll, "poll", lambda self, *clients: poll(self, *clients, seconds=TIMEOUT)
    )


def frees(snapshot):
    return [
        (event.what.pid, event.what.state, event.what.asked_here)
        for event in snapshot.events
        if isinstance(event.what, Freed)
    ]
