"""`mpsbar run`: the command as without it, only seen."""

import os
import pty
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from worker_kit import ROOT, TIMEOUT, Client, wait_for

RUN = [sys.executable, "-m", "mpsbar", "run"]
THREADS = "import sys; print(len(sys._current_frames()), flush=True)"


@pytest.fixture
def folder(workers):
    """A program's own folder; torch is a small stand-in there unless the real one is meant."""
    path = workers.folder / "program"
    path.mkdir()
    return path


@pytest.fixture
def stand_in(folder):
    (folder / "torch.py").write_text("__version__ = 'stand-in'\n")
    return folder


def run(workers, *command, cwd, env=None, **options):
    return subprocess.run(
        [*RUN, *command], env=workers.env(PYTHONPATH=str(ROOT)) | (env or {}), cwd=cwd,
        capture_output=True, text=True, timeout=TIMEOUT, **options,
    )  # fmt: skip


def test_arguments_exit_code_stdin_and_output_are_the_commands_own(workers, stand_in):
    (stand_in / "train.py").write_text(
        "import sys, torch\nprint(sys.argv[1:], sys.stdin.read(), __name__, __file__)\n"
        f"{THREADS}\nprint('err', file=sys.stderr)\nsys.exit(7)\n"
    )
    done = run(
        workers, sys.executable, "train.py", "--json", "a b", "--", "-h", cwd=stand_in, input="in"
    )
    assert done.returncode == 7
    assert done.stdout == (
        f"['--json', 'a b', '--', '-h'] in __main__ {stand_in / 'train.py'}\n2\n"
    )
    assert done.stderr == "err\n"


def test_modules_spawned_children_and_launchers_are_seen(workers, stand_in):
    (stand_in / "work.py").write_text(
        textwrap.dedent("""
            import multiprocessing, subprocess, sys
            def child(_):
                import sys, torch
                return sys.modules["mpsbar_agent.lifecycle"].is_attached()
            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.map(child, [0]), flush=True)
                subprocess.run([sys.executable, "-c", "import work; print(work.child(0))"])
        """)
    )
    done = run(workers, sys.executable, "-m", "work", cwd=stand_in)
    assert done.stderr == ""
    pool, launched = done.stdout.splitlines()
    assert (pool, launched) == ("[True]", "True")


def test_a_users_own_sitecustomize_still_runs(workers, stand_in):
    (stand_in / "own").mkdir()
    (stand_in / "own" / "sitecustomize.py").write_text("import sys; sys.mine = __file__\n")
    code = (
        "import sys, sitecustomize; print(sys.mine == sitecustomize.__file__); print(sys.path[1:3])"
    )
    env = {"PYTHONPATH": f"{ROOT}{os.pathsep}{stand_in / 'own'}"}
    done = run(workers, sys.executable, "-c", code, cwd=stand_in, env=env)
    assert (done.stdout, done.stderr) == (f"True\n{[str(ROOT), str(stand_in / 'own')]}\n", "")


