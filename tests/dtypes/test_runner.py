"""The probe's runner: what a Python, a torch or a bystander does costs as little as it can."""

import json
import os
import signal
import subprocess
import sys
import threading

import interpreters
import psutil
import pytest
from fake_torch import add_startup, make_torch
from probe_kit import RESULTS, copy_with_small_speeds, hold_once, needs_mps, wait_until_held
from thorough import two_sizes
from worker_kit import TIMEOUT, need_module, read_command, wait_for

from mpsbar.core.dtype_results import Progress
from mpsbar.dtypes.runner import ProbeRunner
from mpsbar.dtypes.verdicts import find_surprises, judge_dtypes

# What must hang does so for this long; a busy machine must get through any other cell by then.
CELL_SECONDS = 30.0
# The releases before and after one that changed what MPS can do; `make thorough` runs the others too.
CHANGES = [f"2.{minor}" for minor in (2, 3, 8, 9, 11, 12, 14, 15)]
OTHERS = [f"2.{minor}" for minor in (1, 4, 5, 6, 7, 10, 13)]


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("SOFTMPS", "PYTORCH_"))]:
        if name != "SOFTMPS_CACHE":
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def small_speeds(monkeypatch, tmp_path_factory):
    folder = copy_with_small_speeds(tmp_path_factory.mktemp("sources"))
    monkeypatch.setattr("mpsbar.dtypes.runner._SOURCES", folder)


@pytest.fixture
def softmps(monkeypatch, fork_children):

    def plant(faults="", version=""):
        monkeypatch.setenv("SOFTMPS", "1")
        monkeypatch.setenv("SOFTMPS_FAULTS", faults)
        monkeypatch.setenv("SOFTMPS_TORCH", version)

    return plant


def states(probe, *wanted):
    found = {f"{cell.operation}/{cell.dtype}": cell for cell in probe.cells}
    return [(found[name].state, found[name].text) for name in wanted]


def find_surprises_of_results(probe):
    """Without slowness, which on a busy machine is no property of the dtype; see test_verdicts."""
    return [reason.code for reason in find_surprises(probe) if reason.code != "dtype_slow"]


@pytest.mark.xdist_group("torch")  # imported into the test process
def test_the_whole_on_the_cpu():
    torch = pytest.importorskip("torch")
    seen = []
    probe = ProbeRunner([sys.executable], "cpu").run(seen.append)
    assert (probe.ended, probe.error, probe.device) == ("ok", None, "cpu")
    assert (probe.torch, probe.torch_file) == (torch.__version__, torch.__file__)
    assert probe.measured == RESULTS == len(probe.cells) + len(probe.checks)
    assert probe.prefix == os.path.realpath(sys.prefix)
    assert find_surprises_of_results(probe) == []
    assert 0 < probe.memory < probe.ceiling
    assert seen[0] == Progress(0, None)
    assert seen[-1].percent == 100
    percents = [progress.percent for progress in seen]
    assert percents == sorted(percents)
    assert len(set(percents)) > 3


@needs_mps
@two_sizes("version", small=CHANGES, whole=OTHERS)
def test_nothing_surprises_on_mps_whatever_the_torch(softmps, version):
    softmps(version=version)
    probe = ProbeRunner([sys.executable]).run()
    assert (probe.ended, probe.device, probe.torch) == ("ok", "mps", f"{version}.0+softmps")
    assert find_surprises_of_results(probe) == []
    support = {verdict.dtype: verdict.support for verdict in judge_dtypes(probe)}
    minor = int(version[2:])
    assert support["float64"] == "unsupported"
    assert support["bfloat16"] == ("unsupported" if minor < 3 else "supported")
    assert support["uint16"] == ("unsupported" if minor < 9 else "limited")
    assert support["float8_e4m3fn"] == ("unsupported" if minor < 15 else "limited")
    assert (probe.capability is None) == (minor < 12)


@needs_mps
def test_a_crash_costs_its_cell(softmps):
    softmps("abort cumsum bfloat16; abort _unique2 int64")
    probe = ProbeRunner([sys.executable], "mps").run()
    assert probe.ended == "ok"
    assert states(probe, "cumsum/bfloat16", "argmax/bfloat16") == [
        ("crashed", "SIGABRT"),
        ("works", None),
    ]
    assert [(c.name, c.text) for c in probe.checks if c.state == "crashed"] == [
        ("unique", "SIGABRT")
    ]
    assert probe.measured == RESULTS
    assert find_surprises_of_results(probe) == ["check_crashed", "dtype_crashed"]


@needs_mps
def test_a_hang_costs_its_cell(softmps):
    softmps("hang sort int16")
    probe = ProbeRunner([sys.executable], "mps", cell_seconds=CELL_SECONDS).run()
    assert probe.ended == "ok"
    assert states(probe, "sort/int16", "create/int8") == [("hung", None), ("works", None)]
    assert probe.measured == RESULTS


