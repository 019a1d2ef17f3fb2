"""Real kernels, idle, busy, failed and restarted: %mpsbar, Free from outside, their names, and no ended one stays listed."""

import io
import os
import re
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import fork_server
import ipykernel_launcher
import pytest
from jupyter_client import KernelManager
from jupyter_client.provisioning import local_provisioner
from worker_kit import NO_MPS, ROOT, TIMEOUT, Client, wait_for

from mpsbar.agent import free, host_settings, notebook, notebook_text
from mpsbar.agent.progress.reader import BAR_FIELDS
from mpsbar.ui.text.progress import say_progress
from mpsbar.workers import jupyter
from mpsbar.workers.parse import _parse_progress, parse_worker
from mpsbar.workers.poll import WorkerPoll
from mpsbar.workers.request import free_worker

MB = 1024 * 1024
BIG = 600 * MB  # above 512 MB a buffer has its own heap: all of it comes back
TENSOR = f"torch.empty({BIG // 4}, device='mps')"  # not filled: that takes a third of a second
MPS = "%load_ext mpsbar\nimport torch, time, threading, sys\n"
ALLOCATED = "print(torch.mps.current_allocated_memory())"

on_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))


def launch_forked(command, *, env, cwd, **_):
    """For jupyter_client's launch_kernel: the same, with torch imported already."""
    env = env | {"JPY_PARENT_PID": str(os.getpid())}
    null = subprocess.DEVNULL
    return fork_server.start_python(command, env=env, cwd=cwd, stdout=null, stderr=null)


class Kernel:
    """A kernel as Jupyter starts it, and a notebook's end of it.

    It has torch already, as a fork, unless `fresh`: a test that looks what it says before.
    """

    def __init__(self, workers, fresh=False, **extra):
        folders = {
            name: str(workers.folder / name)
            for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")
        }
        env = workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", SOFTMPS_STRICT="1", **folders)
        env.pop("JPY_SESSION_NAME", None)
        # Not TCP: on a loaded machine a kernel that had restarted (without mpsbar, too) was at times
        # never heard of again.
        place = str(workers.folder / uuid.uuid4().hex[:8])
        self.manager = KernelManager(connection_file=f"{place}.json", transport="ipc", ip=place)
        if fresh:
            self.manager.kernel_spec.argv[0] = sys.executable
        else:
            launcher = [sys.executable, ipykernel_launcher.__file__]
            self.manager.kernel_spec.argv = [*launcher, "-f", "{connection_file}"]
        with pytest.MonkeyPatch.context() as patch:
            if not fresh:
                patch.setattr(local_provisioner, "launch_kernel", launch_forked)
            self.manager.start_kernel(
                env=env | extra,
                cwd=workers.folder,
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self.connect()

    def connect(self):
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(TIMEOUT)

    @property
    def pid(self):
        return self.manager.provisioner.pid

    def start(self, code):
        """Send a cell and go on; `finish` waits for its output."""
        return self.client.execute(code)

    def finish(self, cell):
        """All that the cell printed, and the name of the exception it ended with."""
        said = []
        while True:
            message = self.client.get_iopub_msg(TIMEOUT)
            content = message["content"]
            if message["parent_header"].get("msg_id") != cell:
                continue
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] == "display_data":
                said.append(content["data"]["text/plain"])
            elif message["msg_type"] == "error":
                said.append(content["ename"])
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                return "".join(said).strip()

    def run(self, code):
        return self.finish(self.start(code))

    def wait_printed(self, cell, text):
        while True:
            message = self.client.get_iopub_msg(TIMEOUT)
            if text in message["content"].get("text", ""):
                return
            assert message["content"].get("execution_state") != "idle", cell

    def allocated(self):
        return int(self.run(ALLOCATED))

    def restart(self):
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self.connect()

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernels(workers):
    started = []

    def start(**extra):
        started.append(Kernel(workers, **extra))
        return started[-1]

    yield start
    for kernel in started:
        kernel.end()


@pytest.fixture
def polled():
    found = WorkerPoll()
    yield found
    found.close()


def freed(told):
    """Megabytes, without the few that malloc gives back beside the device."""
    number, unit = re.match(r"freed ([\d.]+) (\w+) in [\d.]+ m?s\b", told).groups()
    return round(float(number) / 100) * 100 if unit == "MB" else 0


