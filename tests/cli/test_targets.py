"""Which processes a command means by PID or name, and what is said of those it cannot reach."""

import os
import subprocess
import sys

import pytest
from cli.command_kit import IDLE
from schema_kit import read_json
from worker_kit import ATTACH


def test_by_name_all_that_are_called_so_are_freed(mpsbar, workers):
    started = [workers.start(ATTACH + IDLE) for _ in range(3)]
    (workers.folder / "twice.py").write_text(ATTACH + IDLE)
    command = [sys.executable, str(workers.folder / "twice.py")]
    twice = [workers.run(command).wait_attached() for _ in range(2)]
    for name in ("twice.py", "twice"):
        done = mpsbar("free", name, str(started[0].pid), "--json")
        outcomes = read_json("free", done.stdout)["freed"]
        assert {each["pid"] for each in outcomes} == {started[0].pid, *(w.pid for w in twice)}
    done = mpsbar("free", "thrice.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mpsbar: no connected process is named thrice.py; connected: ")
    assert "worker2.py" in done.stderr


def test_which_of_three_a_process_is_that_is_not_connected(mpsbar, workers):
    done = mpsbar("free", "thrice.py")
    told = "mpsbar: no process is connected, so there is none named thrice.py\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    own, missing = str(os.getpid()), "2147483646"
    unconnected = workers.run([sys.executable, "-c", "import torch; print('up'); input()"],
        popen={"stdin": subprocess.PIPE}, forked=True)  # fmt: skip
    unconnected.wait_line("up")
    done = mpsbar("free", missing, str(unconnected.pid), own)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0] == f"{missing}: no process has this PID (run mpsbar status to list them)"
    assert lines[1].startswith(f"{unconnected.pid}: not connected: ")
    assert "mpsbar" in lines[1].split(":", 2)[2]
    assert lines[2].startswith(f"{own}: not connected")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start a process as another user")
def test_a_process_of_another_user_is_called_so(mpsbar, workers):
    theirs = subprocess.Popen(["sleep", "600"], user=65534, group=65534, extra_groups=[])
    try:
        done = mpsbar("free", str(theirs.pid))
    finally:
        theirs.kill()
        theirs.wait()
    told = f"{theirs.pid}: it belongs to nobody, and only that user can connect to it\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
