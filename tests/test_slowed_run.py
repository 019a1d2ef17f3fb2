"""A real loop that really becomes slower: read by its agent, judged by a real monitor, told as an alert."""

import sys

import pytest
from worker_kit import ATTACH, need_module, wait_for

from mpsbar.core import slow_down
from mpsbar.core.events import Alert
from mpsbar.monitor import Monitor
from mpsbar.ui.text.alerts import say_alert_in_a_line

pytestmark = pytest.mark.starts_processes
# What takes minutes in earnest takes seconds here. The loop keeps its pace by the clock: one that was held up on
# a busy machine catches up, and its speed stays what it was. Once it is slow it does not: then no moment is fast,
# and whatever holds it up makes it slower still.
READINGS = {
    "SPACING": 0.5,
    "WARM_UP": 4,
    "MIN_STEADY": 12,
    "RECENT": 12,
    "RECOVERED_READINGS": 6,
    "SCATTER": 0.0,
}
LOOP = """
from mpsbar.agent.progress import rates
rates.WINDOW_SECONDS, rates.SPACING_SECONDS, rates.LATE_SECONDS = 2.0, 0.05, 1.0
import os, time, tqdm
due, is_slow = time.monotonic(), False
for _ in tqdm.tqdm(range(1_000_000), desc="Epoch 1", mininterval=0.01, miniters=1):
    is_slow = is_slow or os.path.exists("slower")
    due += 0.05
    time.sleep(0.25 if is_slow else max(0.0, due - time.monotonic()))
"""


def test_a_loop_that_is_slowed_down_is_told(workers, monkeypatch):
    need_module("tqdm")
    for name, value in READINGS.items():
        monkeypatch.setattr(slow_down, name, value)
    script = workers.folder / "train.py"
    script.write_text("import os; os.chdir(os.path.dirname(__file__))\n" + ATTACH + LOOP)
    worker = workers.run([sys.executable, str(script)]).wait_attached()
    monitor, told = Monitor(), []

    def tick():
        told.extend(
            event.what
            for event in monitor.tick().events
            if isinstance(event.what, Alert)
            and event.what.pid == worker.pid
            and event.what not in told
        )

    def has_steady_speed():
        tick()
        run = monitor._trends.speeds._runs.get(worker.pid)
        readings = sum(len(phase) for phase in run.phases.values()) if run else 0
        return readings > slow_down.WARM_UP + slow_down.MIN_STEADY + slow_down.RECENT

    try:
        wait_for(has_steady_speed, "a steady speed")
        (workers.folder / "slower").touch()

        def is_told():
            tick()
            return any(alert.code == "slowed" for alert in told)

        wait_for(is_told, "the alert")
        alert = next(alert for alert in told if alert.code == "slowed")
        values = alert.reason.values
        assert values["now"] < values["before"] / 2
        assert say_alert_in_a_line(alert).find("train.py slowed from ") >= 0
        (workers.folder / "slower").unlink()
    finally:
        monitor.close()
