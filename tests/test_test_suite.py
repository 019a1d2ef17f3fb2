"""The test suite's own machinery: groups of tests, and hosts that are forked."""

import os
import signal
import subprocess
import sys

import pytest
from fork_server import ForkedProcess, can_serve, run_python, start_python
from worker_kit import ROOT, TIMEOUT, need_module


@pytest.mark.xdist_group("checked here")
def test_tests_of_one_group_are_sent_to_one_process(request):
    if not request.config.getoption("loadgroup", False):
        pytest.skip("runs in a process of pytest-xdist with --dist loadgroup, as in make test")
    assert request.node.nodeid.endswith("@checked here")


SHOW = """
import json, os, signal, sys, threading
print(json.dumps([sys.argv, sys.orig_argv, __name__, sorted(n for n in globals() if not n.startswith("__")), os.getcwd(),
    dict(os.environ), sys.path, bool(sys.flags.dont_write_bytecode or sys.dont_write_bytecode), sys.stdin.read(),
    signal.getsignal(signal.SIGINT) is signal.default_int_handler, threading.active_count(),
    len(os.listdir("/proc/self/task")), sorted(os.listdir("/proc/self/fd"))[:3], os.getsid(0) == os.getpid()]))
print("to stderr", file=sys.stderr)
"""


@pytest.fixture
def show(tmp_path):
    """The same program as a fork with torch and as a Python of its own: their outputs."""
    need_module("torch")
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": os.environ.get("LANG", "C")}
    usual = {
        k: v for k, v in os.environ.items() if not k.startswith(("MPSBAR_", "SOFTMPS", "PYTEST"))
    }
    env = usual | env | {"PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": "1"}

    def run(command, **more):
        process = start_python(command, env=env | more, cwd=tmp_path, stdin=-1)
        out, err = process.communicate(b"hello", timeout=TIMEOUT)
        return type(process), out.decode(), err.decode(), process.returncode

    return run


def test_a_forked_host_is_like_a_python_of_its_own(show, tmp_path):
    (tmp_path / "host.py").write_text(SHOW)
    for command in (["-c", SHOW, "a", "b"], ["-B", str(tmp_path / "host.py"), "a"]):
        kind, *forked = show([sys.executable, *command])
        assert kind is ForkedProcess
        other, *fresh = show([sys.executable, *command], PYTORCH_UNKNOWN="1")
        assert other is not ForkedProcess
        fresh[0] = (
            fresh[0].replace('"PYTORCH_UNKNOWN": "1", ', "").replace(', "PYTORCH_UNKNOWN": "1"', "")
        )
        assert forked == fresh
        assert forked[1:] == ["to stderr\n", 0]


@pytest.mark.parametrize("end", ["sys.exit(3)", "1 / 0", "os.kill(os.getpid(), 9)", "os._exit(4)"])
def test_its_end_is_told(show, end):
    code = f"import os, sys, atexit; atexit.register(print, 'at exit'); {end}"
    forked, fresh = (
        show([sys.executable, "-c", code], **more)[1:] for more in ({}, {"PYTORCH_X": "1"})
    )
    assert forked[0::2] == fresh[0::2]
    assert forked[1].splitlines()[-1:] == fresh[1].splitlines()[-1:]


def test_one_that_runs_to_its_end_runs_its_exit_functions(tmp_path):
    need_module("torch")
    code = "import atexit, threading, time; atexit.register(print, 'at exit')\n"
    code += "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {
        "PYTHONUNBUFFERED": "1"
    }
    done = run_python([sys.executable, "-c", code], env=env, cwd=tmp_path, timeout=TIMEOUT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "thread\nat exit\n", "")


def test_what_a_fork_would_not_see_is_started_anew(tmp_path):
    need_module("torch")
    env = {
        k: v for k, v in os.environ.items() if not k.startswith(("MPSBAR_", "SOFTMPS", "PYTEST"))
    }
    env |= {"PYTHONUNBUFFERED": "1", "MPSBAR_RUN_DIR": "/x", "SOFTMPS": "1"}
    env.pop("PYTHONPATH", None)
    command = [sys.executable, "-c", "pass"]
    assert can_serve(command, env) is sys.platform.startswith("linux")
    assert not can_serve(["/usr/bin/python3", "-c", "pass"], env)
    assert not can_serve([sys.executable, "-W", "error", "-c", "pass"], env)
    for name in ("PYTHONWARNINGS", "PYTORCH_ENABLE_MPS_FALLBACK", "OMP_WAIT_POLICY", "LD_PRELOAD"):
        assert not can_serve(command, env | {name: "1"})
    (tmp_path / "sitecustomize.py").touch()
    assert not can_serve(command, env | {"PYTHONPATH": str(tmp_path)})


# Arguments with which it ends before it does anything.
SHOW_INTERRUPT = """
import runpy, subprocess, sys
sys.argv[1:] = ["no such thing"]
try:
    runpy.run_module(f"{sys.argv[0]}.__main__", run_name="__main__")
except BaseException as error:
    print(repr(error), file=sys.stderr)
code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.mark.parametrize("name", ["bench", "endings", "fuzz", "trust", "wild"])
def test_what_runs_without_pytest_ends_its_children_by_ctrl_c_too(name, tmp_path):
    """Started by nohup or with `&` a program ignores Ctrl-C, and its children inherit that."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = [sys.argv[1]]\n" + SHOW_INTERRUPT, name],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}", "MPSBAR_TRUST_ALONE": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr
