"""mpsbar status: one reading as text and JSON, and one after the other."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest
from cli.command_kit import shown_on_a_terminal
from schema_kit import read_json
from worker_kit import ATTACH, ROOT, TIMEOUT

from mpsbar.history.reader import read_period

EMPTY = ROOT / "tests/readings/nothing-running.recording.json"


def test_status_of_nobody(mpsbar):
    """On a recorded machine: here others may be running something."""
    done = mpsbar("status", MPSBAR_REPLAY=str(EMPTY))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "Apple M1 · 8.0 GB · pressure normal · RECORDED\n"
        "No problems\n"
        "You have no PyTorch or MLX processes running. To start one: mpsbar run python train.py\n"
    )
    assert mpsbar(MPSBAR_REPLAY=str(EMPTY)).stdout == done.stdout


def test_a_recorded_machine_says_so_and_a_bad_one_is_a_clear_line(mpsbar, tmp_path):
    shown = mpsbar("status", "--wide", MPSBAR_REPLAY="m1-8gb").stdout
    assert "RECORDED" in shown.splitlines()[0]
    assert re.search(
        r"^5000101  finetune.py +mps +2.0 GB +1.1 GB +800 MB +1.7 GB +2.2 GB +2\d%",
        shown,
        re.MULTILINE,
    )
    bad = mpsbar("status", MPSBAR_REPLAY="nope")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == "mpsbar: there is no recording nope; choose one of m1-8gb, m1max-64gb\n"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_a_terminal_of_another_time_is_no_reason_to_fail(mpsbar, encoding):
    done = mpsbar("status", MPSBAR_REPLAY="m1-8gb", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "finetune.py" in done.stdout


def test_watching_in_a_pipe_is_one_json_line_after_the_other(workers):
    command = [sys.executable, "-m", "mpsbar", "status", "--json", "--watch", "0.05"]
    env = workers.env(MPSBAR_REPLAY="m1-8gb")
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        lines = [read_json("status", process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(TIMEOUT) == 0
    assert [line["schema"] for line in lines] == [1, 1, 1]
    assert lines[0]["time"] < lines[1]["time"] < lines[2]["time"]
    assert all(json.loads(line) for line in rest.splitlines())


def test_watching_on_a_terminal_redraws_in_place_and_in_colour(workers):
    arguments = ("status", "--watch", "0.05")
    redrawn = "\x1b[H\x1b[2J"
    until = (redrawn.encode(), 3)
    shown = shown_on_a_terminal(workers, *arguments, until=until, MPSBAR_REPLAY="m1-8gb")
    assert shown.count(redrawn) >= 3
    assert "\x1b[1m    PID  NAME" in shown
    assert (
        "\x1b[33mMemory is running low: 7.6 GB of swap in use, 1.3 GB of 8.0 GB available" in shown
    )


@pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_is_left_out_where_it_is_not_wanted(workers, extra):
    env = {"MPSBAR_REPLAY": "m1-8gb"} | extra
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, "-m", "mpsbar", "status"], workers.env(**env))
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(terminal, 65536):
            shown += chunk
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"finetune.py" in shown
    assert b"\x1b" not in shown


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 150])
def test_no_row_is_longer_than_the_window(mpsbar, columns):
    shown = mpsbar("status", MPSBAR_REPLAY="m1max-64gb", COLUMNS=str(columns)).stdout
    table = shown.split("\n\n")[1].splitlines()
    assert len(table) == 5
    assert max(map(len, table)) <= columns
    assert all("train.py" in line or "HELD" in line for line in table[:2])


def test_in_a_pipe_it_fits_80_columns_and_wide_shows_all(mpsbar):
    table = mpsbar("status", MPSBAR_REPLAY="m1max-64gb").stdout.split("\n\n")[1]
    assert max(map(len, table.splitlines())) <= 80
    wide = mpsbar("status", "--wide", MPSBAR_REPLAY="m1max-64gb").stdout.split("\n\n")[1]
    assert "PEAK" in wide
    assert "PEAK" not in table


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_was_watched_is_recorded_however_it_is_ended(workers, number):
    worker = workers.start(ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    for which in ([], [str(worker.pid)]):
        history = workers.folder / "data" / "history.sqlite"
        command = [sys.executable, "-m", "mpsbar", "status", *which, "--watch", "0.1"]
        with subprocess.Popen(
            command, env=workers.env(), stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as process:
            for _ in range(25):  # lines: several readings
                assert process.stdout.readline()
            process.send_signal(number)
            process.stdout.read()
            assert process.wait(TIMEOUT) == 0
        period = read_period(time.time() - 3600, time.time() + 60, 100, history)
        # Another process of this machine is recorded too once it was seen for half a minute.
        assert [run.pid for run in period.runs if run.is_connected] == [worker.pid]
        history.unlink()
