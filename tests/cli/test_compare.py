"""mpsbar compare FILE.py:FUNCTION as a user runs it: words, JSON, exit codes, and what can go wrong."""

import os
import signal
import subprocess
import sys
import time

import pytest
from compare_kit import needs_mps
from fork_server import run_mpsbar
from schema_kit import read_json
from worker_kit import ROOT, TIMEOUT

pytestmark = [needs_mps, pytest.mark.starts_processes]

FILE = """
import os, time
import torch
import beside  # a module in the same folder
print("noise on stdout")

def make():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    return model, torch.randn(5, 16)

def step():
    model, x = make()
    return (lambda model, x: model(x).square().mean()), model, x

def broken():
    return 1 / 0

def wrong():
    return 3

def slow():
    open("started", "w").close()
    time.sleep(600)

class Hangs(torch.nn.Module):
    def forward(self, x):
        if x.dtype == torch.float16:
            open("started", "w").close()
            time.sleep(600)
        return x

def hangs():
    return torch.nn.Sequential(torch.nn.Linear(16, 4), Hangs()), torch.randn(5, 16)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


def command(*arguments):
    return [
        sys.executable,
        "-m",
        "mpsbar",
        "compare",
        *arguments,
        "--python",
        sys.executable,
        "--no-timing",
    ]


def environment(faults=""):
    others = {k: v for k, v in os.environ.items() if not k.startswith(("MPSBAR_", "SOFTMPS"))}
    cache = {k: v for k, v in os.environ.items() if k == "SOFTMPS_CACHE"}
    return others | cache | {"SOFTMPS": "1", "SOFTMPS_FAULTS": faults, "PYTHONPATH": str(ROOT)}


def run(*arguments, faults=""):
    return run_mpsbar(command(*arguments)[3:], env=environment(faults), timeout=2 * TIMEOUT)


def test_the_culprit_in_words_and_exit_code_1(file):
    done = run(f"{file}:make", "--dtypes", "float32,float16", faults="wrong relu float16")
    assert done.returncode == 1, done.stderr
    head, _, *lines = done.stdout.splitlines()
    assert head.startswith(
        "Sequential (4 modules, 676 parameters) on mps against cpu float32, torch 2.13"
    )
    assert lines[0] == "float32 works: same top-1."
    assert lines[1].startswith("float16: wrong results from 1 (ReLU): off by up to ")
    assert "noise" not in done.stdout


def test_json_and_exit_code_0_for_a_training_step(file):
    done = run(f"{file}:step", "--dtypes", "float32", "--json", "--reference", "float64")
    assert done.returncode == 0, done.stderr
    data = read_json("compare", done.stdout)
    assert (data["kind"], data["reference"]["dtype"]) == ("training", "float64")
    assert data["dtypes"]["float32"]["gradients"]["compared"] == 4


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            "broken",
            "mpsbar: couldn't load broken(): ZeroDivisionError: division by zero\n  line 18: return 1 / 0\n",
        ),
        (
            "absent",
            "mpsbar: couldn't load absent(): AttributeError: mine.py has no function absent()\n",
        ),
        (
            "wrong",
            "mpsbar: couldn't load wrong(): TypeError: wrong() must return (model, inputs)\n",
        ),
    ],
)
def test_what_is_wrong_with_the_file(file, function, text):
    done = run(f"{file}:{function}")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", text)


def test_a_crash_is_an_answer(file):
    done = run(f"{file}:make", "--dtypes", "float16", faults="abort relu float16")
    assert done.returncode == 1
    assert done.stderr.startswith("mpsbar: the comparison crashed: SIGABRT")


@pytest.mark.parametrize("subject", ["mine.py", "absent.py:make", ":make", "mine.py:"])
def test_wrong_arguments(subject):
    done = run(subject)
    assert done.returncode == 2
    assert done.stderr.startswith("mpsbar compare: ")


def test_a_python_that_was_named_is_not_replaced(file, tmp_path):
    """The last --python counts."""
    (tmp_path / "text").write_text("hello")
    for name, words in (
        ("none", "there is no Python at {}"),
        ("text", "{} can't be run as Python"),
    ):
        python = str(tmp_path / name)
        done = run_mpsbar(
            [*command(f"{file}:make")[3:], "--python", python], env=environment(), timeout=TIMEOUT
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert words.format(python) in done.stderr


def interrupt(file, function):
    """Ctrl-C once the function has said that it started."""
    # SIGINT may be ignored by whoever started us, and would be in the child.
    start = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from mpsbar.__main__ import main; sys.exit(main())"
    arguments = [sys.executable, "-c", start, *command(f"{file}:{function}")[3:]]
    process = subprocess.Popen(
        arguments,
        env=environment(),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + TIMEOUT
    while not (file.parent / "started").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    return out, errors


def test_ctrl_c_ends_the_throwaway(file):
    assert interrupt(file, "slow")[0] == ""


def test_ctrl_c_keeps_the_dtypes_that_were_finished(file):
    out, errors = interrupt(file, "hangs")
    assert "float32 works" in out
    assert "float16" not in out.partition("torch 2")[2]
    assert errors == "mpsbar: canceled; these dtypes were finished\n"


def test_a_dtype_that_crashes_python_is_its_result(file):
    """The others are compared all the same, also where the first one crashes."""
    faults = "abort relu float32; abort relu float16"
    done = run(f"{file}:make", "--json", faults=faults)
    found = read_json("compare", done.stdout)["dtypes"]
    states = {name: each["state"] for name, each in found.items()}
    assert done.returncode == 1
    assert states == {
        "float32": "crashed", "float16": "crashed", "bfloat16": "works", "autocast float16": "crashed",
    }  # fmt: skip
    assert found["float16"]["text"].startswith("SIGABRT")
    done = run(f"{file}:make", "--dtypes", "float16,bfloat16", faults=faults)
    assert "float16: crashes Python (SIGABRT" in done.stdout
    assert "bfloat16 works" in done.stdout


def test_the_table_of_times_has_a_dtype_that_crashed_too(file):
    arguments = ["compare", f"{file}:make", "--python", sys.executable]
    dtypes = ["--dtypes", "float16,bfloat16"]
    env = environment("abort relu float16")
    done = run_mpsbar([*arguments, *dtypes], env=env, timeout=2 * TIMEOUT)
    assert (done.returncode, done.stderr.count("internal error")) == (1, 0), done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    assert rows["float16"] == ["–", "–", "–", "–", "–"]
    assert len(rows["bfloat16"]) >= 5


def test_where_every_dtype_crashes(file):
    done = run(f"{file}:make", "--dtypes", "float32,float16", faults="abort relu *")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the comparison crashed: SIGABRT" in done.stderr
