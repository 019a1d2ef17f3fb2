"""mpsbar probe as a person types it: good days, bad input, Ctrl-C, a terminal, a pipe."""

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import interpreters
import pytest
from fake_torch import add_startup
from fork_server import build_command, run_mpsbar
from probe_kit import RESULTS, add_small_speeds, hold_once, needs_mps, wait_until_held
from probe_samples import make_probe
from schema_kit import read_json
from worker_kit import ROOT, TIMEOUT, need_module

from mpsbar.cli import main, probe
from mpsbar.core.errors import UserError
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.operations import COMPILE, OPERATIONS
from mpsbar.dtypes.summary import build_probe

LONG = 3 * TIMEOUT


@pytest.fixture
def mpsbar(probe_env, tmp_path):
    def run(*arguments, command="probe", **options):
        extra = options.pop("extra", {})
        if command == "probe":
            extra = {"PYTHONPATH": add_small_speeds(tmp_path / "small speeds")} | extra
            if "SOFTMPS" in extra:
                # Its import takes seconds, and Metal's code generator is not here.
                arguments = (*arguments, "--no-compile")
        return run_mpsbar(
            [command, *arguments], env=probe_env | extra, cwd=ROOT, timeout=LONG, **options
        )

    return run


@pytest.fixture
def cpu():
    need_module("torch")
    return ("--python", sys.executable, "--device", "cpu")


def list_results(workers):
    folder = workers.folder / "data" / "probes"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_on_the_cpu_in_a_pipe(mpsbar, cpu, workers):
    done = mpsbar(*cpu)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "Everything works as expected."
    meant = sum("float32" in dtypes for name, (_, dtypes) in OPERATIONS.items() if name != COMPILE)
    assert any(line.split()[:3] == ["float32", "supported", str(meant)] for line in lines)
    (file,) = list_results(workers)
    assert f"saved in {file}" in done.stdout
    assert "\x1b" not in done.stdout


def test_json_is_the_whole_and_status_knows_it(mpsbar, cpu, workers):
    done = mpsbar(*cpu, "--json")
    record = read_json("probe", done.stdout)
    assert (done.returncode, record["device"], record["headline"]) == (0, "cpu", "as expected")
    assert len(record["cells"]) + len(record["checks"]) == RESULTS
    (file,) = list_results(workers)
    reported = [{k: v for k, v in cell.items() if k != "speed"} for cell in record["cells"]]
    assert json.loads(file.read_text())["cells"] == reported
    worker = workers.start(
        "import torch, mpsbar, time\nmpsbar.attach()\nwhile True: time.sleep(0.05)\n"
    )
    reported = read_json("status", mpsbar("--json", command="status").stdout)
    assert worker.pid in [worker_status["pid"] for worker_status in reported["workers"]]
    assert (reported["dtypes"]["device"], reported["dtypes"]["headline"]) == ("cpu", "as expected")
    assert reported["dtypes"]["verdicts"]["float32"]["verdict"] == "supported"


