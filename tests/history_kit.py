"""A history as a week of work would leave it, and a report of it."""

import math
import random
from contextlib import closing

from samples import make_process, make_training

from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Health, Reason
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.rules import DoctorReport
from mpsbar.history.database import open_database
from mpsbar.history.recorder import CAP

GB, MB = 1 << 30, 1 << 20
NOW = 1_794_000_000.0  # Friday, 6 November 2026, 21:20 UTC
WEEK = 7 * 86400
HOSTILE = "<img src=x onerror=alert(1)>\x1b]0;owned\x07\u202egnp.exe'\"&"
MACHINE = Machine(
    os="macOS 26.3", model="Mac15,9", chip="Apple M3 Max", memory_total=36 * GB,
    memory_available=9 * GB, swap_used=512 * MB, pressure="normal",
    gpu=Gpu("Apple M3 Max", 30, 43.0, int(9.8 * GB), 27 * GB),
)  # fmt: skip


def fill(file, runs=20, now=NOW, seconds=WEEK, seed=1, cap=CAP):
    """Full rate in the last hour, minutes before it; each run with a start of its own."""
    chance = random.Random(seed)
    with closing(open_database(file, cap)) as connection:
        connection.execute("BEGIN")
        _fill_machine(connection, now, seconds, chance)
        for number in range(1, runs + 1):
            _fill_run(connection, number, now, seconds, chance)
        connection.execute("COMMIT")


def _times(now, first, last):
    """Of both tables, in milliseconds."""
    hour = now - 3600
    coarse = range(int(first // 60 * 60), int(min(last, hour)), 60)
    fine = range(int(max(first, hour)), int(last), 2)
    return [("minutes", time * 1000) for time in coarse] + [("samples", t * 1000) for t in fine]


def _fill_machine(connection, now, seconds, chance):
    for table, time in _times(now, now - seconds, now):
        wave = math.sin(time / 7e6) * 6 * GB + chance.random() * GB
        gpu = int(9 * GB + wave)
        row = (time, int(18 * GB + wave), 200 * MB, gpu, 43, 36 * GB, 27 * GB)
        name = "machine" if table == "samples" else "machine_minutes"
        connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _fill_run(connection, number, now, seconds, chance):
    name = HOSTILE if number == 3 else f"train_{number}.py"
    first = now - seconds + chance.random() * seconds * 0.5 * (number > 2)
    last = now if number % 3 else now - chance.random() * 1000
    scale = chance.random() * 6 * GB + 200 * MB
    rows = {"minutes": [], "samples": []}
    for table, time in _times(now, first, last):
        allocated = int(
            scale * (1 + 0.3 * math.sin(time / 3e6 + number)) + chance.random() * 20 * MB
        )
        cached = int(scale * 0.4 * abs(math.sin(time / 1.1e6)))
        held, footprint = allocated + cached, int(allocated * 1.4 + GB)
        speed = (29 + number + time // 60_000 % 3) * 100_000  # 3.1 a second
        rows[table].append((time, number, allocated, cached, held, footprint, speed))
    for table, values in rows.items():
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    peak = max(row[4] for values in rows.values() for row in values)
    ended = None if last == now else int(last * 1000)
    connection.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, 'mps', 1, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
        (number, 4000 + number, first, name, int(first * 1000), int(last * 1000), ended,
         None if ended is None else "unknown", peak, peak + GB, allocated, cached, held, footprint,
         speed),
    )  # fmt: skip
    connection.execute(
        "INSERT INTO events (time, kind, code, level, pid, name, size, phase, details)"
        " VALUES (?, 'free', 'done', 'ok', ?, ?, ?, '', NULL)",
        (int((now - 1800 + number * 60) * 1000), 4000 + number, name, int(1.2 * GB)),
    )
    if number % 5 == 0:
        connection.execute(
            "INSERT INTO events (time, kind, code, level, pid, name, size, phase, details)"
            " VALUES (?, 'alert', 'leak', 'warning', ?, ?, NULL, 'raised', ?)",
            (int((now - 900 + number * 9) * 1000), 4000 + number, name,
             '{"growth": 1400000000, "seconds": 300}'),
        )  # fmt: skip


def make_private_worker(pid, name, held=6 * GB, cached=3 * GB, **fields):
    """A training run whose command and settings must not be seen everywhere."""
    process = make_process(
        pid, name, started=NOW - 5000, footprint=held + GB, gpu_percent=40.0,
        python="/Users/jane/venv/bin/python", settings={"PYTORCH_ENABLE_MPS_FALLBACK": "1"},
    )  # fmt: skip
    given = {
        "peak": held + GB, "budget": 27 * GB, "process": process, "methods": frozenset(["free"]),
        "command": ("python", "/Users/jane/secret/train.py", "--key=hunter2"),
    } | fields  # fmt: skip
    return make_training(pid, name, held, cached, **given)


def make_report_snapshot():
    workers = (
        make_private_worker(4001, "train_1.py"), make_private_worker(4003, HOSTILE, GB, GB // 4, state="busy", age=3.2),
        make_private_worker(4005, "notebook kernel", 2 * GB, 0),
    )  # fmt: skip
    serve = Process(
        4720, 7.0, "serve.py", ("torch",), footprint=2 * GB, python="/Users/jane/venv/bin/python"
    )
    app = Process(4721, 8.0, "Draw <b>Things</b>", ("mlx",), footprint=5 * GB)
    known = tuple(worker.process for worker in workers)
    reason = Reason("leak", "warning", {"growth": 1400 * MB, "seconds": 300}, 4001)
    return Snapshot(
        NOW, workers, MACHINE, (*known, serve, app), Health("warning", (reason,)),
        ended=(EndedProcess(4100, 1.0, "old_run.py", NOW - 180, True, int(11.2 * GB), GB),),
    )  # fmt: skip


def make_doctor_report():
    return DoctorReport(MACHINE)
