"""The quick form of `make endings`: each cheap way once, watched and not watched, with real workers."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from worker_kit import ROOT, TIMEOUT, wait_for

from endings.campaign import find_library, judge, run_seen, run_unseen
from endings.end_cases import QUICK
from mpsbar.core.events import EndedProcess
from mpsbar.end_reader import read_all_ends
from mpsbar.history.recorder import Recorder
from mpsbar.monitor import Monitor
from mpsbar.system import scan

WAYS = QUICK
pytestmark = pytest.mark.starts_processes


@pytest.fixture
def library(workers):
    if (library := find_library(workers)) is None:
        pytest.skip("no C compiler here")
    return library


def test_watched_ends_have_the_right_verdict(workers, library, monkeypatch):
    # An exec shows in the agent that is gone: nobody waits until the process is examined again.
    monkeypatch.setattr(scan, "FOUND_WAIT", 1e9)
    monitor = Monitor()
    try:
        monitor.tick()
        results = []
        for first in range(0, len(WAYS), 10):
            results += run_seen(monitor, workers, WAYS[first : first + 10], library)
    finally:
        monitor.close()
    assert {way.name: wrong for way, wrong in results if wrong} == {}
    assert len(results) == len(WAYS)


def test_ends_that_nobody_watched_are_told_with_what_was_left(workers, library):
    starts = {}
    ways = run_unseen(workers, WAYS, library, starts)
    found = {end.pid: end for end in read_all_ends(time.time())}
    wrong = {}
    for pid, way in ways.items():
        # Nobody ever saw them: those that left nothing are not known at all.
        end = found.get(pid)
        if way.unseen == "unknown":
            problem = None if end is None else f"{end.verdict} though it left nothing"
        else:
            problem = judge(way, end, False)
        if problem:
            wrong[way.name] = problem
    assert wrong == {}
    for pid, started in starts.items():
        if pid in found:
            assert found[pid].started == pytest.approx(started, abs=2.0)
            assert found[pid].ran == pytest.approx(found[pid].ended - found[pid].started)


def list_only(monitor, pids, unlisted=()):
    """No other process of this machine; and none at all in the ticks of these numbers.

    A busy machine may not list its processes within a tick, and where a whole suite runs, more
    processes end meanwhile than are shown.
    """
    scan = monitor._scanner.scan

    def scan_some():
        found = scan()
        if found.processes is None or monitor.ticks + 1 in unlisted:
            return replace(found, processes=None)
        return replace(found, processes=tuple(p for p in found.processes if p.pid in pids))

    monitor._scanner.scan = scan_some


@pytest.mark.parametrize("unlisted", [(), (1, 2, 3)], ids=["at once", "when processes are listed"])
def test_a_monitor_that_comes_back_finds_out_as_far_as_possible(
    workers, library, tmp_path, unlisted
):
    """Seen once by a recorder, ended while none ran, explained by the next."""
    from endings.campaign import start

    problems = []
    wanted = [way for way in WAYS if way.name in ("normal", "exception", "SIGKILL", "os._exit(7)")]
    started = [start(workers, way, library, number) for number, way in enumerate(wanted)]
    file = tmp_path / "data" / "history.sqlite"
    try:
        for one in started:
            one.wait_ready()
        clock = [1000.0]
        monitor = Monitor(recorder=Recorder(problems.append, file, clock=lambda: clock[0]))
        pids = {one.process.pid for one in started}
        list_only(monitor, pids)

        def are_connected():
            seen = monitor.tick().workers  # a busy machine may need more than one
            return pids <= {w.pid for w in seen if w.process and w.writes_exit_record}

        wait_for(are_connected, "the workers in the snapshot")
        clock[0] += 60
        monitor.tick()
        monitor.close()
        for one in started:
            one.go_on()
            one.reap()
        monitor = Monitor(recorder=Recorder(problems.append, file, clock=lambda: clock[0]))
        list_only(monitor, pids, unlisted)
        ended = {}

        def are_ended():
            monitor.tick()
            clock[0] += 60
            ended.update((end.pid, end) for end in monitor.latest.ended)
            return pids <= set(ended)

        wait_for(are_ended, "the ends")
        assert monitor.ticks > len(unlisted)
        monitor.tick()
        monitor.close()
    finally:
        for one in started:
            one.close()
    assert problems == []
    assert {one.way.name: judge(one.way, ended.get(one.process.pid), False) for one in started} == {
        way.name: None for way in wanted
    }
    again = Recorder(problems.append, file, clock=lambda: 1.0)  # the verdicts are in the file
    again.close()


def run(workers, *arguments):
    command = [sys.executable, "-m", "mpsbar", *arguments]
    return subprocess.run(
        command, env=workers.env(PYTHONPATH=str(ROOT)), capture_output=True, text=True,
        timeout=TIMEOUT, cwd=workers.folder,
    )  # fmt: skip


def test_mpsbar_run_summary(workers):
    (workers.folder / "raise.py").write_text(
        "import mpsbar; mpsbar.attach()\nraise RuntimeError('[malloc] Unable to allocate 4096 bytes.')\n"
    )
    done = run(workers, "run", "--summary", sys.executable, "raise.py")
    assert done.returncode == 1
    lines = done.stderr.partition("mpsbar: ")[2].splitlines()
    assert lines[0] == "raise.py ran out of memory; it asked for 4 kB more"
    assert [line.split("  ")[1] for line in lines[1:3]] == ["duration", "peak allocated"]
    file = workers.folder / "summary.json"
    done = run(workers, "run", "--summary=json", str(file), "sh", "-c", "kill -9 $$")
    assert (done.returncode, done.stderr) == (-9, "")
    summary = json.loads(file.read_text())
    assert (summary["verdict"]["code"], summary["command"]) == ("killed", "sh")
    assert summary["connected_processes"] == 0
    assert summary["cpu_fallbacks"] is None
    done = run(workers, "run", "--summary", "no-such-command")
    assert (done.returncode, done.stderr) == (
        127,
        "mpsbar run: no-such-command: command not found\n",
    )


def test_an_end_in_json_and_in_the_table_of_events(workers):
    assert EndedProcess(1, None, "a", 1.0).verdict is None