@needs_mps
def test_a_wrong_number_on_mps_is_said_everywhere(mpsbar, workers):
    faults = "wrong mm float16; unchanged addcdiv float32 noncontiguous"
    done = mpsbar("--python", sys.executable, extra={"SOFTMPS": "1", "SOFTMPS_FAULTS": faults})
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith(
        "WRONG RESULTS without an error: addcdiv_ and addcmul_ into"
    )
    assert "float16 gives wrong results in 3 operations: matmul, backward, autocast" in done.stdout
    workers.start("import torch, mpsbar, time\nmpsbar.attach()\nwhile True: time.sleep(0.05)\n")
    status = mpsbar(command="status").stdout
    assert "dtypes: WRONG RESULTS without an error" in status
    assert "Use float32 instead of float16 (failed operations here: 3)" in status
    code = "import mpsbar, torch; print(mpsbar.safe_dtype('mps', 'float16'), mpsbar.safe_dtype('mps', 'bfloat16'))"
    asked = subprocess.run(
        [sys.executable, "-c", code],
        env=workers.env(SOFTMPS="1"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert asked.stdout.split() == ["torch.float32", "torch.bfloat16"], asked.stderr


@needs_mps
def test_what_changed_since(mpsbar, workers, tmp_path):
    softmps = {"SOFTMPS": "1"}
    before = mpsbar("--python", sys.executable, "--json", extra=softmps | {"SOFTMPS_TORCH": "2.2"})
    (tmp_path / "before.json").write_text(before.stdout)
    done = mpsbar(
        "--python", sys.executable, "--against", str(tmp_path / "before.json"), extra=softmps
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("What changed:\n")  # what was asked is answered first
    changed = done.stdout.partition("What changed:\n")[2].splitlines()
    assert changed[0].startswith("  torch: 2.2.0+softmps → 2.13.0")
    assert "  bfloat16: unsupported → supported" in changed
    same = mpsbar(
        "--python",
        sys.executable,
        "--against",
        str(tmp_path / "before.json"),
        extra=softmps | {"SOFTMPS_TORCH": "2.2"},
    )
    assert "no operation or dtype changed" in same.stdout


# ── bad input: one clear sentence, exit code 1 or 2 ──────────────────────────────────────────────


def refused(done, code):
    assert done.returncode == code
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def test_no_torch_in_that_python(mpsbar, tmp_path):
    bare = tmp_path / "venv"
    subprocess.run(
        [interpreters.need("3.11"), "-m", "venv", "--without-pip", str(bare)], check=True
    )
    text = refused(mpsbar("--python", str(bare / "bin" / "python")), 1)
    assert text == f"mpsbar: {bare}/bin/python has no torch; choose another with --python PATH"


def test_no_torch_anywhere(probe_env, tmp_path):
    """In a Python that has mpsbar and nothing else, with nobody running."""
    bare = tmp_path / "venv"
    subprocess.run(
        [interpreters.need("3.11"), "-m", "venv", "--without-pip", str(bare)], check=True
    )
    platformdirs = Path(__import__("platformdirs").__file__).parents[1]
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "platformdirs").symlink_to(platformdirs / "platformdirs")
    code = (
        "import sys; from mpsbar.cli import main, probe; from mpsbar.core.snapshot import Snapshot\n"
        "probe.read_snapshot = lambda: Snapshot(0.0); sys.exit(main.run(['probe']))"
    )
    done = subprocess.run(
        [str(bare / "bin" / "python"), "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=LONG,
        env=probe_env | {"PATH": str(bare / "bin"), "PYTHONPATH": f"{ROOT}:{tmp_path / 'site'}"},
    )  # fmt: skip
    assert (
        refused(done, 1) == "mpsbar: no Python with torch was found; choose one with --python PATH"
    )


def test_a_path_that_is_no_python(mpsbar, tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "tool").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "folder").mkdir()
    for name in ("none", "text", "tool", "folder"):
        text = refused(mpsbar("--python", str(tmp_path / name)), 2)
        assert str(tmp_path / name) in text
    assert "there is no Python at" in refused(mpsbar("--python", str(tmp_path / "none")), 2)


def test_a_device_that_is_not_there(mpsbar, cpu):
    text = refused(mpsbar("--python", sys.executable, "--device", "mps"), 1)
    assert "has no usable mps" in text
    assert "invalid choice" in refused(mpsbar("--device", "tpu"), 2)


def test_a_python_that_prints_noise(mpsbar, cpu, tmp_path):
    noise = "import sys\nprint('noise ' * 10000)\nprint('more', file=sys.stderr)\nsys.stdout.write('rest')\n"
    path = add_startup(tmp_path / "startup", noise)
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\necho before\nPYTHONPATH={path} exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    done = mpsbar("--python", str(script), "--device", "cpu", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert read_json("probe", done.stdout)["ended"] == "ok"


def test_a_disk_that_takes_nothing(mpsbar, cpu, workers):
    """A real write that fails; what was measured is shown all the same."""

    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = mpsbar(*cpu, preexec_fn=no_files)
    assert done.returncode == 1
    assert done.stderr == "mpsbar: couldn't save the result: File too large\n"
    assert "Everything works as expected." in done.stdout
    assert list_results(workers) == []


def test_a_folder_that_cannot_be_made(mpsbar, cpu, tmp_path):
    (tmp_path / "file").write_text("")
    done = mpsbar(*cpu, extra={"MPSBAR_DATA_DIR": str(tmp_path / "file")})
    assert (done.returncode, done.stderr) == (
        1,
        "mpsbar: couldn't save the result: Not a directory\n",
    )
    assert "Everything works as expected." in done.stdout


def test_against_what_is_no_result(mpsbar, tmp_path):
    file = tmp_path / "before.json"
    assert ": No such file" in refused(mpsbar("--against", str(file)), 1)
    whole = json.dumps(build_probe(make_probe()))
    file.write_text(whole[: len(whole) // 2])
    assert "is incomplete or not JSON" in refused(mpsbar("--against", str(file)), 1)
    file.write_text(whole.replace('"schema": 1', '"schema": 2'))
    assert "written by another version of mpsbar (schema 2)" in refused(
        mpsbar("--against", str(file)), 1
    )


def test_ctrl_c_shows_what_was_measured(probe_env, cpu, workers):
    process = subprocess.Popen(
        [sys.executable, "-m", "mpsbar", "probe", *cpu], env=probe_env | {"PYTHONPATH": hold_once(workers.folder)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    wait_until_held(workers.folder)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == 130, err
    measured = re.search(rf"Canceled: measured (\d+) of {RESULTS}\b", out)
    assert measured, out
    assert 0 < int(measured[1]) < RESULTS
    assert err == ""
    (file,) = list_results(workers)
    assert json.loads(file.read_text())["ended"] == "cancelled"


# ── never disturbs ───────────────────────────────────────────────────────────────────────────────


def run_at(monkeypatch, snapshot, *arguments):
    monkeypatch.setattr(probe, "read_snapshot", lambda: snapshot)
    command = ["probe", "--python", "/nobody/python", *arguments]
    return probe.run(main.build_parser(command).parse_args(command))


def test_critical_memory_is_refused_unless_forced(monkeypatch, capsys):
    snapshot = Snapshot(0.0, machine=Machine(pressure="critical"))
    with pytest.raises(
        UserError, match=r"memory pressure is critical.*; use --force to run it anyway"
    ):
        run_at(monkeypatch, snapshot)
    with pytest.raises(
        SystemExit
    ) as caught:  # it goes on, as far as to the Python that is not there
        run_at(monkeypatch, snapshot, "--force")
    assert caught.value.code == 2
    assert "there is no Python" in capsys.readouterr().err


def test_a_busy_gpu_is_warned_of(monkeypatch, capsys):
    busy = Process(7, 0.0, "train.py", ("torch",), gpu_percent=43.0)
    with pytest.raises(SystemExit):
        run_at(monkeypatch, Snapshot(0.0, processes=(busy,)))
    assert capsys.readouterr().err.startswith("mpsbar: train.py is using 43% of the GPU")
    with pytest.raises(SystemExit):
        run_at(
            monkeypatch,
            Snapshot(0.0, processes=(Process(7, 0.0, "idle.py", ("torch",), gpu_percent=4.0),)),
        )
    assert "GPU" not in capsys.readouterr().err


# ── a terminal ───────────────────────────────────────────────────────────────────────────────────


def test_on_a_terminal(probe_env, cpu, tmp_path):
    """Signs, colour, and a bar that is gone at the end."""
    main, other = pty.openpty()
    code, fds = build_command()
    small = {"PYTHONPATH": add_small_speeds(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "probe", *cpu], env=probe_env | small | {"TERM": "xterm", "LC_ALL": "C.UTF-8", "COLUMNS": "100"},
        stdin=other, stdout=other, stderr=other, cwd=ROOT, pass_fds=fds,
    )  # fmt: skip
    os.close(other)
    shown = b""
    try:
        while chunk := os.read(main, 1 << 16):
            shown += chunk
    except OSError:  # the last writer has gone
        pass
    assert process.wait(LONG) == 0
    text = shown.decode()
    assert "░ Probing… " in text
    bars, _, page = text.rpartition("\r\x1b[K")
    assert "█" in bars
    assert "Probing" not in page
    assert "\x1b[32m●" in page
    assert "✓ supported" in page


def test_help_has_examples_and_exit_codes(mpsbar):
    done = mpsbar("--help")
    assert done.returncode == 0
    for words in ("Exit code 0", "130", "--against", "mpsbar probe --json > before.json", "256 MB"):
        assert words in " ".join(done.stdout.split())
