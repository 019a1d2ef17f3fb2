"""Real workers for tests: child processes with an agent, and a plain client to ask them with."""

import contextlib
import importlib.util
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import fork_server
import psutil
import pytest
import softmps

from mpsbar.agent import protocol

ROOT = Path(__file__).parents[1]
# A loaded two-core machine can take this long to start a child that imports torch.
TIMEOUT = 120.0
NO_MPS = softmps.why_not()

TORCH = "import torch, mpsbar\n"
IMPORTS_TORCH = re.compile(r"\bimport\b.*\btorch\b")
ATTACH = "import mpsbar; assert mpsbar.attach()\n"
# For tests that ask again and again: the agent would answer some with its last result, and rest after
# many. On one line, because answers name lines of the code that follows.
UNPACED = (
    "import mpsbar.agent.pacing as p, mpsbar.agent.server as s; "
    "p.PAUSES_AT_ONCE_SECONDS = s.ROUNDS_AT_ONCE = s.WORK_AT_ONCE_SECONDS = 1e9; del p, s"
)
# For tests that ask as a click does: the agent would wait five seconds for a main thread that may come later.
LONG_MOMENT = (
    "import mpsbar.agent.free as f, mpsbar.agent.limit as l; "
    "f.FreeJob.SECONDS = l.LimitJob.SECONDS = 25.0; del f, l\n"
)
# For hosts: `wait()` returns once SIGUSR1 has come, also if it came before main stood in its wait. One that
# comes a moment before the lock's own wait begins is noticed only when that is over: hence its time-out.
WAIT = """
import queue, signal
class Next(Exception): pass
told, is_waiting = [], False
def go_on(number, _):
    told.append(number)
    if is_waiting: raise Next
signal.signal(signal.SIGUSR1, go_on)
def get():
    while not told:
        try: queue.Queue().get(timeout=30)
        except queue.Empty: pass
def wait():
    global is_waiting
    try:
        is_waiting = True
        get()
    except Next: pass
    is_waiting = False
    return told.pop()
"""


class Worker:
    """A running child whose agent answers; `say` waits for a line it prints."""

    def __init__(self, start: Any, command: list[str], env: dict[str, str], **popen: Any) -> None:
        """`start`: subprocess.Popen, or fork_server.start_python with the same arguments."""
        self.run_dir = Path(env["MPSBAR_RUN_DIR"])
        usual = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": self.run_dir}
        self.process = start(
            command,
            env=env,
            stdout=subprocess.PIPE,
            start_new_session=True,  # its children end with it
            bufsize=0,  # wait_line selects: nothing may hide in a buffer
            **(usual | popen),
        )
        self.pid = self.process.pid
        self.lines: list[str] = []

    @property
    def path(self) -> Path:
        return self.run_dir / f"{self.pid}.sock"

    def wait_attached(self) -> "Worker":
        wait_for(lambda: self.path.exists() or self.process.poll() is not None, "an agent")
        assert self.process.poll() is None, self.end()
        return self

    def wait_line(self, text: str) -> str:
        """The next line of its output that contains `text`."""
        assert self.process.stdout is not None
        watch = selectors.DefaultSelector()
        watch.register(self.process.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and watch.select(deadline - time.monotonic()):
            line = self.process.stdout.readline().decode()
            self.lines.append(line)
            if text in line:
                return line.strip()
            if not line:
                break
        raise AssertionError(f"no line with {text!r}: {self.lines} {self.end()}")

    def connect(self, timeout: float = TIMEOUT) -> "Client":
        return Client(self.path, timeout)

    def ask(self, method: str, **params: Any) -> Any:
        with self.connect() as client:
            return client.ask(method, **params)

    def count_tensors(self, **params: Any) -> Any:
        """A count that was done: its deadline is five seconds, for which a busy machine may stand still."""

        def find_count() -> Any:
            answer = self.ask("tensors", **params)
            return answer if answer["state"] == "done" else None

        return wait_for(find_count, "a count of tensors")

    def ask_until_refused(
        self, code: str, method: str = "free", *, where: str = "", **params: Any
    ) -> Any:
        """An answer with this reason: on busy cores main may come by too late for it to be found.

        `where`: how its place ends. A thread that was just started is at first in threading's code.
        """

        def find_refusal() -> Any:
            answer = self.ask(method, **params)
            reason = answer.get("reason") or {}
            is_there = reason.get("code") == code and (reason.get("where") or "").endswith(where)
            return answer if is_there else None

        return wait_for(find_refusal, f"{code} {where}")

    def freeze(self) -> None:
        """Stopped in its tracks: no thread of it can answer until `thaw`."""
        self.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: self._are_all("T"), "stop")

    def wait_asleep(self) -> None:
        """Until main stands in the call that it said it would make: its line comes a moment before.

        It also sleeps while it waits for the GIL, but then the thread that has the GIL does not.
        """
        wait_for(lambda: self._are_all("S"), "main in its call")

    def _are_all(self, state: str) -> bool:
        """Whether all its threads are in this state (of ps), and none ran between two looks."""
        if not sys.platform.startswith("linux"):  # one state for all of it
            named = {"S": psutil.STATUS_SLEEPING, "T": psutil.STATUS_STOPPED}
            return psutil.Process(self.pid).status() == named[state]
        before, after = read_threads(self.pid), read_threads(self.pid)
        return before == after and {found for found, _ in after.values()} == {state}

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self, number: int = signal.SIGKILL) -> str:
        """Stop it and return what it wrote to stderr."""
        is_running = self.process.poll() is None  # else its number may be another process's
        family = self._descendants() if is_running and number == signal.SIGKILL else []
        if is_running:
            self.process.send_signal(number)
        for child in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        out, err = self.process.communicate(timeout=TIMEOUT)
        self.lines += out.decode(errors="replace").splitlines()
        return (err or b"").decode(errors="replace")

    def _descendants(self) -> list[psutil.Process]:
        """Also those that made sessions of their own, as torchrun's ranks do."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Client:
    """The wire as a stranger would write it: one socket, one line out, one line in."""

    def __init__(self, path: Path, timeout: float = TIMEOUT) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))  # blocking: waits for its turn in a crowd
        self.socket.settimeout(timeout)
        self.file = self.socket.makefile("rb")
        self.number = 0

    def send(self, method: str, **params: Any) -> int:
        self.number += 1
        if method == "free":
            # The longest an agent allows: on a busy machine main may need more than the usual 5 s
            # to come by. A test of the deadline names its own.
            params = {"seconds": 60} | params
        self.socket.sendall(protocol.request(self.number, method, params))
        return self.number

    def receive(self) -> dict[str, Any]:
        line = self.file.readline()
        assert line, "the connection was closed"
        return json.loads(line)

    def ask(self, method: str, **params: Any) -> Any:
        """Asked too soon after the last, a Free or a count is answered with that: asked again."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = self.ask_once(method, **params)
            if method not in ("free", "tensors") or time.monotonic() > deadline:
                return answer
            if "age" not in answer and (answer.get("reason") or {}).get("code") != "too_often":
                return answer
            time.sleep(0.1)

    def ask_once(self, method: str, **params: Any) -> Any:
        number = self.send(method, **params)
        answer = self.receive()
        assert answer["id"] == number
        return answer["result"]

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None
    ) -> None:
        self.file.close()
        self.socket.close()


