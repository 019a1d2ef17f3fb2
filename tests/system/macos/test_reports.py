"""macOS's reports on an end: captures of real ones, late, cut, huge, of others, unreadable, hostile."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worker_kit import ROOT

from mpsbar.core.endings import SystemReports
from mpsbar.system.macos import report_files
from mpsbar.system.macos.report_files import (
    find_jetsam,
    find_type,
    parse_crash,
    parse_gpu_event,
    parse_name,
    parse_panic,
    parse_time,
)
from mpsbar.system.macos.reports import MacReports
from mpsbar.system.macos.sysctl import parse_boot
from mpsbar.system.platform import EndedPid

READINGS = ROOT / "tests/readings"
ABORT = "ips-crash-python3.11-abort-macos26.6.2.real-trimmed"
STARTED = parse_time("2026-09-23 00:02:26.5066 +0200")
ENDED = parse_time("2026-09-23 00:02:28.5379 +0200")


def read(name):
    return (READINGS / f"reports-{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "pid", "signal", "more"),
    [
        (ABORT, 67402, 6, {}),
        ("ips-crash-python3.13-segv-macos15.3-x86.real-trimmed", 28566, 11, {}),
        ("ips-crash-python3.13-abort-macos12.7.6-x86.real-trimmed", 3557, 6, {}),
        ("ips-crash-python3.9-mpsgraph-assert-macos12.real-excerpt", None, 6,
         {"sentence": "MPSGraphConvolutionOps.mm:346: failed assertion `sourceTensor rank must be 4'"}),
        ("ips-crash-python-mlx-checkerror-macos26.5.real-console-text", 65813, 6,
         {"has_python_traceback": True}),
    ],
)  # fmt: skip
def test_crash_reports_of_real_macs(name, pid, signal, more):
    found = parse_crash(read(name))
    assert (found.pid, found.report.signal) == (pid, signal)
    for field, value in more.items():
        assert getattr(found.report, field) == value
    assert pid is None or found.launched is not None


def test_the_first_frame_that_is_not_the_systems_own():
    body = {
        "pid": 7, "exception": {"signal": "SIGABRT"}, "faultingThread": 0,
        "usedImages": [{"name": "libsystem_c.dylib"}, {"name": "libmlx.dylib"}, {"name": "Python"}],
        "threads": [{"frames": [
            {"imageIndex": 0, "symbol": "abort"}, {"imageIndex": 2, "symbol": "_PyEval_EvalFrameDefault"},
            {"imageIndex": 1, "symbol": "mlx::core::gpu::check_error(MTL::CommandBuffer*)"},
        ]}],
    }  # fmt: skip
    report = parse_crash("{}\n" + json.dumps(body)).report
    assert (report.library, report.symbol[:27]) == ("libmlx.dylib", "mlx::core::gpu::check_error")


def test_types_names_and_times():
    assert find_type(read(ABORT)) == "309"
    assert find_type(read("ips-jetsam-macos26.5-webcontent.real-trimmed")) == "298"
    assert find_type("nothing") == ""
    name = parse_name("python3.14-2026-04-19-161322.000.ips")
    assert (name.process, name.kind) == ("python3.14", "ips")
    assert datetime.fromtimestamp(name.local_time).second == 22  # noqa: DTZ006 - local
    assert parse_name("gpuEvent-python3.14-2026-04-19-161322.ips").process == "gpuEvent-python3.14"
    for wrong in ("x.ips", "a-2026-99-99-999999.ips", "../a-2026-04-19-161322.txt", ""):
        assert parse_name(wrong) is None
    assert parse_time("2026-09-23 00:02:28.5379 +0200") == ENDED
    assert parse_time("yesterday") is None


def test_jetsam_reports_name_who_was_killed_and_not_who_is_large():
    rows = [{"pid": 7, "name": "Python", "rpages": 9**9}, {"pid": 8, "reason": "per-process-limit"}]
    text = '{"bug_type":"298"}\n' + json.dumps({"largestProcess": "Python", "processes": rows})
    assert find_jetsam(text, 7) is None
    assert find_jetsam(text, 8) == "per-process-limit"
    assert find_jetsam(text, 9) is None
    for name in ("macos26.5-webcontent.real-trimmed", "macos26.3.1-m3ultra-256gb-python.real-excerpt",
                 "macos15.5-m1air-8gb-node.real-excerpt"):  # fmt: skip
        assert find_jetsam(read(f"ips-jetsam-{name}"), 7) is None


def test_gpu_events_and_panics_of_real_macs():
    event = parse_gpu_event(read("gpuevent-python3.14-m3ultra-macos26.3.real-shape"), 5.0)
    assert (event.time, event.name, event.reason) == (5.0, "python3.14", "firmware-detected lockup")
    panics = {
        "panic-watchdog-compressor.real-shape": (
            "watchdog timeout: no checkins from watchdogd in 94 seconds", ""),
        "panic-iogpumemory-m4mini-16gb-macos26.4.real-head": (
            "completeMemory() prepare count underflow @IOGPUMemory.cpp:550", ""),
        "panic-iogpumemory-m3max-48gb-macos26.3.1.real-lines": (
            "completeMemory() prepare count underflow @IOGPUMemory.cpp:550", "python3.13"),
    }  # fmt: skip
    for name, (reason, task) in panics.items():
        panic = parse_panic(read(name))
        assert (panic.reason, panic.task) == (reason, task)
    assert parse_panic("no panic") is None


# --- the folders


@pytest.fixture
def folders(tmp_path):
    user, system = tmp_path / "home/Library/Logs/DiagnosticReports", tmp_path / "system"
    user.mkdir(parents=True)
    system.mkdir()
    return user, system, MacReports(tmp_path / "home", system)


def stamp(seconds, name="Python", suffix=".ips"):
    local = datetime.fromtimestamp(seconds).strftime("%Y-%m-%d-%H%M%S")  # noqa: DTZ006
    return f"{name}-{local}{suffix}"


def end(pid=67402, started=STARTED, **fields):
    given = {"earliest": ENDED - 5, "latest": ENDED} | fields
    return EndedPid(pid, started, **given)


@pytest.mark.parametrize("place", ["", "Retired"])
def test_a_crash_report_is_found_by_pid_and_start(folders, place):
    user, _, reports = folders
    assert reports.read(end()) == SystemReports()
    (user / place).mkdir(exist_ok=True)
    (user / place / stamp(ENDED + 1)).write_text(read(ABORT))
    assert reports.read(end()).crash.signal == 6
    assert reports.read(end(pid=67403)).crash is None
    assert reports.read(end(started=STARTED - 60)).crash is None  # the pid was used again
    assert reports.read(end(earliest=ENDED + 900, latest=ENDED + 950)).crash is None


def test_the_others_in_the_same_second_do_not_count(folders):
    user, system, reports = folders
    for number in range(30):
        (user / stamp(ENDED, f"other{number}")).write_text('{"bug_type":"309"}\n{"pid": 5}')
    (user / stamp(ENDED + 1)).write_text(read(ABORT))
    (system / stamp(ENDED, "JetsamEvent")).write_text(
        '{"bug_type":"298"}\n{"processes":[{"pid":67402,"reason":"vm-compressor-space-shortage"}]}'
    )
    found = reports.read(end())
    assert found.crash.signal == 6
    assert found.jetsam == "vm-compressor-space-shortage"


def test_a_gpu_event_counts_by_time_alone_and_only_for_an_exact_end(folders):
    _, system, reports = folders
    body = read("gpuevent-python3.14-m3ultra-macos26.3.real-shape")
    (system / stamp(ENDED, "gpuEvent-python3.14")).write_text(body)
    assert reports.read(end()).gpu_event.name == "python3.14"
    assert reports.read(end(is_exact=False)).gpu_event is None
    assert reports.read(end(latest=ENDED + 30)).gpu_event is None


def test_a_panic_is_looked_for_only_after_a_restart(folders):
    _, system, reports = folders
    (system / stamp(ENDED + 300, "panic-full", ".panic")).write_text(
        read("panic-watchdog-compressor.real-shape")
    )
    assert reports.read(end()).panic is None
    assert reports.read(end(restarted=True)).panic.reason.startswith("watchdog timeout")


def test_a_folder_for_admins_is_said_and_the_other_is_read(workers):
    """Root reads everything: another user looks."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    # Not tmp_path: each start of pytest closes the folder above it to others.
    home = workers.folder / "home"
    (home / "Library/Logs/DiagnosticReports").mkdir(parents=True)
    system = workers.folder / "system"
    system.mkdir(0o700)
    workers.folder.chmod(0o755)
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})
import psutil
from mpsbar.system.macos.reports import MacReports
from mpsbar.system.platform import EndedPid
os.setgid(65534); os.setuid(65534)
print(MacReports(Path({str(home)!r}), Path({str(system)!r})).read(EndedPid(7, None, 0.0, 1.0)).unreadable)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "('system_reports',)", done.stderr


