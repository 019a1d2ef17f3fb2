"""The dtype probe's throwaway for real: on the CPU, in other Pythons, beside hostile file names."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import interpreters
import psutil
import pytest
from fake_torch import add_startup, make_torch
from probe_kit import (
    EVERY,
    RESULTS,
    add_small_speeds,
    environment,
    needs_mps,
    plan_for,
    run_child,
)
from worker_kit import ROOT, TIMEOUT, need_module, wait_for

from mpsbar.dtypes import checks, dtype_child, operations
from mpsbar.system import child_answers


@pytest.fixture(scope="module")
def on_cpu():
    need_module("torch")
    return run_child(device="cpu")


def test_every_cell_is_reported_on_the_cpu(on_cpu):
    stages, answers, done = on_cpu
    assert done.returncode == 0
    assert list(answers) == stages["device"]["cells"] == EVERY
    assert "end" in stages
    assert stages["device"]["device"] == "cpu"
    states = {cell: answer["state"] for cell, answer in answers.items()}
    assert set(states.values()) <= {"works", "unsupported", "meaningless", "right", "timed"}
    assert all(states[check] == "right" for check in checks.CHECKS)


def test_a_cell_is_executed_wherever_it_makes_sense(on_cpu):
    _, answers, _ = on_cpu
    for cell, answer in answers.items():
        operation, _, dtype = cell.partition("/")
        if dtype:
            meant = dtype in operations.OPERATIONS[operation][1]
            assert (answer["state"] == "meaningless") != meant
            # What works was computed and compared; what does not has torch's own sentence.
            assert (answer.get("error") is not None) == (answer["state"] == "works")
            assert ("Error: " in answer.get("text", "")) == (answer["state"] == "unsupported")
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        plain = [name for name in operations.OPERATIONS if name != operations.COMPILE]
        assert {answers[f"{o}/{dtype}"]["state"] for o in plain} <= {"works", "meaningless"}


def test_speeds_are_of_large_tensors_and_say_their_size(on_cpu):
    _, answers, _ = on_cpu
    speed = answers["speed:matmul"]
    assert (speed["state"], speed["size"]) == ("timed", "384×384")
    for fastest, slowest in speed["seconds"].values():
        assert 0 < fastest <= slowest


def test_an_operation_that_takes_too_long_has_no_speed(tmp_path):
    """float32 is what the others are compared with: without it none is timed."""
    need_module("torch")
    text = Path(dtype_child.__file__).read_text()
    hurried = text.replace(
        "_CALL_SECONDS, _SPEED_SECONDS = 0.2, 0.6", "_CALL_SECONDS, _SPEED_SECONDS = 0.0, 0.6"
    )
    assert hurried != text
    (tmp_path / "child.py").write_text(hurried)
    _, answers, _ = run_child(["speed:matmul"], "cpu", script=str(tmp_path / "child.py"))
    assert answers["speed:matmul"]["seconds"] == {}


COMPILED = [f"{operations.COMPILE}/{dtype}" for dtype in ("float32", "float16", "bfloat16")]


@needs_mps
@pytest.mark.parametrize(
    ("replacement", "state"),
    [
        # The eager backend runs torch's own tracing and no code generator: Metal's is not here.
        ("lambda f, **more: real(f, **more, backend='eager')", "works"),
        ("lambda f, **more: lambda *x: f(*x) * 2", "inaccurate"),
        (None, "unsupported"),
    ],
)
def test_torch_compile_works_is_wrong_or_raises(tmp_path, replacement, state):
    path = ""
    if replacement is not None:
        hook = (
            "import importlib.abc, importlib.util, sys\n"
            "class Finder(importlib.abc.MetaPathFinder):\n"
            "    def find_spec(self, name, path, target=None):\n"
            "        if name != 'torch' or self not in sys.meta_path: return None\n"
            "        sys.meta_path.remove(self)\n"
            "        spec = importlib.util.find_spec('torch')\n"
            "        sys.meta_path.insert(0, self)\n"
            "        load = spec.loader.exec_module\n"
            "        def exec_module(module):\n"
            "            load(module)\n"
            "            real = module.compile\n"
            f"            module.compile = {replacement}\n"
            "        spec.loader.exec_module = exec_module\n"
            "        return spec\n"
            "sys.meta_path.insert(0, Finder())\n"
        )
        path = add_startup(tmp_path, hook)
    stages, answers, _ = run_child(
        COMPILED[:1] if replacement is None else COMPILED, with_compile=True, PYTHONPATH=path
    )
    assert stages["device"]["cells"][-3:] == COMPILED
    assert {answers[cell]["state"] for cell in COMPILED if cell in answers} == {state}
    if replacement is None:
        assert "MPS is not available" in answers[COMPILED[0]]["text"]


def test_the_error_is_that_of_the_dtype(on_cpu):
    """Rounding shows, and is far from the tolerance: neither is invented."""
    _, answers, _ = on_cpu
    assert 0 <= answers["linear/float64"]["error"] < answers["linear/float32"]["error"]
    assert answers["linear/float32"]["error"] < answers["linear/float16"]["error"]
    assert answers["linear/float16"]["error"] < answers["linear/bfloat16"]["error"] < 0.05
    assert answers["matmul/int8"]["error"] == 0


def test_memory_stays_below_the_ceiling(on_cpu):
    _, answers, _ = on_cpu
    assert 0 < max(answer["memory"] for answer in answers.values()) < 256 << 20


def test_a_low_ceiling_is_held(tmp_path):
    """Either torch is refused the memory, or the throwaway stops by itself; nothing goes on above."""
    need_module("torch")
    small = add_small_speeds(tmp_path)
    stages, answers, done = run_child(device="cpu", ceiling=4 << 20, PYTHONPATH=small)
    assert done.returncode == 0
    assert "end" in stages
    over = [a for a in answers.values() if a["memory"] > 4 << 20]
    assert len(over) <= 1  # the one after which it stopped
    assert len(answers) < len(EVERY) or any(a["state"] == "no_memory" for a in answers.values())


@needs_mps
def test_on_mps_the_limit_is_torchs_own():
    _, answers, _ = run_child(["long_matmul", "add/float32"], ceiling=12 << 20)
    assert answers["add/float32"]["state"] == "works"
    assert answers["long_matmul"]["state"] == "no_memory"
    assert "MPS backend out of memory" in answers["long_matmul"]["text"]


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_a_python_without_torch(tmp_path, version):
    base = interpreters.need(version)
    subprocess.run([base, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    stages, answers, done = run_child(
        device="cpu", python=str(tmp_path / "venv" / "bin" / "python")
    )
    assert (done.returncode, stages["torch"]["found"], answers) == (0, False, {})
    assert stages["python"]["version"].startswith(f"{version}.")
    assert stages["python"]["prefix"] == os.path.realpath(tmp_path / "venv")
    assert not list((tmp_path / "venv").rglob("__pycache__"))


@pytest.mark.parametrize("version", interpreters.OLDEST_AND_NEWEST)
def test_the_texts_it_is_handed_are_python_3_9(version, tmp_path):
    """Loaded in an old Python, with a torch that has no dtype at all."""
    path = make_torch(
        tmp_path,
        "__version__ = '9.9'\nset_num_threads = set_warn_always = print\nclass ones:\n    def __init__(s, *a, **k): pass\n    sum = item = lambda s: s\n",
    )
    stages, answers, done = run_child([], "cpu", python=interpreters.need(version), PYTHONPATH=path)
    assert stages["device"]["cells"] == list(checks.CHECKS), done.stderr
    assert answers == {}


def test_noise_at_start_and_a_torch_that_prints_hide_nothing(tmp_path):
    need_module("torch")
    noise = "import sys, os\nprint('hello ' * 5000)\nsys.stdout.write('no newline')\nsys.stdout.flush()\nos.write(1, b'\\x1e half')\n"
    stages, answers, _ = run_child(
        ["add/float32"], "cpu", PYTHONPATH=add_startup(tmp_path / "s", noise)
    )
    assert answers["add/float32"]["state"] == "works"
    assert "end" in stages


def test_its_folder_hides_nobodys_modules(tmp_path):
    """Beside it lie files named as modules that torch imports."""
    need_module("torch")
    entry = shutil.copy(child_answers.__file__, tmp_path / "entry.py")
    shutil.copy(dtype_child.__file__, tmp_path / "child.py")
    for name in ("types", "json", "warnings", "random", "numpy", "operations"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hidden')")
    # The first three are imported before the path is put in order by Python itself, or not at all.
    script = str(tmp_path / "child.py")
    _, answers, done = run_child(["add/float32"], "cpu", entry=str(entry), script=script)
    assert answers["add/float32"]["state"] == "works", done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == []


def test_lowest_priority(tmp_path):
    path = make_torch(tmp_path, "import time\ntime.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-B", child_answers.__file__, dtype_child.__file__], env=environment(PYTHONPATH=path), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        process.stdin.write(f"{__import__('json').dumps(plan_for([], 'cpu'))}\n")
        process.stdin.flush()
        wait_for(lambda: psutil.Process(process.pid).nice() == 19, "the lowest priority")
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT)


def test_from_an_archive(tmp_path):
    """Where mpsbar itself is zipped the throwaway is still a file of its own."""
    need_module("torch")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for source in (ROOT / "mpsbar").rglob("*.py"):
            archive.write(source, source.relative_to(ROOT))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import mpsbar; assert '.zip' in mpsbar.__file__\n"
        "from mpsbar.dtypes.runner import ProbeRunner; p = ProbeRunner([sys.executable], 'cpu').run()\n"
        "print(p.ended, p.measured, p.error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "app.zip")],
        env=environment(PYTHONPATH=add_small_speeds(tmp_path / "small speeds")),
        capture_output=True, text=True, cwd=tmp_path, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.stdout.split() == ["ok", str(RESULTS), "None"], done.stderr


def test_without_its_starter_it_ends(tmp_path):
    """A starter that was killed leaves nobody behind for long."""
    need_module("torch")
    code = (
        "import json, os, subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-B', *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)\n"
        "p.stdin.write(sys.stdin.buffer.read()); p.stdin.close(); print(p.pid, flush=True); os._exit(0)"
    )
    import json

    done = subprocess.run(
        [sys.executable, "-c", code, child_answers.__file__, dtype_child.__file__], input=json.dumps(plan_for(None, "cpu")) + "\n",
        env=environment(), capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    wait_for(lambda: not psutil.pid_exists(int(done.stdout)), "end of the orphan")
