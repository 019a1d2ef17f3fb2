"""What `mpsbar run --summary` concludes as the parent, from what it noted while the command ran."""

import json
import os
import subprocess
import sys

import pytest
from endings.end_cases import make_group, why_no_cgroup
from samples import GB
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.cli import run_summary
from mpsbar.cli.run_summary import (
    Collector,
    Usage,
    build_summary,
    find_first_fallbacks,
    judge_command,
)
from mpsbar.core.endings import CrashReport, SystemReports
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine
from mpsbar.core.snapshot import Snapshot
from mpsbar.system import paths
from mpsbar.system.foreground import CommandEnd
from mpsbar.system.platform import NoExitWatch, NoReports

KILLED = CommandEnd(4711, 9, 1000.0, 1100.0, 0)


class Computer:
    """A Mac of which nothing but this is asked."""

    is_mac = True
    recorded_workers = ()

    def __getattr__(self, name):
        return lambda *_: {"watch_exits": NoExitWatch(), "read_reports": NoReports()}.get(name)


@pytest.fixture
def collector(monkeypatch, tmp_path):
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path / "run"))
    collector = Collector(Computer())
    yield collector
    collector.close()


@pytest.fixture
def records(tmp_path):
    """Leaves the record of a process that ended."""
    folder = tmp_path / "run" / "ended"

    def leave(pid, parent, attached, **more):
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        folder.parent.chmod(0o700)
        record = {"version": 1, "pid": pid, "parent": parent, "attached": attached, "ended": 1050.0}
        (folder / f"{1050000:013d}-{pid}.json").write_text(json.dumps(record | more))

    return leave


def note(collector, time, **machine):
    collector._note(Snapshot(time=time, processes=(), machine=Machine(**machine)))


def judge(collector, end=KILLED):
    return judge_command(end, Computer(), collector)


def test_it_does_not_keep_the_app_and_top_from_freeing(collector, private):
    """Of those that free automatically only the first does, and this one knows no settings."""
    collector.start(os.getpid())
    wait_for(lambda: collector._monitor.ticks > 1, "two ticks")
    assert not paths.lock_file("auto-free").exists()


def test_a_kill_alone_does_not_say_by_whom(collector):
    note(collector, 1099.0, pressure="normal", swap_used=0)
    assert (judge(collector).code, judge(collector).sure) == ("killed", "known")


def test_memory_in_the_last_minute_is_evidence(collector):
    note(collector, 1000.0, pressure="normal", swap_used=0)
    note(collector, 1050.0, pressure="warning", swap_used=GB)
    note(collector, 1099.0, pressure="critical", swap_used=4 * GB)
    verdict = judge(collector)
    assert (verdict.code, verdict.sure) == ("killed_for_memory", "likely")
    assert verdict.basis == ("exit_status", "pressure", "swap")
    assert verdict.values["swap"] == 3 * GB  # since 1040


def test_an_earlier_shortage_is_none(collector):
    note(collector, 1010.0, pressure="critical", swap_used=9 * GB)
    note(collector, 1099.0, pressure="normal", swap_used=9 * GB)
    assert judge(collector).code == "killed"


def test_the_kernels_own_reason_is_known(collector):
    verdict = judge(collector, CommandEnd(4711, 9, 1000.0, 1100.0, 0, exit_reason=(1, 13)))
    assert (verdict.code, verdict.sure, verdict.values["reason"]) == (
        "killed_for_memory",
        "known",
        "low-swap",
    )
    assert verdict.basis == ("exit_status", "exit_reason")


@pytest.mark.parametrize(
    ("counts", "code"),
    [((21, 21, 22), "gpu_reset"), ((21, 22, 22), "crashed"), ((None, 21, 21), "crashed")],
)
def test_a_reset_of_the_gpu_just_before_the_end(collector, counts, code):
    for time, count in zip((1010.0, 1020.0, 1098.0), counts, strict=True):
        note(collector, time, gpu=Gpu(recoveries=count))
    assert judge(collector, CommandEnd(4711, 6, 1000.0, 1100.0, 0)).code == code


def test_what_is_looked_at_while_it_lives_is_noted(collector, monkeypatch):
    noted = []
    monkeypatch.setattr(collector, "reports", NoReports())
    monkeypatch.setattr(NoReports, "note", lambda _, pid: noted.append(pid))
    monkeypatch.setattr(NoReports, "read", lambda *_: SystemReports(cgroup_kill=4711 in noted))
    monkeypatch.setattr(collector, "_monitor", type("Nobody", (), {"start": print, "close": print}))
    collector.start(4711)
    assert judge(collector).code == "killed_for_memory"