@needs_mps
def test_what_always_crashes_is_tried_three_times(softmps):
    softmps("abort sort *")
    probe = ProbeRunner([sys.executable], "mps").run()
    assert probe.ended == "ok"
    sorts = [cell.state for cell in probe.cells if cell.operation == "sort"]
    assert (sorts[:3], set(sorts[3:])) == (["crashed"] * 3, {"unknown"})
    assert {check.state for check in probe.checks} == {"right"}


@needs_mps
def test_a_device_that_torch_refuses(softmps):
    softmps("refuse:macos empty *", "2.15")
    probe = ProbeRunner([sys.executable], "mps").run()
    assert (probe.ended, probe.cells) == ("no_device", ())
    assert "The MPS backend is supported on macOS 15.0+." in probe.error


def test_a_device_that_is_not_there():
    need_module("torch")
    probe = ProbeRunner([sys.executable], "mps").run()
    assert (probe.ended, probe.device, probe.cells) == ("no_device", "mps", ())


def test_too_little_memory_stops_it_and_nothing_is_lost():
    need_module("torch")
    probe = ProbeRunner([sys.executable], "cpu", ceiling=8 << 20).run()
    assert probe.ended in ("stopped", "ok")
    assert any(cell.state == "works" for cell in probe.cells)
    assert any(entry.state in ("no_memory", "unknown") for entry in (*probe.cells, *probe.checks))


def find_child(parent=None):
    """The throwaway that this process started."""
    found = psutil.Process(parent).children(recursive=True)
    return [each for each in found if any("child.py" in word for word in read_command(each))]


def run_aside(runner, on_progress=None):
    """Its result, in a list, once the thread has ended."""
    found = []
    thread = threading.Thread(target=lambda: found.append(runner.run(on_progress)))
    thread.start()
    return thread, found


def test_killed_from_outside_midway_it_goes_on(monkeypatch, tmp_path, fork_children):
    """Once: that is nobody's fault in the cell it was at, which is tried again."""
    need_module("torch")
    monkeypatch.setenv("PYTHONPATH", hold_once(tmp_path))
    thread, found = run_aside(ProbeRunner([sys.executable], "cpu", cell_seconds=300))
    os.kill(wait_until_held(tmp_path), signal.SIGKILL)
    thread.join(TIMEOUT)
    assert (found[0].ended, found[0].measured) == ("ok", RESULTS)
    assert states(found[0], "softmax/float32") == [("works", None)]


def test_killed_again_it_is_the_cell(monkeypatch, tmp_path, fork_children):
    need_module("torch")
    monkeypatch.setenv("PYTHONPATH", hold_once(tmp_path))
    thread, found = run_aside(ProbeRunner([sys.executable], "cpu", cell_seconds=300))
    for _ in range(2):
        held = wait_until_held(tmp_path)
        (tmp_path / "held").unlink()  # so that the next one is held too
        os.kill(held, signal.SIGKILL)
    os.kill(wait_until_held(tmp_path), signal.SIGKILL)  # by the same operation in the next dtype
    thread.join(TIMEOUT)
    assert states(found[0], "softmax/float32", "softmax/float16") == [
        ("crashed", "SIGKILL"),
        ("works", None),
    ]


def test_a_second_start_that_fails_is_no_cells_fault(monkeypatch, tmp_path):
    """Once it is tried again; then it is left at what is known."""
    need_module("torch")
    startup = hold_once(tmp_path)
    with open(os.path.join(startup, "sitecustomize.py"), "a") as file:
        file.write(f"import os, pathlib\nstarts = pathlib.Path({str(tmp_path / 'starts')!r})\n"
                   "starts.open('a').write('x')\nif len(starts.read_text()) > 1: os._exit(5)\n")  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", startup)
    thread, found = run_aside(ProbeRunner([sys.executable], "cpu", cell_seconds=300))
    os.kill(wait_until_held(tmp_path), signal.SIGKILL)
    thread.join(TIMEOUT)
    assert (found[0].ended, found[0].measured) == ("stopped", 6)
    assert (tmp_path / "starts").read_text() == "xxx"
    assert states(found[0], "softmax/float32") == [("unknown", None)]


def test_cancelled_from_another_thread(monkeypatch, tmp_path):
    """At once, and what was measured is kept; nobody is left behind."""
    need_module("torch")
    monkeypatch.setenv("PYTHONPATH", hold_once(tmp_path))
    runner, seen = ProbeRunner([sys.executable], "cpu", cell_seconds=300), []
    thread, found = run_aside(runner, seen.append)
    held = psutil.Process(wait_until_held(tmp_path))
    wait_for(lambda: seen and seen[-1].done == 6, "what was measured before it")
    runner.cancel()
    thread.join(TIMEOUT)
    assert (found[0].ended, found[0].measured) == ("cancelled", 6)
    assert not held.is_running() or held.status() == psutil.STATUS_ZOMBIE


