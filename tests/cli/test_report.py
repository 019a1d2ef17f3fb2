"""mpsbar report as a person types it, and who records what it shows."""

import json
import os
import signal
import subprocess
from functools import partial

import pytest
from cli.command_kit import NO_ACTIVE_PYTHON, run_command
from fleet_kit import PATIENT_MPSBAR
from report_kit import read_text
from worker_kit import ATTACH, ROOT, TIMEOUT, wait_for

from mpsbar.history.reader import read_period

IDLE = ATTACH + "import time\nwhile True: time.sleep(0.05)\n"
LONG = 3 * TIMEOUT  # it looks at Pythons, each of which imports torch


@pytest.fixture
def env(workers, light_torch):
    """No Python to look at but our own."""
    places = {"PATH": str(workers.folder), "HOME": str(workers.folder), "PYTHONPATH": light_torch}
    return NO_ACTIVE_PYTHON | places


@pytest.fixture
def report(workers, env):
    return partial(run_command, workers, "report", seconds=LONG, **env)


def test_a_real_worker_is_in_the_page(report, workers):
    worker = workers.start(IDLE)
    file = workers.folder / "my report.html"
    done = report("-o", str(file), PYTHONPATH="")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}\n", "")
    text = read_text(file.read_text(encoding="utf-8"))
    assert f"worker0.py | {worker.pid} | " in text
    assert "Nothing has been recorded yet" in text
    assert "mpsbar 0." in text and "torch 2" in text


def test_without_a_name_it_is_among_our_own_files(report, workers):
    done = report(MPSBAR_REPLAY="m1-8gb")
    assert done.stdout == f"{workers.folder / 'data' / 'report.html'}\n"
    text = read_text((workers.folder / "data" / "report.html").read_text(encoding="utf-8"))
    assert "finetune.py" in text and "RECORDED" in text


def test_a_place_that_cannot_be_written_is_one_line(report, workers):
    done = report("-o", str(workers.folder), MPSBAR_REPLAY="m1-8gb")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"mpsbar: couldn't write {workers.folder}: it is not a file\n"


def test_a_missing_folder_is_not_made(report, workers):
    target = workers.folder / "missing" / "page.html"
    done = report("-o", str(target))
    told = f"mpsbar: {target.parent} does not exist: create it first\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert not target.parent.exists()


def test_nothing_to_open_it_with(report, workers):
    done = report("--open", MPSBAR_REPLAY="m1-8gb")
    assert done.returncode == 1
    assert done.stdout.endswith("report.html\n")
    assert done.stderr == "mpsbar: couldn't open it; open it in a browser yourself\n"


def test_it_is_opened_with_what_the_desktop_has(report, workers):
    opened = workers.folder / "opened"
    program = workers.folder / "xdg-open"
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    program.chmod(0o755)
    assert report("--open", MPSBAR_REPLAY="m1-8gb", DISPLAY=":9").returncode == 0
    wait_for(lambda: opened.exists() and opened.read_text(), TIMEOUT)
    assert opened.read_text() == f"{workers.folder / 'data' / 'report.html'}\n"


def watch(workers, *arguments, **env):
    command = [*PATIENT_MPSBAR, "status", "--watch", "0.2", *arguments]
    return subprocess.Popen(
        command, env=workers.env(**env), stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def test_who_watches_records_and_the_report_shows_it(report, env, workers):
    worker = workers.start(IDLE)
    file = workers.folder / "data" / "history.sqlite"
    with watch(workers, "--json", **env) as process:

        def is_shown():
            shown = json.loads(process.stdout.readline())
            return worker.pid in [each["pid"] for each in shown["workers"]]

        wait_for(is_shown, "a reading with it")
        worker.process.kill()
        wait_for(lambda: not is_shown(), "a reading without it")
        os.kill(process.pid, signal.SIGINT)
        process.stdout.read()
        assert process.wait(TIMEOUT) == 0
    span = read_period(0, 4e9, 10**9, file)
    run = next(run for run in span.runs if run.pid == worker.pid)
    assert (run.name, run.is_connected) == ("worker0.py", True)
    report("-o", str(workers.folder / "r.html"))
    text = read_text((workers.folder / "r.html").read_text(encoding="utf-8"))
    assert "Last hour" in text
    assert f"worker0.py | {worker.pid}" in text


def test_a_single_look_and_a_recorded_machine_leave_no_history(workers, env):
    assert run_command(workers, "status", **env).returncode == 0
    with watch(workers, MPSBAR_REPLAY="m1-8gb", **env) as process:
        for _ in range(60):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert not (workers.folder / "data" / "history.sqlite").exists()