def rows(polled):
    return {worker.pid: worker.name for worker in polled.poll(seconds=30)}


def free_patiently(kernel):
    """What became of it: a busy machine may stand still for longer than the five seconds it is tried for."""
    return free_worker(kernel.pid, seconds=TIMEOUT, moment_seconds=60)


# ---------------------------------------------------------------------- from outside
@on_mps
def test_an_idle_kernel_is_seen_and_freed_and_goes_on(kernels, polled):
    kernel = kernels()
    assert kernel.run(MPS + f"x = {TENSOR}; y = x[:3].fill_(1).clone(); del x") == ""
    (worker,) = polled.poll(seconds=30)
    assert (worker.pid, worker.name, worker.state) == (kernel.pid, "notebook kernel", "live")
    assert worker.held >= BIG
    outcome = free_patiently(kernel)
    assert (outcome.state, outcome.reason, outcome.error) == ("done", None, None)
    assert outcome.freed >= BIG
    assert kernel.run("print((y * 2).tolist())") == "[2.0, 2.0, 2.0]"


@on_mps
def test_a_kernel_busy_in_a_cell_is_freed_or_says_so_and_computes_right(kernels, workers):
    kernel = kernels()
    kernel.run(MPS)
    cell = kernel.start(
        "import os\n"
        "print('begun', flush=True)\n"
        "total, steps = torch.zeros(1000, device='mps'), 0\n"
        "while not os.path.exists('stop'):\n"
        "    total += torch.ones(1000, device='mps'); steps += 1\n"
        "print(bool((total == steps).all()), steps > 0)"
    )
    kernel.wait_printed(cell, "begun")
    outcomes = [free_worker(kernel.pid) for _ in range(3)]
    (workers.folder / "stop").touch()
    assert kernel.finish(cell) == "True True"
    assert {outcome.state for outcome in outcomes} <= {"done", "busy"}
    assert all(outcome.reason for outcome in outcomes if outcome.state == "busy")
    assert kernel.run("print(torch.ops.softmps.counters()['overlaps'])") == "0"
    assert free_patiently(kernel).state == "done"


@on_mps
def test_a_kernel_asleep_in_a_cell_says_where_and_can_be_interrupted(kernels, workers):
    kernel = kernels()
    kernel.run(MPS + f"x = {TENSOR}; del x")
    cell = kernel.start("print('begun', flush=True)\nimport ctypes; ctypes.CDLL(None).sleep(600)")
    kernel.wait_printed(cell, "begun")
    with Client(workers.run_dir / f"{kernel.pid}.sock") as client:

        def is_asleep():
            # At first the cell may still print, in functions of its own.
            reason = client.ask("free", seconds=0.5)["reason"] or {"code": None}
            return reason["code"] == "main_unproven" and ":2 in <module>" in reason["where"]

        wait_for(is_asleep, "the cell's sleep")
    kernel.manager.interrupt_kernel()
    assert kernel.finish(cell) == "KeyboardInterrupt"
    kernel.run(f"x = {TENSOR}; del x")
    assert free_patiently(kernel).freed >= BIG


# ------------------------------------------------------------------------- the magic
@on_mps
def test_the_magic_shows_what_is_held_and_frees_it(kernels):
    kernel = kernels(fresh=True, SOFTMPS_GRAPHS="0")
    kernel.run("%load_ext mpsbar\n%load_ext mpsbar")
    assert kernel.run("%mpsbar") == "PyTorch or MLX not loaded yet"
    assert kernel.run("import torch, gc\n%mpsbar") == "mps  not initialized"
    kernel.run(f"x = {TENSOR}; y = torch.ones(1024, device='mps'); del x")
    # Small tensors share a heap of 8 MB, and 3 MB are Metal's own.
    assert kernel.run("%mpsbar").splitlines() == [
        "device    held  allocated  cached    peak",
        "mps     611 MB       4 kB  608 MB  600 MB",
    ]
    told = kernel.run("%mpsbar free")
    assert freed(told) == 600
    assert told.endswith("s; 8.0 MB can't be returned yet: live tensors share those blocks")
    assert kernel.run("%mpsbar").splitlines()[1].split()[1:3] == ["11.0", "MB"]
    assert kernel.run("print(y.sum().item())") == "1024.0"