def test_cancelled_before_it_has_begun():
    runner = ProbeRunner([sys.executable], "cpu")
    runner.cancel()
    assert runner.run().ended == "cancelled"


def test_the_first_python_that_has_torch(tmp_path, fork_children):
    need_module("torch")
    bare = tmp_path / "venv"
    subprocess.run(
        [interpreters.need("3.11"), "-m", "venv", "--without-pip", str(bare)], check=True
    )
    probe = ProbeRunner(
        [str(tmp_path / "none"), str(bare / "bin" / "python"), sys.executable], "cpu"
    ).run()
    assert (probe.ended, probe.python) == ("ok", sys.executable)
    probe = ProbeRunner([str(bare / "bin" / "python")], "cpu").run()
    assert (probe.ended, probe.version is None) == ("no_torch", False)
    assert ProbeRunner([], "cpu").run().ended == "no_torch"


def test_what_is_no_python(tmp_path):
    assert ProbeRunner([str(tmp_path / "none")]).run().ended == "no_python"
    assert ProbeRunner([str(tmp_path / "none\0")]).run().ended == "not_python"
    (tmp_path / "text").write_text("hello")
    assert ProbeRunner([str(tmp_path / "text")]).run().ended == "not_python"
    probe = ProbeRunner(["/bin/echo"]).run()
    assert (probe.ended, probe.cells) == ("not_python", ())


@pytest.mark.parametrize(
    ("code", "ended", "error"),
    [
        ("raise ImportError('no libc10')", "broken_torch", "ImportError: no libc10"),
        ("import os; os.kill(os.getpid(), 11)", "crashed", None),
        (
            "import os, sys; print('so long', file=sys.stderr); sys.stderr.flush(); os._exit(3)",
            "exited",
            "so long",
        ),
        ("import time; time.sleep(600)", "hung", None),
    ],
)
def test_a_torch_that_cannot_be_imported(monkeypatch, tmp_path, code, ended, error):
    monkeypatch.setenv("PYTHONPATH", make_torch(tmp_path, code))
    seconds = 2.0 if ended == "hung" else TIMEOUT
    probe = ProbeRunner([sys.executable], "cpu", start_seconds=seconds).run()
    assert (probe.ended, probe.error) == (ended, error)


def test_lies_and_noise_are_not_believed(monkeypatch, tmp_path):
    """Somebody's start-up file speaks our language: the run goes on, the answers stay in bounds."""
    mark = "\\n\\x1empsbar-probe "
    lies = [
        '{"stage": "cell", "cell": "add/float16", "state": "works"}', '{"stage": 3}', "[1]", "{",
        '{"stage": "device", "device": ["x"], "cells": ["a/b", 7, null], "dtypes": [{}]}',
        '{"stage": "cell", "cell": "a/b", "state": ["works"], "seconds": "much", "memory": 1e999}',
        '{"stage": "cell", "cell": {"a": 1}}', "[" * 100_000,
    ]  # fmt: skip
    text = "".join(mark + lie for lie in lies)
    startup = (
        f"import os\nos.write(1, {text!r}.encode().decode('unicode_escape').encode() + b'\\n')\n"
    )
    monkeypatch.setenv("PYTHONPATH", add_startup(tmp_path, startup))
    probe = ProbeRunner([sys.executable], "cpu").run()
    assert probe.ended in ("ok", "stopped", "no_device", "no_torch")
    json.dumps([str(probe)])
    assert all(cell.state == "unknown" for cell in probe.cells if cell.operation == "a")


def test_from_a_bundle_whose_variables_would_break_any_other_python(monkeypatch):
    need_module("torch")
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    monkeypatch.setenv("PYTHONHOME", "/nowhere/Resources")
    assert ProbeRunner([sys.executable], "cpu").run().ended == "ok"


def test_one_that_never_reads_its_plan_does_not_hold_us(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nsleep 600\n")
    script.chmod(0o755)
    assert ProbeRunner([str(script)], "cpu", start_seconds=2.0).run().ended == "hung"
    wait_for(lambda: not find_child(), "the end of it")


@needs_mps
def test_what_torch_compile_writes_is_removed(monkeypatch, tmp_path):
    """Here it raises, because Metal's code generator is missing, and has written by then."""
    monkeypatch.setenv("SOFTMPS", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    probe = ProbeRunner([sys.executable], "mps", with_compile=True).run()
    cells = [cell for cell in probe.cells if cell.operation == "torch.compile"]
    assert [cell.dtype for cell in cells] == ["float32", "float16", "bfloat16"]
    assert {cell.state for cell in cells} == {"unsupported"}
    assert list(tmp_path.iterdir()) == []
