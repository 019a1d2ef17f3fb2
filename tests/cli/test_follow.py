"""mpsbar status PID --watch: one process until it ends."""

import re
import subprocess

from fleet_kit import PATIENT_MPSBAR
from schema_kit import read_json
from worker_kit import ATTACH, ROOT, TIMEOUT


def test_one_process_is_followed_until_it_ends(workers, mpsbar):
    worker = workers.start(ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    command = [*PATIENT_MPSBAR, "status", str(worker.pid), "--watch", "0.1"]
    with subprocess.Popen(
        command, env=workers.env(), stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        first = [process.stdout.readline() for _ in range(4)]
        worker.end()
        rest = process.stdout.read()
        assert process.wait(TIMEOUT) == 0
    assert first[0] == f"worker0.py ({worker.pid}), until it ends or you press Ctrl-C\n"
    assert first[1].startswith("TIME")
    # Another head where a value that has come makes a column wider.
    assert all(re.match(r"(\d\d:\d\d:\d\d|TIME    )  ", line) for line in first[2:])
    assert re.match(r"\d\d:\d\d:\d\d  ", first[2])
    assert rest.splitlines()[-1].startswith("worker0.py: ended")
    one = mpsbar("status", "5000201", "--json", MPSBAR_REPLAY="m1max-64gb")
    assert [worker["pid"] for worker in read_json("status", one.stdout)["workers"]] == [5000201]
    nobody = mpsbar("status", "77", MPSBAR_REPLAY="m1max-64gb")
    assert (nobody.returncode, nobody.stdout) == (1, "")
    assert "has the PID 77" in nobody.stderr


def test_readings_that_come_too_late_do_not_end_the_following_of_a_process(monkeypatch, capsys):
    """On a busy computer the list of processes may be missing for some readings."""
    from dataclasses import replace

    from mpsbar import snapshot as read_snapshot
    from mpsbar.cli import follow

    monkeypatch.setenv("MPSBAR_REPLAY", "m1max-64gb")
    whole = read_snapshot()
    pid = whole.workers[0].pid
    late = replace(whole, workers=(), processes=None)
    gone = replace(whole, workers=(), processes=())
    readings = iter([*[late] * 9, whole, *[gone] * 6])

    class FakeRecorder:
        def read_once(self):
            return whole

        def close(self):
            pass

    monkeypatch.setattr("mpsbar.cli.status.make_recorder", FakeRecorder)
    monkeypatch.setattr("mpsbar.cli.status.read_after", lambda *_: next(readings))
    assert follow.follow(pid, False, 0.1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines[1:-1]].count("TIME") == 1
    assert len(lines) == 5  # its name, the head, two readings, the end
    assert lines[-1] == "train.py: ended"
    assert next(readings, None) is None