def test_the_magic_shows_how_far_the_bars_of_the_kernel_are(kernels):
    """Between cells: a bar somebody keeps. Inside a cell: the loop that runs there."""
    kernel = kernels(fresh=True)
    kernel.run("%load_ext mpsbar\nimport io\nfrom tqdm import tqdm")
    kernel.run("kept = tqdm(total=8, desc='epochs', file=io.StringIO()); kept.update(2)")
    first, told = kernel.run("%mpsbar").splitlines()
    assert first == "PyTorch or MLX not loaded yet"
    assert re.fullmatch(r"epochs · 25% · [\d.,]+ (it/s|s/it) · .* left", told)
    kernel.run("kept.close()")
    assert kernel.run("%mpsbar") == "PyTorch or MLX not loaded yet"
    inside = kernel.run(
        "for n in tqdm(range(50), desc='cell', file=io.StringIO(), mininterval=0):\n"
        "    if n == 31:\n"
        "        %mpsbar"
    )
    assert re.search(r"\ncell · 62% · ", inside)


def test_a_bar_in_a_cell_is_read_from_outside(kernels, workers):
    """While the cell runs; numbers as the cell counts them. Drawn by ipywidgets where it is there."""
    kernel = kernels()
    kernel.run("%load_ext mpsbar\nimport time\nfrom tqdm.auto import tqdm")
    cell = kernel.start(
        "for n in tqdm(range(40), desc='in a cell', mininterval=0):\n"
        "    if n == 30:\n"
        "        print('there', flush=True)\n"
        "        while True: time.sleep(0.1)"  # a Ctrl-C just before a sleep ends it at its end
    )
    kernel.wait_printed(cell, "there")
    with Client(workers.run_dir / f"{kernel.pid}.sock") as client:
        found = client.ask("stats")["progress"]
    assert (found["name"], found["done"], found["total"]) == ("in a cell", 30, 40)
    kernel.manager.interrupt_kernel()
    assert "KeyboardInterrupt" in kernel.finish(cell)


@on_mps
def test_wrong_words_get_one_line_and_do_nothing(kernels):
    kernel = kernels()
    kernel.run(MPS + "def fail(): 1 / 0")
    kernel.run("fail()")
    for words in ("fre", "free --output", "free free", "--outputs", "free --outputs now"):
        said = kernel.run(f"%mpsbar {words}")
        assert said == (
            f"mpsbar: {words!r} is not an option; "
            "use %mpsbar, %mpsbar free [--outputs], %mpsbar tensors or %mpsbar why"
        )
    assert kernel.run("print(sys.last_type.__name__)") == "ZeroDivisionError"
    kernel.run("get_ipython().run_line_magic('mpsbar', '')")
    assert kernel.run("import mpsbar.agent.notebook as n; n.unload(get_ipython())\n%mpsbar") == (
        "UsageError: Line magic function `%mpsbar` not found."
    )


@on_mps
@pytest.mark.parametrize("failure", ["1 / 0", "eval('1 +')"])
def test_what_a_failed_cell_holds_comes_back_by_the_magic_only(kernels, polled, failure):
    kernel = kernels(SOFTMPS_GRAPHS="0")
    kernel.run(MPS + f"def fail():\n    x = {TENSOR}\n    {failure}")
    assert kernel.run("fail()").endswith("Error")
    # From outside nothing is thrown away behind the user's back: it stays allocated.
    outcome = free_patiently(kernel)
    assert (outcome.state, outcome.freed < BIG) == ("done", True)
    assert polled.poll(seconds=30)[0].main_backend.allocated >= BIG
    assert freed(kernel.run("%mpsbar free")) == 600
    assert kernel.allocated() < MB
    assert kernel.run("%tb") == "No traceback available to show."
    assert kernel.run("1 / 0") == "ZeroDivisionError"


@on_mps
def test_what_a_debugger_has_looked_at_comes_back_too(kernels):
    kernel = kernels(SOFTMPS_GRAPHS="0")
    kernel.run(MPS + f"def fail():\n    x = {TENSOR}\n    1 / 0")
    kernel.run("fail()")
    cell = kernel.client.execute("%debug", allow_stdin=True)
    for answer in ("up", "quit"):
        assert kernel.client.get_stdin_msg(TIMEOUT)["msg_type"] == "input_request"
        kernel.client.input(answer)
    kernel.finish(cell)
    assert freed(kernel.run("%mpsbar free")) == 600
    kernel.run("fail()")
    cell = kernel.client.execute("%debug", allow_stdin=True)
    assert "ipdb" in kernel.client.get_stdin_msg(TIMEOUT)["content"]["prompt"]
    kernel.client.input("quit")
    kernel.finish(cell)


