"""What surrounds mpsbar fails: the disk is full or read-only, the clock is set, while a real monitor ticks.

Disks are small file systems in memory, in a mount namespace of their own; clocks are libfaketime's.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from worker_kit import ROOT, Worker, Workers

from trust.figures import SkippedError
from trust.places import workers_here

# Ticks as it is told to, and shows each snapshot in every way that uses a clock.
MONITOR = """
import json, select, sys, time
sys.path[:0] = {paths!r}
from read_timeouts_kit import be_patient
from mpsbar.fleet.exporter import Exporter
from mpsbar.history import recorder
from mpsbar.history.recorder import Recorder
from mpsbar.history.report.build import make_report
from mpsbar.monitor import Monitor
from mpsbar.ui.menu import build_menu
from mpsbar.ui.text.startup import say_history
from mpsbar.ui.status_table import render_status
from mpsbar.ui.text.status_json import build_status
recorder.FLUSH_SECONDS = recorder._RETRY_SECONDS = 0.0
recorder._REPORT_SECONDS = 0.0
# libfaketime refuses the call of the system by which Python sleeps.
time.sleep = lambda seconds: select.select([], [], [], seconds)
be_patient()  # a late reading is a problem, but not of this attack
said = []
monitor = Monitor(recorder=Recorder(lambda reason: said.append(say_history(reason))))
exporter = Exporter(monitor)
for line in sys.stdin:
    said.clear()
    for _ in range(int(line)):
        snapshot = monitor.tick()
        exporter.follow()
        shown = [render_status(snapshot, False), json.dumps(build_status(snapshot)), str(build_menu(snapshot))]
        shown.append(make_report(snapshot, None))
        assert all(shown) and exporter.render()
    written = monitor._recorder._rows.is_empty
    print(json.dumps([time.time(), bool(written), [p.text for p in snapshot.problems], said[:1]]), flush=True)
