"""The command line as a person uses it: output, exit codes, one clear line for each mistake."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest
from worker_kit import ATTACH, NO_MPS, PATIENCE, ROOT, need_module, wait_for

from mpsbar.cli.demo import plan_workers

EMPTY = ROOT / "tests/readings/nothing-running.recording.json"
IDLE = "import time\nwhile True: time.sleep(0.05)\n"
MLX = (
    "import mlx.core as mx\nmx.set_cache_limit(1 << 30)\na = mx.ones((8 << 20,))\nmx.eval(a)\ndel a\n"
    + ATTACH
    + IDLE
)


@pytest.fixture
def mpsbar(workers):
    def run(*arguments, **extra):
        return subprocess.run(
            [sys.executable, "-m", "mpsbar", *arguments],
            env=workers.env(**extra), capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE,
        )  # fmt: skip

    return run


def test_status_of_nobody(mpsbar):
    """On a recorded machine: here others may be running something."""
    done = mpsbar("status", MPSBAR_REPLAY=str(EMPTY))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "Apple M1 · 8.0 GB · pressure normal · RECORDED\n"
        "No problems\n"
        "You have no PyTorch or MLX processes running. To start one: mpsbar run python train.py\n"
    )
    assert mpsbar(MPSBAR_REPLAY=str(EMPTY)).stdout == done.stdout


def test_a_recorded_machine_says_so_and_a_bad_one_is_a_clear_line(mpsbar, tmp_path):
    shown = mpsbar("status", MPSBAR_REPLAY="m1-8gb").stdout
    assert "RECORDED" in shown.splitlines()[0]
    assert re.search(
        r"^5000101  finetune.py +mps +2.0 GB +1.1 GB +800 MB +1.7 GB +2.2 GB +2\d%",
        shown,
        re.MULTILINE,
    )
    bad = mpsbar("status", MPSBAR_REPLAY="nope")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == "mpsbar: there is no recording nope; choose one of m1-8gb, m1max-64gb\n"


def test_status_and_free_of_a_real_worker(mpsbar, workers):
    need_module("mlx")
    worker = workers.start(MLX)
    lines = mpsbar("status").stdout.split("\n\n")[1].splitlines()
    assert lines[0].split() == [
        "PID",
        "NAME",
        "DEVICE",
        "HELD",
        "ALLOCATED",
        "CACHED",
        "PEAK",
        "RSS",
        "NOTE",
    ]
    (line,) = [words for line in lines if (words := line.split())[:1] == [str(worker.pid)]]
    line = [word for word in line if word != "└"]  # pytest has MLX loaded too by now
    assert line[:5] == [str(worker.pid), "worker0.py", "mlx", "32.0", "MB"]
    assert line[9].replace(".", "").isdigit()  # the system's own word
    (told,) = json.loads(mpsbar("status", "--json").stdout)["workers"]
    assert (told["pid"], told["device"], told["cached"] >> 20) == (worker.pid, "mlx", 32)
    done = mpsbar("free", str(worker.pid))
    assert done.returncode == 0
    # Whether its main thread comes by within 40 ms, for gc.collect(), is up to the machine.
    late = r"(; without gc\.collect\(\), its main thread could not be reached)?"
    assert re.fullmatch(
        rf"{worker.pid} worker0.py: freed 32.0 MB in [\d.]+ m?s{late}\n", done.stdout
    )
    (told,) = json.loads(mpsbar("status", "--json").stdout)["workers"]
    assert (told["cached"], told["held"]) == (0, 0)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_a_terminal_of_another_time_is_no_reason_to_fail(mpsbar, encoding):
    done = mpsbar("status", MPSBAR_REPLAY="m1-8gb", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "finetune.py" in done.stdout


def test_watching_in_a_pipe_is_one_json_line_after_the_other(workers):
    command = [sys.executable, "-m", "mpsbar", "status", "--json", "--watch", "0.05"]
    env = workers.env(MPSBAR_REPLAY="m1-8gb")
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(PATIENCE) == 0
    assert [line["schema"] for line in lines] == [1, 1, 1]
    assert lines[0]["time"] < lines[1]["time"] < lines[2]["time"]
    assert all(json.loads(line) for line in rest.splitlines())


def shown_on_a_terminal(workers, *arguments, until, code=None, **extra):
    """What `mpsbar …` writes to a terminal until it has written `until` so often, then Ctrl-C."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(ROOT)
        env = workers.env(TERM="xterm", **extra)
        how = ["-m", "mpsbar"] if code is None else ["-c", code]
        os.execve(sys.executable, [sys.executable, *how, *arguments], env)
    shown, (text, times) = b"", until
    with contextlib.suppress(OSError):  # a terminal whose program has ended
        while shown.count(text) < times:
            shown += os.read(terminal, 65536)
        os.write(terminal, b"\x03")
        while chunk := os.read(terminal, 65536):
            shown += chunk
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"Traceback" not in shown
    return shown.decode()