def test_cut_huge_and_odd_files(folders, monkeypatch):
    user, _, reports = folders
    text = read(ABORT)
    path = user / stamp(ENDED)
    path.write_text(text[: len(text) // 2])  # cut: pid and start are still there
    assert reports.read(end()).crash is not None
    path.write_text(text[:300])
    assert reports.read(end()).crash is None
    monkeypatch.setattr("mpsbar.system.macos.reports._LARGEST", 1000)
    path.write_text(text)
    assert reports.read(end()).crash is None
    path.unlink()
    os.mkfifo(path)  # nobody writes to it: a reader would wait for ever
    assert reports.read(end()).crash is None
    path.unlink()
    path.mkdir()
    assert reports.read(end()).crash is None


@pytest.mark.parametrize("pid", [True, "67402", -1, 1 << 31, 7.0, None, [7]])
def test_what_is_no_pid(pid):
    body = {"pid": pid, "termination": {"namespace": "SIGNAL", "code": pid}}
    crashed = parse_crash(json.dumps(body))
    assert crashed.pid is None
    assert crashed.report.signal is None


def test_hostile_texts_are_made_printable_and_masked(folders):
    user, _, reports = folders
    body = {
        "pid": 67402, "procLaunch": "2026-09-23 00:02:26.5066 +0200", "exception": {"signal": "SIGABRT"},
        "asi": {"x": ["\x1b]0;evil\x07 token=hf_abcdefghijklmnop" + "y" * 5000]},
    }  # fmt: skip
    (user / stamp(ENDED)).write_text('{"bug_type":"309"}\n' + json.dumps(body))
    sentence = reports.read(end()).crash.sentence
    assert sentence.isprintable()
    assert len(sentence) <= 200
    assert "hf_" not in sentence


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=12), x, max_size=4),
    max_leaves=12,
)
KEYS = (
    "pid", "procLaunch", "captureTime", "exception", "termination", "asi", "threads", "usedImages", "faultingThread",
    "processes", "analysis", "process_name", "timestamp", "panicString", "bug_type",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), anything), st.text(max_size=60))
def test_no_file_makes_a_reader_fail(body, tail):
    for text in (json.dumps(body), "{}\n" + json.dumps(body), json.dumps(body) + tail, tail):
        for parse in (parse_crash, parse_panic, find_type):
            parse(text)
        find_jetsam(text, 7)
        event = parse_gpu_event(text, 1.0)
        assert event is None or event.name.isprintable()
        found = parse_crash(text)
        assert found is None or found.report.sentence.isprintable()


def test_when_the_mac_was_started():
    assert parse_boot(b"\x00\x10\x5e\x69\0\0\0\0\x20\xa1\x07\0\0\0\0\0") == 0x695E1000 + 0.5
    assert parse_boot(b"short") is None
    assert parse_boot(b"\xff" * 16) is None


def test_reading_takes_no_note_while_processes_live(folders):
    _, _, reports = folders
    reports.note(7)
    reports.refresh()
    assert time.time() > 0
    assert report_files.CRASH == "309"
    assert datetime.now(timezone.utc)
