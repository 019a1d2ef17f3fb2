"""`mpsbar run --explain`: what falls back to the CPU, counted in the program's own processes."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from cli.command_kit import run_command
from probe_kit import needs_mps
from schema_kit import read_json
from worker_kit import ROOT, TIMEOUT

WARNING = "The operator 'aten::{}' is not currently supported on the MPS backend and will fall back to run on the CPU."
# What torch does: warn in a place of its own, and print its log after Python has ended. It is imported before
# the agent, so what it registers runs after the agent's.
TORCH = f"""
import atexit, os, warnings
__version__ = "2.13.0"
always = False
def set_warn_always(value):
    global always
    always = value
def fall(name):
    if always or not fall.told:
        fall.told = True
        warnings.warn({WARNING!r}.format(name), stacklevel=1)
fall.told = False
def print_log():
    if os.environ.get("PYTORCH_MPS_LOG_PROFILE_INFO") == "64" and os.path.exists("log.txt"):
        os.write(2, open("log.txt", "rb").read())
atexit.register(print_log)
"""


@pytest.fixture
def folder(workers):
    path = workers.folder / "program"
    path.mkdir()
    package = path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(TORCH)
    return path


@pytest.fixture
def run(workers, folder):
    def run(code, *arguments, **extra):
        (folder / "train.py").write_text(textwrap.dedent(code))
        return subprocess.run(
            [sys.executable, "-m", "mpsbar", "run", "--explain", *arguments, sys.executable, "train.py"],
            env=workers.env(PYTHONPATH=str(ROOT), **extra), cwd=folder, capture_output=True, text=True,
            timeout=3 * TIMEOUT,
        )  # fmt: skip

    return run


def lines_of(done):
    return done.stderr.partition("CPU fallbacks")[2].splitlines()


def test_each_is_counted_and_shown_once(run):
    done = run(
        """
        import torch, warnings
        for _ in range(37):
            torch.fall("cumsum.out")
        with warnings.catch_warnings(record=True):
            warnings.warn("other")
            torch.fall("cumsum.out")
        def step():
            torch.fall("_linalg_eigh.eigenvalues")
        step()
        warnings.warn("mine")
        raise SystemExit(3)
        """
    )
    assert done.returncode == 3
    assert done.stderr.count("'aten::cumsum.out' is not currently supported") == 1
    assert done.stderr.count("UserWarning: mine") == 1
    lines = lines_of(done)
    assert lines[0] == ": 2 operations, 39 times"
    assert lines[1] == "    aten::cumsum.out: 38 times, first at train.py:4"
    assert lines[3] == "    aten::_linalg_eigh.eigenvalues: once, first at train.py:9"
    assert "native on MPS from torch 2.14: upgrade torch (this is 2.13.0)" in lines[4]
    assert "How long they took is not known" in done.stderr


def test_torchs_own_log_adds_time_and_bytes(run, folder):
    (folder / "log.txt").write_text(
        f"{' CPU Fallback Profiling: Total 40 Runs, 12.00 ms, 2.00 MiB Copies ':-^150}\n"
        "  ID | #Runs | Mean CPU(ms) | Total CPU(ms) | Copy Overhead | Operation Name\n"
        + "-"
        * 150
        + "\n"
        "  1     40        0.300          1200.000        2.00 MiB     aten::cumsum\nlast line of the program\n"
    )
    code = 'import torch\nfor _ in range(3): torch.fall("cumsum.out")\n'
    done = run(code)
    assert "aten::cumsum.out: 40 times, 1.2 s, 2.0 MB copied, first at train.py:2" in done.stderr
    assert "Profiling" not in done.stderr
    assert done.stderr.count("last line of the program") == 1  # nothing of the program's is lost
    assert "not known" not in done.stderr
    # A log that the user asked for is the user's.
    done = run(code, PYTORCH_MPS_LOG_PROFILE_INFO="64")
    assert "CPU Fallback Profiling: Total 40 Runs" in done.stderr
    assert "aten::cumsum.out: 3 times, first at" in done.stderr


def test_children_are_added_and_one_that_is_killed_is_said(run):
    done = run(
        """
        import os, signal, subprocess, sys, torch
        for _ in range(5): torch.fall("a")
        child = os.fork()
        if not child:
            for _ in range(8): torch.fall("a")
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run([sys.executable, "-c", "import torch\\nfor _ in range(4): torch.fall('b')"])
        code = "import torch, os\\nfor _ in range(8): torch.fall('c')\\nos.kill(os.getpid(), 9)"
        subprocess.run([sys.executable, "-c", code])
        """
    )
    text = "\n".join(lines_of(done))
    assert "aten::a: 13 times" in text
    assert "aten::b: 4 times" in text
    assert "aten::c: 8 times" in text
    assert "A process ended before it could report everything: there may be more." in text


def test_none_and_not_known(run):
    assert lines_of(run("import torch"))[0] == ": none"
    assert lines_of(run("print('no torch')"))[0].startswith(
        ": unknown, because no connected process"
    )


def test_json_has_them_and_the_folder_is_gone(run, folder, tmp_path):
    file = tmp_path / "run.json"
    done = run('import torch; torch.fall("lcm")', "--summary=json", str(file), TMPDIR=str(tmp_path))
    assert "CPU fallbacks" not in done.stderr
    record = read_json("run-summary", file.read_text())
    assert record["cpu_fallbacks"] == 1
    (one,) = record["fallbacks"]
    assert (one["name"], one["count"], one["seconds"]) == ("aten::lcm", 1, None)
    assert one["where"] == f"{folder / 'train.py'}:1"
    assert "torch 2.13.0 has it on MPS" in one["remedy"]
    assert record["fallbacks_complete"] is True
    assert [path.name for path in Path(tmp_path).iterdir()] == ["run.json"]


def test_without_it_nothing_is_counted(workers, folder):
    (folder / "train.py").write_text(
        "import torch, warnings\nprint(torch.always, warnings._showwarnmsg.__module__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mpsbar", "run", sys.executable, "train.py"], cwd=folder,
        env=workers.env(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.stdout == "False warnings\n"


def test_a_file_that_cannot_be_written_disturbs_nobody(run):
    done = run(
        'import os, shutil, torch\nshutil.rmtree(os.environ["MPSBAR_EXPLAIN"])\ntorch.fall("x")\nprint("fine")'
    )
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert done.stderr.count("UserWarning") == 1
    assert "Traceback" not in done.stderr


def test_without_a_temporary_folder_it_runs_all_the_same(run, folder):
    done = run("print('fine')", TMPDIR=str(folder / "none"), PATH="", TEMP="", TMP="")
    assert done.stdout == "fine\n"


@needs_mps
def test_for_real_and_why_knows_it(workers, tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\nx = torch.ones(4, 4, device='mps', requires_grad=True)\n"
        "for _ in range(20):\n    y = x.cumsum(0)\n"
        "torch.nn.functional.softmax(x, -1).sum().backward()\n"
    )
    faults = "fallback cumsum *; fallback _softmax *"
    env = workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", SOFTMPS_FAULTS=faults)
    done = subprocess.run(
        [sys.executable, "-m", "mpsbar", "run", "--explain", sys.executable, "train.py"], env=env, cwd=tmp_path,
        capture_output=True, text=True, timeout=5 * TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "aten::cumsum: 20 times, first at train.py:4" in done.stderr
    assert "aten::_softmax: once, first at train.py:5" in done.stderr
    why = subprocess.run(
        [sys.executable, "-m", "mpsbar", "why", "train.py"], env=env, cwd=ROOT, capture_output=True, text=True,
        timeout=TIMEOUT,
    )  # fmt: skip
    file = tmp_path / "train.py"
    assert f"aten::cumsum: 20 times, first at {file}:4\n" in why.stdout
    assert f"aten::_softmax: once, first at {file}:5\n      → torch 2.13.0" in why.stdout


def test_why_and_the_report_have_time_and_bytes_of_torchs_log(run, workers, folder):
    """torch prints it after the agent's record was left: `mpsbar run` completes that."""
    rule = "-" * 150
    (folder / "log.txt").write_text(
        f"{' CPU Fallback Profiling: Total 40 Runs, 12.00 ms, 2.00 MiB Copies ':-^150}\n"
        f"  ID | #Runs | Mean CPU(ms) | Total CPU(ms) | Copy Overhead | Operation Name\n{rule}\n"
        "  1     40        0.300          1200.000        2.00 MiB     aten::cumsum\n"
    )
    done = run('import torch\nfor _ in range(3): torch.fall("cumsum.out")\n')
    assert "1.2 s, 2.0 MB copied" in done.stderr

    def read(*arguments):
        done = run_command(workers, *arguments, PYTHONPATH=str(ROOT), HOME=str(folder.parent))
        assert done.returncode == 0, done.stderr
        return done.stdout

    line = "aten::cumsum.out: 40 times, 1.2 s, 2.0 MB copied, first at ~/program/train.py:2"
    assert line in read("why", "train.py")
    ((one,),) = (record["fallbacks"] for record in json.loads(read("why", "--json")))
    assert (one["count"], one["seconds"], one["copied"]) == (40, 1.2, 2 << 20)
    page = Path(read("report", "-o", str(folder / "report.html")).strip()).read_text()
    text = re.sub(r"<[^>]+>", " ", page)
    assert re.search(r"aten::cumsum.out\s+40 times\s+1.2 s\s+2.0 MB\s+~/program/train.py:2", text)


@needs_mps
def test_a_summary_without_it_names_the_first(workers, tmp_path):
    """No warning is added, none is hidden, and nothing of the host is changed for that."""
    (tmp_path / "train.py").write_text(
        "import torch, warnings\nx = torch.ones(4, 4, device='mps')\n"
        "for _ in range(20):\n    y = x.cumsum(0)\n"
        "torch.nn.functional.softmax(x, -1)\n"
        "assert warnings._showwarnmsg.__module__ == 'warnings'\n"
    )
    faults = "fallback cumsum *; fallback _softmax *"
    env = workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", SOFTMPS_FAULTS=faults)
    done = subprocess.run(
        [sys.executable, "-m", "mpsbar", "run", "--summary", sys.executable, "train.py"], env=env, cwd=tmp_path,
        capture_output=True, text=True, timeout=5 * TIMEOUT,
    )  # fmt: skip
    assert done.stderr.count("UserWarning") == 1
    lines = [line.strip() for line in lines_of(done)]
    assert lines[:2] == [": at least one", "aten::cumsum, at train.py:4"]
    assert (
        lines[-1]
        == "Without mpsbar run --explain, only the first operation of each process is known."
    )