@on_mps
def test_outputs_are_dropped_when_asked_and_nothing_of_the_user(kernels):
    kernel = kernels(SOFTMPS_GRAPHS="0")
    kernel.run(MPS + "class Shown:\n    def __init__(self): self.x = " + TENSOR)
    kernel.run("Shown()")
    number = int(kernel.run("print(*Out)"))
    assert freed(kernel.run("%mpsbar free")) == 0
    kernel.run(f"_99 = 'mine'; Out[99] = 'another'; kept = 1; assert _ is _{number}")
    assert freed(kernel.run("%mpsbar free --outputs")) == 600
    assert kernel.run(f"print(Out, repr(_), '_{number}' in globals(), _99, kept)") == (
        "{} '' False mine 1"
    )
    kernel.run("'next'")
    assert kernel.run("print(_, list(Out.values()))") == "next ['next']"
    kernel.run("_ = 'translate'")
    kernel.run("5")
    kernel.run("%mpsbar free --outputs")
    assert kernel.run("print(_, Out)") == "translate {}"
    kernel.run("del _")
    kernel.run("Shown()")
    assert freed(kernel.run("%mpsbar free --outputs")) == 600  # at once: no cell in between


@pytest.mark.parametrize(
    ("freed", "words"), [(0, "nothing was freed"), (20 << 20, "freed only 20.0 MB")]
)
def test_busy_says_what_was_freed_beside_it(freed, words):
    reason = {"code": "thread_computing", "where": "loader"}
    report = {"state": "busy", "reason": reason, "freed": freed, "collected": True, "not_known": [],
        "gui_toolkit": None, "main_was_waiting": False, "backends": {}}  # fmt: skip
    told = notebook_text.say_freed(report, 0)
    assert told == f"busy: another thread is computing (loader); {words}"


@on_mps
def test_beside_a_computing_thread_the_magic_says_busy_and_can_be_interrupted(kernels):
    kernel = kernels()
    kernel.run(
        MPS + "on = True\n"
        "def compute():\n"
        "    y = torch.ones(8, device='mps')\n"
        "    while on: torch.ops.softmps.busy_(y, 0.01)\n"
        "thread = threading.Thread(target=compute, name='loader'); thread.start()"
    )
    told = kernel.run("%mpsbar free")
    assert told.startswith("busy: another thread is computing (loader, ")
    assert re.search(r"\); (nothing was freed|freed only [\d.]+ [kM]?B)$", told), told
    cell = kernel.start("print('begun', flush=True)\n%mpsbar free")
    kernel.wait_printed(cell, "begun")
    kernel.manager.interrupt_kernel()
    assert kernel.finish(cell) == "KeyboardInterrupt"
    assert kernel.run("import gc; print(gc.isenabled(), sys.getswitchinterval())") == "True 0.005"
    kernel.run("on = False; thread.join()")
    assert kernel.run("%mpsbar free").startswith("freed ")
    assert kernel.run("print(torch.ops.softmps.counters()['overlaps'])") == "0"


