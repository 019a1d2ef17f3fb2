"""Runs a real program alone, then under `mpsbar run` while it is polled and freed, and compares."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fork_server
from changed_package import ChangedPackage
from screen_kit import start_screen, why_no_screen
from worker_kit import Client

from mpsbar.agent import user_folders
from mpsbar.agent.backends import IN_USE

PROGRAMS = Path(__file__).parent / "programs"
# On two busy cores a large library alone takes a minute to import, and the program runs twice.
SECONDS = 400
FREE_EVERY = 0.15


@dataclass
class Load:
    """What was asked of the agents of one run, and how they answered."""

    folder: Path
    polls: int = 0
    done: int = 0
    busy: int = 0
    failed: list[str] = field(default_factory=list)
    workers: set[int] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)  # backends in use, in any of them
    pauses: list[float] = field(default_factory=list)  # seconds that a Free stopped its process
    stopping: bool = False

    def run(self) -> None:
        """Ask every agent that is there, over and over, until told to stop."""
        while not self.stopping:
            for pid, path in user_folders.list_sockets([str(self.folder)]):
                with contextlib.suppress(OSError, AssertionError):  # it ended meanwhile
                    self.ask(pid, Path(path))
            time.sleep(FREE_EVERY)

    def ask(self, pid: int, path: Path) -> None:
        with Client(path, timeout=60) as client:
            client.ask("hello")
            self.workers.add(pid)
            for _ in range(3):
                stats = client.ask("stats")
                self.polls += 1
            client.ask("tensors")
            answer = client.ask("free", seconds=1)
        found = stats["backends"].items()
        self.devices |= {name for name, each in found if each["state"] == IN_USE}
        if answer["state"] == "done":
            self.pauses.append(answer["paused"])
        self.done += answer["state"] == "done"
        self.busy += answer["state"] == "busy"
        errors = [each["error"] for each in answer["backends"].values() if each.get("error")]
        self.failed += errors


@dataclass
class Row:
    """One line of the table."""

    name: str
    verdict: str
    load: Load | None = None
    seconds: float = 0.0
    details: str = ""

    @property
    def is_good(self) -> bool:
        return self.verdict in ("same", "skipped")

    def __str__(self) -> str:
        load = self.load or Load(Path())
        # torch has the CPU everywhere: told only where there is nothing else.
        device = ", ".join(sorted(load.devices - {"cpu"} or load.devices)) or "-"
        counts = f"{len(load.workers):>7}  {load.polls:>5}  {load.done:>5}  {load.busy:>4}"
        pause = f"{max(load.pauses) * 1000:.0f} ms" if load.pauses else "-"
        row = f"{self.name:<22}{device:<8}{counts}  {pause:>13}  {self.seconds:>4.0f} s"
        return f"{row}  {self.verdict}  {self.details}".rstrip()


HEAD = f"{'program':<22}{'device':<8}workers  polls  freed  busy  longest pause  time    result"


# What a program writes to stderr when something of it went wrong: no more of it than without mpsbar.
COMPLAINTS = ("Traceback", "Exception ignored", "Fatal Python error", "main thread is not in main loop")  # fmt: skip


def run_program(name: str, python: str, *, forked: bool = False) -> Row:
    """The same output and the same end, or what differs.

    `forked`: alone it is a fork of a Python that has torch (see tests/fork_server.py), which is quicker.
    """
    if not name.startswith("tk_"):
        return _compare_runs(name, python, {}, forked)
    if os.environ.get("DISPLAY"):
        return _compare_runs(name, python, {"DISPLAY": os.environ["DISPLAY"]}, forked)
    if why := why_no_screen():
        return Row(name, "skipped", details=why)
    with start_screen() as display:
        return _compare_runs(name, python, {"DISPLAY": display}, forked)


def _compare_runs(name: str, python: str, extra: dict[str, str], forked: bool) -> Row:
    alone = _run([python], name, None, extra, forked)
    if alone.returncode != 0:
        return Row(name, "fails alone", details=_last_line(alone.stderr))
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="wild", dir="/tmp"))
    load = Load(folder / "run")
    # Without the rests that an agent takes after jobs: some programs live for a few seconds only.
    package = ChangedPackage(folder / "package")
    package.replace(
        "agent/pacing.py", "PAUSES_AT_ONCE_SECONDS = 0.25", "PAUSES_AT_ONCE_SECONDS = 1e9"
    )
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        beside = _run([sys.executable, "-m", "mpsbar", "run", python], name, load.folder, extra)
        beside.stderr = beside.stderr.replace(str(folder), "")  # a warning names its file
    finally:
        load.stopping = True
        thread.join()
        shutil.rmtree(folder, ignore_errors=True)
    verdict, details = _compare(alone, beside, load)
    return Row(name, verdict, load, time.monotonic() - started, details)


def _compare(alone: "subprocess.CompletedProcess[str]", beside: "subprocess.CompletedProcess[str]", load: Load) -> tuple[str, str]:  # fmt: skip
    if beside.returncode != alone.returncode:
        return f"ended with {beside.returncode}", _last_line(beside.stderr)
    if _results(beside.stdout) != _results(alone.stdout) or not _results(alone.stdout):
        return "another result", f"{_results(alone.stdout)} / {_results(beside.stdout)}"
    said = beside.stderr
    if "mpsbar" in said.replace("/package/mpsbar/", ""):
        return "complains", _last_line(said, "mpsbar")
    for word in COMPLAINTS:
        if said.count(word) > alone.stderr.count(word):
            return "complains", _last_line(said, word)
    if not load.polls:
        return "not seen", "no agent answered"
    return "same", "; ".join(sorted(set(load.failed)))[:80]


def _run(
    launcher: list[str],
    name: str,
    run_dir: Path | None,
    extra: dict[str, str],
    forked: bool = False,
) -> "subprocess.CompletedProcess[str]":
    env = {key: value for key, value in os.environ.items() if not key.startswith("MPSBAR_")}
    env |= {"SOFTMPS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}  # fmt: skip
    env |= {"PYTHONPATH": str(PROGRAMS), **extra}
    if run_dir is None:
        env["MPSBAR_DISABLE"] = "1"
    else:
        env |= {"MPSBAR_RUN_DIR": str(run_dir), "MPSBAR_DATA_DIR": str(run_dir.parent / "data")}
        env["PYTHONPATH"] = os.pathsep.join([str(PROGRAMS), str(run_dir.parent / "package")])
    command = [*launcher, str(PROGRAMS / f"{name}.py")]
    start: Any = fork_server.start_python if forked else subprocess.Popen
    process = start(
        command, env=env, cwd=PROGRAMS, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        _end(process)
        out, err = process.communicate()
        err += f"\nstill running after {SECONDS} s".encode()
    except KeyboardInterrupt:
        _end(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out.decode(), err.decode())


def _end(process: Any) -> None:
    os.killpg(process.pid, signal.SIGKILL)  # its own session: the program and its children


def _results(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("result")]


def _last_line(text: str, containing: str = "") -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and containing in line]
    return lines[-1][:160] if lines else ""