monitor.close()
print("closed", flush=True)
"""


class ToldMonitor:
    """A monitor in a process of its own that ticks when it is told to."""

    def __init__(self, workers: Workers, wrapper: list[str], **env: str) -> None:
        code = MONITOR.format(paths=[str(ROOT), str(ROOT / "tests")])
        self.worker: Worker = workers.run(
            [*wrapper, sys.executable, "-c", code], popen={"stdin": subprocess.PIPE}, **env
        )

    def tick(self, times: int) -> tuple[float, bool, list[str], list[str]]:
        """The clock there, whether all rows are written, the problems, what was said."""
        self._pipe.write(f"{times}\n".encode())
        clock, written, problems, said = json.loads(self.worker.wait_line("["))
        return clock, written, problems, said

    @property
    def _pipe(self):  # type: ignore[no-untyped-def]
        assert self.worker.process.stdin is not None
        return self.worker.process.stdin

    def close(self) -> None:
        self._pipe.close()
        self.worker.process.stdin = None  # `end` would flush it
        self.worker.wait_line("closed")


def need_namespace() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise SkippedError("only root can make a file system")


def full_disk(times: int) -> tuple[int, int]:
    """The disk of the history fills up and empties again: ticks go on, it is said, nothing is damaged."""
    need_namespace()
    survived = 0
    with workers_here() as workers:
        workers.start("import mpsbar, time; assert mpsbar.attach()\nwhile True: time.sleep(0.01)\n")
        data = workers.folder / "small"
        data.mkdir()
        # The mount is seen through the process that made it.
        mount = 'mount -t tmpfs -o size=1m,mode=700 none "$1" && shift && exec "$@"'
        monitor = ToldMonitor(
            workers, ["unshare", "--mount", "sh", "-c", mount, "sh", str(data)], MPSBAR_DATA_DIR=str(data)
        )  # fmt: skip
        inside = Path(f"/proc/{monitor.worker.pid}/root") / data.relative_to("/")
        _, first, *_ = monitor.tick(3)
        for _ in range(times):
            fill(inside / "filler")
            _, full_written, _, said = monitor.tick(60)
            (inside / "filler").unlink(missing_ok=True)
            _, written, problems, _ = monitor.tick(3)
            is_said = full_written or any("couldn't write history" in line for line in said)
            survived += bool(first and is_said and written and not problems)
        fill(inside / "filler")
        monitor.tick(3)
        (inside / "filler").unlink(missing_ok=True)
        copy = workers.folder / "copy"
        shutil.copytree(inside, copy)
        with closing(sqlite3.connect(copy / "history.sqlite")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            assert connection.execute("SELECT count(*) FROM machine").fetchone()[0] > 0
        monitor.close()
    return times, survived


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


READ_ONLY_COMMANDS = (
    ["status"], ["status", "--format", "{held}"], ["enable", "--list"], ["enable", "--jupyter"],
    ["disable", "--jupyter"], ["login", "on"], ["login", "on", "--export"], ["login", "status"], ["report"],
    ["doctor", "--self-test"], ["config", "print"], ["config", "validate"], ["free", "--all"],
    ["status", "--watch", "1"],
)  # fmt: skip
READ_ONLY = """
mount -t tmpfs -o mode=700 none "$1" && mkdir -p "$1/.local/share/mpsbar" && cp "$2" "$1/.local/share/mpsbar/"
mount -o remount,ro "$1"; shift 2; exec "$@"
"""


def read_only_home(commands: "tuple[list[str], ...]" = READ_ONLY_COMMANDS) -> tuple[int, int]:
    """Every command with a home that cannot be written: a sentence, never a traceback."""
    need_namespace()
    survived = 0
    with workers_here() as workers:
        home = workers.folder / "home"
        home.mkdir(0o700)
        listed = workers.folder / "enabled.json"
        listed.write_text(json.dumps({"schema": 1, "pythons": [sys.executable]}))
        for arguments in commands:
            wait = ["timeout", "-s", "INT", "25"] if "--watch" in arguments else []
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(home), str(listed), *wait,
                 sys.executable, "-m", "mpsbar", *arguments],
                env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT),
                     "MPSBAR_RUN_DIR": str(workers.run_dir)},
                capture_output=True, text=True, cwd="/", timeout=300, check=False,
            )  # fmt: skip
            printed = done.stdout + done.stderr
            is_good = not any(bad in printed for bad in ("Traceback", "internal error", "Errno"))
            survived += is_good and done.returncode in (0, 1, 124, 130)
            if not is_good:
                print(f"  {arguments}: {printed[-300:]!r}")
    return len(commands), survived


CLOCKS = ("+1d", "-1d", "+0", "@1970-01-01 00:00:01", "@2038-01-19 03:14:09", "+30d", "@2200-01-01 00:00:00", "-40d", "+0")  # fmt: skip


def set_clocks(rounds: int) -> tuple[int, int]:
    """The clock is set by a day, by years, to the epoch and back: no tick fails, no row is lost."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        raise SkippedError("libfaketime is not installed (apt-get install faketime)")
    tried = survived = 0
    with workers_here() as workers:
        worker = workers.start(
            "import mpsbar, time; assert mpsbar.attach()\nwhile True: time.sleep(0.01)\n"
        )
        clock, data = workers.folder / "clock", workers.folder / "data"
        clock.write_text("+0")
        monitor = ToldMonitor(
            workers, [], MPSBAR_DATA_DIR=str(data), LD_PRELOAD=str(library), FAKETIME_NO_CACHE="1",
            FAKETIME_TIMESTAMP_FILE=str(clock), FAKETIME_DONT_FAKE_MONOTONIC="1",
        )  # fmt: skip
        usual, *_ = monitor.tick(3)
        rows = count_rows(data)
        for setting in CLOCKS * rounds:
            clock.write_text(setting)
            now, written, problems, said = monitor.tick(4)
            is_set = setting == "+0" or abs(now - usual) > 3600
            before, rows = rows, count_rows(data)
            is_good = written and not problems and not said and rows >= before and is_set
            tried, survived = tried + 1, survived + is_good
            if not is_good:
                print(f"  {setting}: {now} {written} {problems} {said} rows {before} {rows}")
        assert worker.ask("hello")["pid"] == worker.pid
        monitor.close()
    return tried, survived


def count_rows(data: Path) -> int:
    with closing(sqlite3.connect(data / "history.sqlite")) as connection:
        return int(connection.execute("SELECT count(*) FROM machine").fetchone()[0])