def run_as_stranger(code: str) -> str:
    """What `code` prints when another user runs it. It imports before it gives root up."""
    drop = "import os, socket, time; os.setgid(65534); os.setuid(65534)\n"
    command = [sys.executable, "-c", drop + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Workers:
    """Starts workers in one run directory and ends them all."""

    def __init__(self) -> None:
        # Not pytest's tmp_path: a socket's path may have 103 bytes only.
        self.folder = Path(tempfile.mkdtemp(prefix="mpsbar-"))
        self.run_dir = self.folder / "run"
        self.run_dir.mkdir(0o700)
        self.started: list[Worker] = []

    def env(self, **extra: str | None) -> dict[str, str]:
        """A variable that is None is taken away."""
        # ipykernel leaves threads out when it sees that pytest runs it: PYTEST_CURRENT_TEST.
        ours = ("MPSBAR_", "SOFTMPS", "PYTEST")
        usual = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        places = {"MPSBAR_RUN_DIR": str(self.run_dir), "MPSBAR_DATA_DIR": str(self.folder / "data")}
        whole = usual | places | {"PYTHONUNBUFFERED": "1"} | extra
        return {name: value for name, value in whole.items() if value is not None}

    def start(
        self, code: str, *, python: str = sys.executable, fresh: bool = False, **extra: str
    ) -> Worker:
        """A child that runs `code`, which attaches; returns once its agent is there.

        `fresh`: never a fork of a Python that has torch, whose command line is not its own.
        """
        script = self.folder / f"worker{len(self.started)}.py"
        script.write_text(textwrap.dedent(code))
        forked = python == sys.executable and not fresh and bool(IMPORTS_TORCH.search(code))
        return self.run([python, str(script)], forked=forked, **extra).wait_attached()

    def start_mps(self, code: str, **extra: Any) -> Worker:
        """The same on the software MPS device, which aborts when a release overlaps an op."""
        code = textwrap.dedent(code)
        code = UNPACED + ("" if code.startswith("\n") else "; ") + code
        return self.start(code, SOFTMPS="1", SOFTMPS_STRICT="1", **extra)

    def run(
        self,
        command: list[str],
        *,
        popen: dict[str, Any] | None = None,
        forked: bool = False,
        **extra: str,
    ) -> Worker:
        """`forked`: its Python has torch imported already, see tests/fork_server.py."""
        env = self.env(**({"PYTHONPATH": str(ROOT)} | extra))
        start = fork_server.start_python if forked else subprocess.Popen
        worker = Worker(start, command, env, **(popen or {}))
        self.started.append(worker)
        return worker

    def end(self) -> None:
        for worker in self.started:
            worker.end()


def need_module(name: str) -> None:
    """Skip where no worker could import it; the test process itself does not."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"no {name} in this Python")


def fill_queue(path: Path) -> "list[socket.socket]":
    """Connections that nobody accepts, as many as the listener lets wait."""
    callers = []
    while True:
        caller = socket.socket(socket.AF_UNIX)
        caller.setblocking(False)
        callers.append(caller)
        try:
            caller.connect(str(path))
        except BlockingIOError:
            return callers


def read_threads(pid: int) -> "dict[str, tuple[str, int]]":
    """Of each thread, by its number: its state (a letter, as ps has it) and how often it has paused."""
    found = {}
    for folder in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            lines = (folder / "status").read_text().splitlines()
            fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            names = (
                "voluntary_ctxt_switches",
                "nonvoluntary_ctxt_switches",
            )  # not in every container
            switches = sum(int(fields.get(name, 0)) for name in names)
            found[folder.name] = fields["State"][0], switches
    return found


def read_command(process: psutil.Process) -> list[str]:
    """Its command line; nothing where it has ended meanwhile."""
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def wait_for(condition: Any, what: str, timeout: float = TIMEOUT) -> Any:
    """What `condition` returns, once that is true; looked at once more when the time is over."""
    deadline = time.monotonic() + timeout
    while True:
        is_last = time.monotonic() > deadline
        if value := condition():
            return value
        if is_last:
            raise AssertionError(f"no {what} within {timeout} s")
        time.sleep(0.02)