@pytest.mark.parametrize(("signal", "reads"), [(11, 3), (9, 1), (15, 1), (3, 1)])
def test_only_a_crash_is_worth_waiting_for_its_report(collector, monkeypatch, signal, reads):
    read = []

    def find(*_):
        read.append(1)
        return SystemReports(crash=CrashReport(signal) if len(read) == 3 else None)

    monkeypatch.setattr(run_summary, "_REREAD_SECONDS", 0.01)
    monkeypatch.setattr(collector, "reports", NoReports())
    monkeypatch.setattr(NoReports, "read", find)
    judge(collector, CommandEnd(4711, signal, 1000.0, 1100.0, 0))
    assert len(read) == reads


def test_what_was_seen_of_the_command_is_evidence(collector):
    collector.usage = Usage(allocated=GB, workers={4711}, exit_record_pids={4711})
    verdict = judge(collector, CommandEnd(4711, 3 << 8, 1000.0, 1100.0, 0))
    assert verdict.values == {"code": 3, "peak": GB}
    assert verdict.basis == ("exit_status", "no_last_words")
    collector.usage = Usage(allocated=GB, workers={4712}, exit_record_pids={4712})  # a child
    verdict = judge(collector, CommandEnd(4711, 3 << 8, 1000.0, 1100.0, 0))
    assert (verdict.values, verdict.basis) == ({"code": 3}, ("exit_status",))


def test_a_record_that_cannot_be_left_is_said_once(monkeypatch, tmp_path, capfd):
    def fail(_end):
        raise OSError(13, "Permission denied", str(tmp_path / "ended"))

    monkeypatch.setenv("MPSBAR_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(run_summary, "_list_ends", lambda *_: [None, None])
    monkeypatch.setattr(run_summary, "note_end", fail)
    assert run_summary.run(["true"], dict(os.environ), None) == 0
    line = f"mpsbar: couldn't write {tmp_path}/ended: Permission denied"
    assert capfd.readouterr().err.count(line) == 1


def test_fallbacks_of_a_process_that_was_killed_are_not_known(collector):
    used = Usage(workers={4711}, devices={"mps"}, torch="2.13.0")
    found = find_first_fallbacks(KILLED, used)
    assert (found.operations, found.is_complete, found.is_counted) == ((), False, False)
    assert find_first_fallbacks(KILLED, Usage(devices={"cpu"}, torch="2.13.0")) is None
    assert find_first_fallbacks(KILLED, Usage()) is None


def test_a_run_on_the_cpu_that_ended_before_anyone_looked_has_none(collector, records):
    record = {"frameworks": {"torch": "2.13.0"}, "memory": {"resident": 5}}
    records(4711, 7, 1001.0, **record)
    assert find_first_fallbacks(KILLED, Usage()) is None
    record |= {"memory": {"driver": 5}}  # on MPS
    records(4711, 7, 1001.0, **record, fallback_seen=None)
    found = find_first_fallbacks(KILLED, Usage())
    assert (found.operations, found.is_complete) == ((), True)


def test_fallbacks_are_not_known_where_a_process_did_not_look_to_the_end(collector, records):
    on_mps = {"frameworks": {"torch": "2.13.0"}, "memory": {"driver": 5}}
    records(4711, 7, 1001.0, **on_mps, fallback_seen=None)
    records(4712, 4711, 1002.0, **on_mps, fallback_seen="cut")
    found = find_first_fallbacks(KILLED, Usage(workers={4711}))
    assert (found.operations, found.is_complete) == ((), False)


def test_children_that_ended_before_anyone_looked_are_counted(collector, records):
    for pid, parent, attached in (
        (4713, 4712, 1002.0),
        (4712, 4711, 1003.0),
        (4714, 4711, 900.0),
        (4715, 7, 1004.0),
    ):
        records(pid, parent, attached, memory={"peak": pid})
    summary = build_summary(["sh", "-c", "x"], KILLED, collector, judge(collector))
    # A child, and one of its children; not one of an earlier or of another run.
    assert collector.usage.workers == {4712, 4713}
    assert (summary["connected_processes"], summary["peak_allocated"]) == (2, 4713)


@pytest.mark.starts_processes
def test_a_command_that_the_kernel_kills_for_memory(workers):
    if reason := why_no_cgroup():
        pytest.skip(reason)
    group = make_group(f"mpsbar-summary-{workers.folder.name}", 64 << 20)
    file = workers.folder / "summary.json"
    join = f"echo $$ > {group}/cgroup.procs; exec "
    code = "x = [bytearray(b'1' * (1 << 20)) for _ in range(4096)]"
    command = [sys.executable, "-m", "mpsbar", "run", "--summary=json", str(file)]
    try:
        # The command joins the group before it becomes Python; mpsbar itself stays out of it.
        done = subprocess.run(
            [*command, "sh", "-c", f"{join}{sys.executable} -c \"{code}\""],
            env=workers.env(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        assert done.returncode == -9, done.stderr
        verdict = json.loads(file.read_text())["verdict"]
        assert verdict["code"] == "killed_for_memory"
    finally:
        group.rmdir()