def test_watching_on_a_terminal_redraws_in_place_and_in_colour(workers):
    arguments = ("status", "--watch", "0.05")
    shown = shown_on_a_terminal(
        workers, *arguments, until=(b"finetune.py", 3), MPSBAR_REPLAY="m1-8gb"
    )
    assert shown.count("\x1b[H\x1b[2J") >= 3
    assert "\x1b[1m    PID  NAME" in shown
    assert "\x1b[32mNo problems" in shown


@pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_is_left_out_where_it_is_not_wanted(workers, extra):
    env = {"MPSBAR_REPLAY": "m1-8gb"} | extra
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, "-m", "mpsbar", "status"], workers.env(**env))
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(terminal, 65536):
            shown += chunk
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b"finetune.py" in shown
    assert b"\x1b" not in shown


def test_free_all(mpsbar, workers):
    started = [workers.start(ATTACH + IDLE) for _ in range(3)]
    done = mpsbar("free", "--all", "--json")
    outcomes = json.loads(done.stdout)["freed"]
    assert (done.returncode, {o["pid"] for o in outcomes}) == (0, {w.pid for w in started})
    assert {(o["state"], o["freed"]) for o in outcomes} == {("done", 0)}
    for worker in started:
        worker.end()
    assert mpsbar("free", "--all").stdout == "No processes connected\n"


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_a_busy_worker_is_exit_code_1_with_the_reason(mpsbar, workers):
    worker = workers.start_mps(
        "import torch, threading, time\na = torch.ones(4, device='mps')\n" + ATTACH
        + "threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(10**6)]).start()\n" + IDLE
    )  # fmt: skip
    done = mpsbar("free", str(worker.pid))
    assert done.returncode == 1
    assert "busy: another thread is computing (Thread-" in done.stdout


