"""What recording adds to a tick with 8 workers that compute (goal: at most 10 %), and a week as a page (goal: 2 s, 2 MB)."""

import os
import statistics
import time
from pathlib import Path
from typing import Any

import history_kit

from bench.child import running
from mpsbar.history.recorder import Recorder
from mpsbar.history.report import build
from mpsbar.monitor import Monitor
from mpsbar.system import paths

WORKERS = 8
TICKS = 150  # at the real pace, five minutes: several flushes, and one tidying
# What it holds changes from look to look, so that there is something to write.
WORKER = (
    "import torch, mpsbar, time; mpsbar.attach()\n"
    "while True:\n a = torch.ones(1000 + int(time.time()) % 100 * 1000)\n time.sleep(0.3)"
)


class _Timed(Recorder):
    spent: list[float]

    def record(self, *arguments: Any) -> Any:
        start = time.process_time()
        try:
            return super().record(*arguments)
        finally:
            self.spent.append(time.process_time() - start)


def run(folder: Path) -> None:
    os.environ["MPSBAR_DATA_DIR"] = str(folder / "data")
    with running(WORKER, WORKERS):
        _print_recording()
    _print_report()


def _print_recording() -> None:
    recorder = _Timed(print)
    recorder.spent = []
    monitor = Monitor(recorder=recorder)
    for _ in range(20):  # everyone has been asked, and the file is open
        monitor.tick()
        time.sleep(1.0)
    recorder.spent.clear()
    whole = []
    for _ in range(TICKS):
        start = time.process_time()
        monitor.tick()
        whole.append(time.process_time() - start)
        time.sleep(2.0)
    monitor.close()
    spent, ticks = statistics.mean(recorder.spent), statistics.mean(whole)
    print(
        f"  of a tick's {ticks * 1e3:.2f} ms of CPU recording takes {spent * 1e3:.3f} ms"
        f" (median {statistics.median(recorder.spent) * 1e3:.3f}, most {max(recorder.spent) * 1e3:.1f}):"
        f" {spent / (ticks - spent):.1%} of the rest (goal: 10 %);"
        f" {paths.history_file().stat().st_size / 1e3:.0f} kB on disk"
    )


def _print_report() -> None:
    file = paths.history_file()
    for path in file.parent.glob("history.sqlite*"):
        path.unlink()
    history_kit.fill(file)
    build.time = type("Clock", (), {"time": staticmethod(lambda: history_kit.NOW)})  # type: ignore[assignment]
    spent = []
    for _ in range(5):
        start = time.perf_counter()
        text = build.make_report(
            history_kit.make_report_snapshot(), history_kit.make_doctor_report()
        )
        spent.append(time.perf_counter() - start)
    build.time = time
    print(
        f"  a week of 20 workers ({file.stat().st_size / 1e6:.1f} MB) as a page:"
        f" {statistics.median(spent):.2f} s (goal: 2), {len(text.encode()) / 1e6:.2f} MB (goal: 2)"
    )
