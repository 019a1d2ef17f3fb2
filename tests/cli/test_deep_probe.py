"""mpsbar probe --deep as a person types it: a table, JSON, CSV, --only, --against, Ctrl-C, mistakes."""

import contextlib
import csv
import os
import pty
import signal
import subprocess
import sys
import threading

import pytest
from fork_server import build_command, run_mpsbar
from probe_kit import LOAD_SAMPLES, LOAD_SAMPLES_ON_MPS, needs_mps
from schema_kit import read_json
from worker_kit import ROOT, TIMEOUT, need_module

pytestmark = pytest.mark.xdist_group("samples")  # one process that has torch's samples serves all
LONG = 6 * TIMEOUT  # two imports of torch and of its samples on a busy machine


@pytest.fixture
def mpsbar(probe_env):
    need_module("torch")

    def run(*arguments, **extra):
        arguments = ["probe", "--python", sys.executable, *arguments]
        after = LOAD_SAMPLES_ON_MPS if "SOFTMPS" in extra else LOAD_SAMPLES
        return run_mpsbar(arguments, env=probe_env | extra, cwd=ROOT, timeout=LONG, after=after)

    return run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "mm"), "--only requires --deep"), (("--csv",), "--csv requires --deep"),
        (("--restart",), "--restart requires --deep"),
        (("--deep", "--csv", "--json"), "either --json or --csv, not both"),
    ],
)  # fmt: skip
def test_mistakes(mpsbar, arguments, words):
    done = mpsbar(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"mpsbar probe: {words} (see mpsbar probe --help)\n"


@needs_mps
def test_json_and_csv_and_what_changed(mpsbar, tmp_path):
    bad = mpsbar(
        "--deep", "--only", "cumsum", "--json", SOFTMPS="1", SOFTMPS_FAULTS="wrong cumsum float16"
    )
    record = read_json("probe-deep", bad.stdout)
    assert (bad.returncode, record["kind"], record["device"]) == (1, "mpsbar deep probe", "mps")
    (worse,) = [cell for cell in record["cells"] if cell["news"] == "worse"]
    assert (worse["operation"], worse["dtype"], worse["state"]) == (
        "cumsum",
        "float16",
        "inaccurate",
    )
    (tmp_path / "before.json").write_text(bad.stdout)
    good = mpsbar(
        "--deep", "--only", "cumsum", "--against", str(tmp_path / "before.json"), SOFTMPS="1"
    )
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith(
        "What changed:\n  cumsum (float16): wrong results → works\n\nNothing is worse than torch itself expects.\n"
    )
    table = mpsbar("--deep", "--only", "cumsum", "--csv", "--device", "cpu")
    rows = list(csv.DictReader(table.stdout.splitlines()))
    assert (len(rows), rows[0]["state"], rows[0]["expected"]) == (12, "works", "works")


def test_a_pattern_that_fits_nothing(mpsbar):
    done = mpsbar("--deep", "--only", "no_such_operation", "--device", "cpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no torch operation matches 'no_such_operation'" in done.stderr


def test_a_file_of_the_quick_probe_is_no_deep_one(mpsbar, tmp_path):
    (tmp_path / "quick.json").write_text('{"kind": "mpsbar probe", "schema": 1, "ended": "ok"}')
    done = mpsbar("--deep", "--against", str(tmp_path / "quick.json"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "not a result of mpsbar probe --deep" in done.stderr


def read_to_end(terminal, chunks):
    with contextlib.suppress(OSError):  # the last writer has gone
        while chunk := os.read(terminal, 4096):
            chunks.append(chunk)


def test_ctrl_c_keeps_what_was_measured(probe_env):
    """On a terminal: a bar with the time left; the next run goes on."""
    need_module("torch")
    ours, theirs = pty.openpty()
    # SIGINT may be ignored in the run of the tests, which a child inherits.
    usual = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    how, fds = build_command(LOAD_SAMPLES)
    arguments = ["probe", "--deep", "--device", "cpu", "--python", sys.executable]
    process = subprocess.Popen(
        [sys.executable, "-c", usual + how, *arguments], env=probe_env | {"TERM": "xterm"}, cwd=ROOT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True, pass_fds=fds,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while b"left" not in shown:
            chunk = os.read(ours, 4096)
            assert chunk, shown
            shown += chunk
        rest = []
        reader = threading.Thread(target=read_to_end, args=(ours, rest))
        reader.start()  # a terminal that nobody reads is full after some bars
        process.send_signal(signal.SIGINT)
        out = process.stdout.read().decode()
        assert process.wait(LONG) == 130
        reader.join(TIMEOUT)
        shown += b"".join(rest)
    finally:
        process.kill()
        process.wait(TIMEOUT)
        os.close(ours)
    assert "█" in shown.decode()
    assert "run the same command again to continue" in shown.decode()
    assert "Canceled: measured " in out