def test_a_frozen_worker_does_not_hold_the_others_up(mpsbar, workers):
    frozen, live = workers.start(ATTACH + IDLE), workers.start(ATTACH + IDLE)
    frozen.freeze()
    status = json.loads(mpsbar("status", "--json").stdout)
    assert {w["pid"]: w["state"] for w in status["workers"]} == {
        frozen.pid: "busy",
        live.pid: "live",
    }
    done = mpsbar("free", str(frozen.pid), str(live.pid), "--timeout", "0.5")
    frozen.thaw()
    assert done.returncode == 1
    assert "no answer within 500 ms" in done.stdout
    assert f"{live.pid} worker1.py: freed 0 B" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["free"], "mpsbar free: give the PIDs of workers, or --all (see mpsbar free --help)"),
        (["free", "--all", "7"], "mpsbar free: either PIDs or --all, not both (see mpsbar free --help)"),
        (["free", "x"], "mpsbar free: argument PID: not a process id: 'x' (see mpsbar free --help)"),
        (["free", "0"], "mpsbar free: argument PID: not a process id: '0' (see mpsbar free --help)"),
        (["free", "9" * 99], f"mpsbar free: argument PID: not a process id: '{'9' * 99}' (see mpsbar free --help)"),
        (
            ["free", "7", "--timeout", "nan"],
            "mpsbar free: argument --timeout: not a number of seconds between 0 and 3600: 'nan'"
            " (see mpsbar free --help)",
        ),
        (["wat"], "mpsbar: argument VERB: invalid choice: 'wat' (choose from"),
        (["status", "--nope"], "mpsbar: unrecognized arguments: --nope (see mpsbar --help)"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_clear_line_and_exit_2(mpsbar, arguments, line):
    done = mpsbar(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "verb", [[], ["status"], ["free"], ["run"], ["enable"], ["disable"], ["doctor"], ["demo"]]
)
def test_help_is_there_for_every_verb(mpsbar, verb):
    done = mpsbar(*verb, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: mpsbar")


def test_no_traceback_reaches_a_user(mpsbar, workers, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import mpsbar.monitor as m\n"
        "def tick(self): raise ValueError('planted')\n"
        "m.Monitor.tick = tick\n"
    )
    done = mpsbar("status", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "mpsbar: internal error: ValueError: planted (MPSBAR_DEBUG=1 shows where)\n"
    )
    shown = mpsbar("status", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}", MPSBAR_DEBUG="1")
    assert "Traceback" in shown.stderr


def test_a_reader_that_goes_away_is_no_tragedy(workers):
    command = f"{sys.executable} -m mpsbar status --json | true"
    done = subprocess.run(
        command, shell=True, env=workers.env(), capture_output=True, text=True, cwd=ROOT
    )
    assert done.stderr == ""


def test_the_monitor_never_imports_torch_or_mlx(workers):
    code = (
        "import sys\nfrom mpsbar.cli.parser import run\n"
        "run(['status']); run(['free', '--all'])\n"
        "import mpsbar.cli.demo\n"
        "print([m for m in ('torch', 'mlx', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=workers.env(), capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.endswith("[]\n"), done.stderr


def test_the_demo_on_a_terminal_is_live_until_ctrl_c(workers, private):
    if not plan_workers():
        pytest.skip("neither torch nor MLX is here")
    shown = shown_on_a_terminal(workers, "demo", until=(b"torch_worker.py", 3))
    assert "Quit" in shown
    assert shown.rstrip().endswith("l")  # the modes of the terminal were put back


def test_the_demo_on_a_terminal_without_textual_is_text_until_ctrl_c(workers, private):
    """The second is drawn by the ticking thread."""
    without = "import sys; sys.modules['textual'] = None; from mpsbar.__main__ import main; main()"
    until = (b"Live until Ctrl-C", 2)
    shown = shown_on_a_terminal(workers, "demo", "--recorded", until=until, code=without)
    assert "RECORDED" in shown


def test_the_demo_of_a_recorded_mac(mpsbar):
    done = mpsbar("demo", "--recorded")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "An M1 Max with 64 GB under load. Made up for this recording: everything else"
    )
    assert " Apple M1 Max · 64.0 GB · pressure normal · RECORDED\n" in done.stdout
    assert " └ 2 child processes                    ≤ 610 MB  (not connected)\n" in done.stdout


def test_the_demo_without_a_terminal_frees_real_bytes_and_ends(mpsbar, workers):
    done = mpsbar("demo")
    assert done.returncode == 0, done.stderr
    menus = done.stdout.split("⬢ ")[1:]
    assert len(menus) == 2
    expected = ["torch_worker.py"]
    expected += ["software_mps_worker.py"] if NO_MPS is None else []
    for name in expected:
        assert name in menus[0]
    freed = re.search(r"^freed ([\d.]+) ([kMG])B in ", done.stdout, re.MULTILINE)
    assert freed is not None
    assert float(freed[1]) > 0
    assert "(cached" in menus[0]
    assert "freed" in menus[1]
    assert list(workers.run_dir.iterdir()) == [] or wait_for(
        lambda: not mpsbar("status").stdout.startswith(" PID"), "end of the workers"
    )