def test_an_interrupt_leaves_nothing_of_the_process_changed(monkeypatch):
    """Ctrl-C twice can throw main out of the code that gives the host's settings back."""

    class Interrupted:
        def __init__(self, gpu_client):
            host_settings._OriginalSettings.interval = sys.getswitchinterval()
            sys.setswitchinterval(host_settings.KEEP_SECONDS)

        def step(self):
            raise KeyboardInterrupt

    usual = sys.getswitchinterval()
    monkeypatch.setattr(free, "FreeJob", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        notebook.free()
    assert sys.getswitchinterval() == usual


@on_mps
def test_before_torch_2_13_a_kernel_does_not_know(kernels):
    kernel = kernels(SOFTMPS_TORCH="2.4")
    kernel.run(MPS + f"x = {TENSOR}; del x")
    assert kernel.run("%mpsbar") == "mps  unknown"
    freed, hint = kernel.run("%mpsbar free").splitlines()
    assert freed.startswith("freed ")
    assert hint == "mps: can't tell whether this process uses it; free it from mpsbar instead"
    # The monitor has said once that it is a client of the GPU.
    kernel.run("import mpsbar.agent.methods as m; m.stats({'gpu_client': True})")
    assert "≤ 6" in kernel.run("%mpsbar")


def test_the_magic_is_there_in_terminal_ipython_too(workers):
    env = workers.env(PYTHONPATH=str(ROOT), IPYTHONDIR=str(workers.folder / "ipython"))
    code = "_ = get_ipython().run_cell('%load_ext mpsbar\\n%mpsbar')"
    command = [sys.executable, "-m", "IPython", "--no-banner", "-c", code]
    done = subprocess.run(
        command, env=env, cwd=workers.folder, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert (done.stdout.strip(), done.stderr) == ("PyTorch or MLX not loaded yet", "")


@pytest.mark.parametrize("name", ["last_traceback", "last_value", "last_type", "last_exc"])
def test_every_name_of_the_last_error_is_dropped_on_every_python(name):
    setattr(sys, name, ValueError())
    notebook.drop_errors(object())
    assert not hasattr(sys, name)
    notebook.drop_errors(object())  # and none is no error


def test_a_shell_without_magics_gets_one_line(workers, capsys, monkeypatch):
    monkeypatch.setenv("MPSBAR_DISABLE", "1")
    notebook.load(object())
    notebook.unload(object())
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("mpsbar: %mpsbar couldn't be loaded: ")
    assert second.startswith("mpsbar: %mpsbar couldn't be unloaded: ")


# ------------------------------------------------------------------ restarts and names
def test_a_restart_leaves_no_ghost_and_keeps_what_is_enabled(kernels, workers, polled, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(workers.folder / "IPYTHONDIR"))
    plain = kernels(fresh=True)
    plain.run("%load_ext mpsbar")
    jupyter.enable(Path("/nonexistent"))
    enabled = kernels(fresh=True)  # loads nothing by hand
    first = enabled.pid
    assert rows(polled) == {plain.pid: "notebook kernel", first: "notebook kernel"}
    assert enabled.run("print(sorted(n for n in dir() if 'mpsbar' in n))\n%mpsbar") == (
        "[]\nPyTorch or MLX not loaded yet"
    )
    jupyter.disable()
    plain.restart()
    jupyter.enable(Path("/nonexistent"))
    enabled.restart()
    assert enabled.pid != first
    assert rows(polled) == {enabled.pid: "notebook kernel"}
    enabled.manager.shutdown_kernel()
    assert wait_for(lambda: rows(polled) == {}, "empty list")


def test_a_kernel_has_the_name_of_its_notebook_and_its_children_have_not(kernels, polled):
    server = kernels(fresh=True, JPY_SESSION_NAME="/home/me/My Work/train.ipynb")
    server.run("%load_ext mpsbar")
    child = int(
        server.run(
            "import subprocess, sys\n"
            "code = 'import mpsbar, time; mpsbar.attach(); print(1, flush=True); time.sleep(600)'\n"
            "child = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)\n"
            "child.stdout.readline(); print(child.pid)"
        )
    )
    code = kernels(fresh=True, JPY_SESSION_NAME=str(uuid.uuid4()))
    code.run("__vsc_ipynb_file__ = '/home/me/code.ipynb'\n%load_ext mpsbar")
    assert rows(polled) == {
        server.pid: "train.ipynb",
        code.pid: "code.ipynb",
        child: "python -c",
    }
    server.run("child.kill(); child.wait()")


@pytest.mark.parametrize(
    ("notebook", "name"),
    [
        ("a.ipynb", "a.ipynb"),
        ("\x1b[31m\n.ipynb", "\ufffd[31m\ufffd.ipynb"),
        ("x" * 9000, "x" * 300),
        (["a.ipynb"], "notebook kernel"),
        (None, "notebook kernel"),
    ],
)
def test_hostile_names_stay_one_line_of_text(notebook, name):
    hello = {"argv": ["python", "-m", "ipykernel_launcher"], "notebook": notebook}
    assert parse_worker(1, hello, None, "live", 0.0).name == name


@pytest.mark.parametrize(
    ("session", "variable", "name"),
    [
        ("train.ipynb", None, "train.ipynb"),
        ("/a/b.ipynb", "/c/d.ipynb", "b.ipynb"),
        ("0b5e", "/c/d.ipynb", "d.ipynb"),
        (None, "/c/d.txt", None),
        (None, object(), None),
        (None, None, None),
    ],
)
def test_where_the_name_comes_from(monkeypatch, session, variable, name):
    class Application:
        class shell:  # noqa: N801
            user_ns = {"__vsc_ipynb_file__": variable}  # noqa: RUF012

    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if session is not None:
        monkeypatch.setenv("JPY_SESSION_NAME", session)
    monkeypatch.setattr(notebook, "_kernel", Application)
    assert notebook.find_name() == name
    monkeypatch.setattr(notebook, "_kernel", lambda: None)
    assert notebook.find_name() is None


# ----------------------------------------------------------------------------- words
@pytest.mark.parametrize("done", [0, 29, 124.5, 199, 200, 1234])
@pytest.mark.parametrize("rate", [None, 0, 0.0301, 3.14, 12_345])
def test_progress_reads_as_everywhere_else(done, rate):
    total = 200 if done <= 200 else None
    outer = {"name": "", "done": done, "total": total, "unit": "img", "rate": rate}
    steps = {"inner": None, "steps": 1200, "steps_per_second": rate}
    inner = {"name": "Epoch 3", "done": 7, "total": 9, "unit": "", "rate": rate}
    told = [None, dict.fromkeys(BAR_FIELDS) | steps]
    for left in (None, 0.2, 9.6, 119, 7200):
        bar = outer | {"seconds_left": left}
        told += [bar | steps, bar | steps | {"inner": inner | {"seconds_left": None}}]
    for progress in told:
        shown = say_progress(_parse_progress(progress))
        assert notebook_text.describe_progress(progress) == shown


def test_unknown_numbers_are_question_marks():
    unknown = dict.fromkeys(("allocated", "reserved", "driver", "peak"))
    head, row = notebook_text.describe_memory({"mps": {"state": "in use", **unknown}}).splitlines()
    assert head.split() == ["device", "held", "allocated", "cached", "peak"]  # and no limit
    assert row.split() == ["mps", "?", "?", "?", "?"]


def test_main_that_runs_the_magic_is_no_reason():
    on_main = notebook_text.say_why({"code": "main_computing", "where": "turn.py:1 in step"})
    assert on_main == "no safe moment was found"
    told = []
    reason = {"code": "main_computing", "where": "cell:1 in <module>"}
    thread = threading.Thread(target=lambda: told.append(notebook_text.say_why(reason)))
    thread.start()
    thread.join()
    assert told == ["the main thread is computing (cell:1 in <module>)"]


def test_why_asks_the_command_of_this_environment(workers, monkeypatch):
    told = notebook.why()
    assert told.startswith("mpsbar: no run that ended in the last 7 days matches 'notebook kernel'")
    monkeypatch.setattr(notebook, "_find_command", lambda: None)
    assert "isn't installed in this environment" in notebook.why()
    monkeypatch.setattr(notebook, "_find_command", lambda: ["/nowhere/mpsbar"])
    assert notebook.why().startswith("mpsbar why failed: ")


def test_the_command_is_found_on_the_path_where_only_the_agent_is(tmp_path, monkeypatch):
    from importlib import util

    def find_spec(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(util, "find_spec", find_spec)
    monkeypatch.setenv("PATH", f"relative:{tmp_path}")
    assert notebook._find_command() is None
    (tmp_path / "mpsbar").touch(0o755)
    assert notebook._find_command() == [str(tmp_path / "mpsbar")]


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "≤ 3 × 2 · 학습\n"),
        ("ascii", "<= 3 x 2 - ??\n"),
        ("no such one", "<= 3 x 2 - ??\n"),
    ],
)
def test_what_it_says_in_a_terminal_without_utf_8(monkeypatch, encoding, shown):
    from mpsbar.agent import notebook

    class Stream(io.StringIO):
        def write(self, text):
            if encoding == "ascii":
                text.encode("ascii")  # as a real stream does it
            return super().write(text)

    Stream.encoding = encoding
    out = Stream()
    monkeypatch.setattr(sys, "stdout", out)
    notebook._say("≤ 3 × 2 · 학습")
    monkeypatch.undo()
    assert out.getvalue() == shown
