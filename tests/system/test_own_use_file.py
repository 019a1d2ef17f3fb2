"""A monitor that uses too much: slower, said in the log and by `mpsbar doctor` in another process."""

import json
import os
import subprocess
import sys

import pytest
from fake_torch import make_torch, working
from worker_kit import ROOT, wait_for

from mpsbar.system import paths
from mpsbar.system.own_use_file import read_own_use, write_own_use

# Really burns CPU; only the minute is shorter.
BUSY = """
import time
from mpsbar.core import own_budget
from mpsbar.monitor import Monitor
from mpsbar.system.log import start_log
own_budget.PERIOD = 1.0
start_log()
monitor = Monitor(interval=0.05)
def burn(snapshot):
    end = time.thread_time() + 0.1
    while time.thread_time() < end: pass
monitor.start(burn)
while monitor.pause <= 0.05: time.sleep(0.01)
print("slower", flush=True)
import sys
sys.stdin.read()
monitor.close()
monitor._thread.join()
"""


def test_a_busy_monitor_is_slower_and_doctor_and_log_say_so(workers):
    folders = {"MPSBAR_LOG_DIR": str(workers.folder / "log")}
    busy = workers.run([sys.executable, "-c", BUSY], popen={"stdin": subprocess.PIPE}, **folders)
    busy.wait_line("slower")

    light = make_torch(workers.folder / "light torch", working())

    def doctor():
        # A Python without the real torch is checked in no time.
        done = subprocess.run(
            [sys.executable, "-m", "mpsbar", "doctor", "--json", "--python", sys.executable],
            env=workers.env(PYTHONPATH=light, **folders), capture_output=True, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
        problems = json.loads(done.stdout)["problems"]
        return [problem["text"] for problem in problems if problem["reader"] == "own use"]

    wait_for((workers.folder / "data" / "own-use.json").exists, "a note")
    # On a busy machine it gets too little to be over its budget, for a while.
    (text,) = wait_for(doctor, "what doctor says of it")
    assert "of a core in the last minute" in text
    assert text.endswith(f"(process {busy.pid})")
    log = (workers.folder / "log" / "mpsbar.log").read_text()
    assert "times less often" in log
    busy.process.communicate(timeout=120)
    assert busy.process.returncode == 0
    assert not (workers.folder / "data" / "own-use.json").exists()


def test_the_note_of_a_process_that_ended_is_not_shown(private):
    write_own_use("too much")
    assert read_own_use() == f"too much (process {os.getpid()})"
    child = subprocess.Popen(["true"])
    child.wait()
    text = paths.own_use_file().read_text().replace(str(os.getpid()), str(child.pid))
    paths.own_use_file().write_text(text)
    assert read_own_use() is None
    write_own_use(None)  # another's
    assert paths.own_use_file().exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"pid": "7"}', '{"pid": 1e400, "reason": 1}', "[" * 3000, '{"pid": -1, "reason": 1}']
)  # fmt: skip
def test_what_is_no_note_is_none(private, text):
    paths.own_use_file().parent.mkdir(parents=True, exist_ok=True)
    paths.own_use_file().write_text(text)
    assert read_own_use() is None
