"""What Linux says of a kill for memory: counts of cgroups and the kernel's log."""

import time

import pytest

from mpsbar.core.endings import SystemReports
from mpsbar.system.linux_reports import LinuxReports, parse_count, parse_groups, parse_kills
from mpsbar.system.platform import EndedPid
from mpsbar.system.uptime import read_uptime

LOG = b"""<6>[   12.000000] something Killed process 5 (python)
<3>[  100.500000] Out of memory: Killed process 77 (python3) total-vm:1kB, anon-rss:2kB
<3>[  101.000000] Memory cgroup out of memory: Killed process 78 (python (x) 9) total-vm:1kB
<6>[  102.000000] no kill of process 79
"""


def test_the_kernels_log():
    assert parse_kills(LOG, 0) == {5, 77, 78}
    assert parse_kills(LOG, 101) == {78}
    assert parse_kills(b"\xff\0" * 100, 0) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"0::/user.slice/a\n", [("", "", "/user.slice/a"), ("", "/unified", "/user.slice/a")]),
        (b"8:pids:/x\n4:cpu,memory:/y\n", [("memory", "/memory", "/y")]),
        (b"0::/\n", [("", "", ""), ("", "/unified", "")]),
        (b"0::/../../etc\n", []),
        (b"\xff\xfe:::", []),
    ],
)
def test_the_cgroup_of_a_process(text, found):
    assert parse_groups(text) == found


def test_counts_of_both_versions():
    assert parse_count(b"low 0\noom 3\noom_kill 2\n") == 2
    assert parse_count(b"oom_kill_disable 0\nunder_oom 0\noom_kill 5\n") == 5
    assert parse_count(b"oom_kill many\n") is None


@pytest.fixture
def group(tmp_path, monkeypatch):
    for pid in (7, 8, 9):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cgroup").write_text("0::/run\n")
    place = tmp_path / "sys/fs/cgroup/run"
    place.mkdir(parents=True)
    monkeypatch.setattr(LinuxReports, "_read_log", lambda _self: (b"", ("kernel_log",)))
    return place / "memory.events"


def kill(pid, signal=9):
    return EndedPid(pid, 1.0, 0.0, 1.0, signal)


def test_each_kill_counts_for_one_end(group, tmp_path):
    group.write_text("oom_kill 4\n")
    reports = LinuxReports(str(tmp_path))
    for pid in (7, 8, 9):
        reports.note(pid)
    group.write_text("oom_kill 5\n")
    assert reports.read(kill(7)) == SystemReports(cgroup_kill=True, unreadable=("kernel_log",))
    assert reports.read(kill(8)).cgroup_kill is False
    assert reports.read(kill(9, signal=15)) == SystemReports()
    assert reports.read(kill(10)).cgroup_kill is None  # never noted


def test_a_kill_of_long_ago_does_not_count(group, tmp_path, monkeypatch):
    group.write_text("oom_kill 0\n")
    reports = LinuxReports(str(tmp_path))
    reports.note(7)
    group.write_text("oom_kill 1\n")  # of a process that is not watched
    now = time.monotonic()
    for minutes in (1, 2):
        monkeypatch.setattr(time, "monotonic", lambda m=minutes: now + 60 * m)
        reports.refresh()
    assert reports.read(kill(7)).cgroup_kill is False


def test_the_log_decides_where_it_may_be_read(group, tmp_path, monkeypatch):
    group.write_text("oom_kill 0\n")
    reports = LinuxReports(str(tmp_path))
    reports.note(7)
    reports.note(8)
    group.write_text("oom_kill 1\n")
    stamp = int(read_uptime())
    log = b"<3>[%d.0] Memory cgroup out of memory: Killed process 8 (python)\n" % stamp
    monkeypatch.setattr(LinuxReports, "_read_log", lambda _self: (log, ()))
    assert reports.read(kill(7)) == SystemReports(cgroup_kill=False)
    assert reports.read(kill(8)).kernel_log


def test_a_group_that_is_gone(group, tmp_path):
    group.write_text("oom_kill 0\n")
    reports = LinuxReports(str(tmp_path))
    reports.note(7)
    group.unlink()
    reports.refresh()
    assert reports.read(kill(7)).cgroup_kill is None