def test_a_users_failing_sitecustomize_fails_as_without_us(workers, stand_in):
    (stand_in / "own").mkdir()
    (stand_in / "own" / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    env = workers.env(PYTHONPATH=f"{ROOT}{os.pathsep}{stand_in / 'own'}")
    command = [sys.executable, "-c", "print(1)"]
    plain = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    # The command only, not mpsbar itself, is to meet it.
    ours = [sys.executable, "-I", "-c", (
        f"import sys, os; sys.path.insert(0, {str(ROOT)!r})\n"
        "from mpsbar.workers.run import build_environment\n"
        "os.execve(sys.argv[1], sys.argv[1:], build_environment(os.environ))"
    ), *command]  # fmt: skip
    done = subprocess.run(ours, env=env, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.stdout, done.stderr, done.returncode) == (plain.stdout, plain.stderr, 0)
    assert "ValueError: mine" in plain.stderr


@pytest.mark.parametrize("flag", ["-I", "-E"])
def test_an_isolated_python_runs_untouched_and_we_say_why(workers, stand_in, flag):
    done = run(workers, sys.executable, flag, "-c", f"{THREADS}", cwd=stand_in)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr == (
        f"mpsbar: not connected: python {flag} ignores PYTHONPATH; "
        f"mpsbar enable --python {sys.executable} works there too\n"
    )


def test_an_agent_that_cannot_start_says_so_in_one_line(workers, stand_in):
    env = {"MPSBAR_RUN_DIR": "/dev/null/run"}
    done = run(workers, sys.executable, "-c", "import torch; print(1)", cwd=stand_in, env=env)
    assert done.stdout == "1\n"
    assert done.stderr.startswith("mpsbar: not attached: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        (["no-such-command"], 127, "mpsbar run: no-such-command: command not found\n"),
        (["./train.py"], 126, "mpsbar run: ./train.py: Permission denied; mpsbar run python ./train.py …\n"),
        ([], 2, "mpsbar run: no command given; for example: mpsbar run python train.py (see mpsbar run --help)\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_line_and_the_shells_exit_code(
    workers, folder, command, code, line
):
    (folder / "train.py").touch()
    done = run(workers, *command, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", line)


def test_the_process_is_the_command_itself_and_gets_its_signals(workers, stand_in):
    code = (
        "import signal, sys, time, torch\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9))\nprint('up', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    worker = workers.run([*RUN, sys.executable, "-c", code], popen={"cwd": stand_in})
    worker.wait_line("up")
    assert worker.ask("hello")["argv"][1] == "-c"
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.process.wait(TIMEOUT) == 9


@pytest.mark.parametrize("options", [(), ("--summary",)])
def test_the_command_ignores_no_signal_that_only_python_ignores(workers, stand_in, options):
    """`yes | head` must end: Python ignores SIGPIPE, and an exec would hand that on."""
    if not Path("/proc/self/status").exists():
        pytest.skip("Linux says in /proc which signals a process ignores")
    code = "grep SigIgn /proc/self/status"
    done = run(workers, *options, "sh", "-c", code, cwd=stand_in)
    alone = subprocess.run(["sh", "-c", code], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == alone.stdout
    assert done.stdout.startswith("SigIgn:")
    script = f"{shlex.join([*RUN, *options])} yes | head -n 1"
    env = workers.env(PYTHONPATH=str(ROOT))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], env=env, cwd=stand_in, capture_output=True,
        text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("y\n", 128 + signal.SIGPIPE)


def test_a_terminal_stays_a_terminal(workers, stand_in):
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(stand_in)
        code = "import sys, torch; print(sys.stdin.isatty(), sys.stdout.isatty(), input())"
        os.execve(
            sys.executable, [*RUN, sys.executable, "-c", code], workers.env(PYTHONPATH=str(ROOT))
        )
    os.write(terminal, b"typed\n")
    shown = b""
    while b"True True typed" not in shown:
        shown += os.read(terminal, 1000)
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)


def test_torchrun_ranks_are_seen_under_their_launcher(workers, folder):
    """Real torchrun, real torch, two ranks on loopback."""
    (folder / "rank.py").write_text(
        "import os, time, torch\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "total = torch.ones(1); dist.all_reduce(total)\n"
        "with open(f'rank{dist.get_rank()}.part', 'w') as file: print(os.getpid(), total.item(), file=file)\n"
        "os.rename(file.name, file.name[:-5])\n"
        "while not os.path.exists('stop'): time.sleep(0.1)\n"
        "dist.destroy_process_group()\n"
    )
    command = [
        *RUN, sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", "2", "rank.py",
    ]  # fmt: skip
    launcher = workers.run(command, popen={"cwd": folder}, OMP_NUM_THREADS="1")
    for rank in ("rank0", "rank1"):
        wait_for((folder / rank).exists, rank)
        pid, total = (folder / rank).read_text().split()
        assert total == "2.0"
        path = workers.run_dir / f"{pid}.sock"
        wait_for(path.exists, "agent in the rank")
        with Client(path) as client:
            assert client.ask("hello")["parent"] == launcher.pid
    (folder / "stop").touch()
    assert launcher.process.wait(TIMEOUT) == 0


def test_in_the_app_others_run_a_copy_of_the_agent(private, monkeypatch, capsys):
    """They write bytecode beside what they import, and nothing may be written into the app."""
    from mpsbar.cli.run import _build_environment
    from mpsbar.workers.run import SITE

    monkeypatch.setenv("PYTHONPATH", "/mine")
    assert _build_environment()["PYTHONPATH"] == f"{SITE}:/mine"
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    first, mine = _build_environment()["PYTHONPATH"].split(":")
    assert first.startswith(str(private / "data"))
    assert mine == "/mine"
    (private / "file").write_text("")
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(private / "file"))
    assert _build_environment()["PYTHONPATH"] == "/mine"
    assert "mpsbar: not connected: couldn't copy the agent" in capsys.readouterr().err
