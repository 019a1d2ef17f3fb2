"""Tries a small worker in a Python with torch: it is connected, holds memory and gives it back.

What a person would do by hand: `mpsbar run`, look at the row, Free Cache.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from mpsbar.core.snapshot import Worker
from mpsbar.language import _
from mpsbar.system import this_computer
from mpsbar.system.installed_pythons import find_installed, list_active
from mpsbar.system.scan import find_gpu_users
from mpsbar.system.start_python import end_with_children, start_python
from mpsbar.ui.text.wording import duration, size
from mpsbar.workers.poll import WorkerPoll
from mpsbar.workers.request import free_worker
from mpsbar.workers.run import build_environment, find_site

# torch is imported from a slow disk, and MPS compiles its first kernels.
_SECONDS = 90.0
_END_SECONDS = 10.0
# What stays lies in another heap than what is given up, or nothing could be returned: torch puts
# tensors above 10 MB into heaps of 1 GB. In that wait main may run a Free.
_SCRIPT = """
import sys, threading, torch
name = "mps" if torch.backends.mps.is_available() else "cpu"
print(name, torch.__version__, flush=True)
sys.stdin.readline()
kept = torch.ones(1 << 20, device=name)
given_up = torch.ones(1 << 24, device=name) + 1
float(given_up[0])
del given_up
print("used", flush=True)
threading.Event().wait(600)
"""


@dataclass(frozen=True, slots=True)
class WorkerTrial:
    torch: str
    device: str
    client_before: bool | None  # whether macOS calls it a client of the GPU before its first work
    client_after: bool | None
    held: int | None
    cached: int | None
    footprint: int | None
    freed: int | None
    state: str  # of the Free
    connect_seconds: float
    free_seconds: float


def find_torch_python() -> str | None:
    """Returns the active environment's Python, else on a Mac the first that has torch."""
    installed = find_installed(Path.home()) if sys.platform == "darwin" else []
    return next(chain(list_active(), installed), None)


def describe(trial: WorkerTrial) -> str:
    """Describes the trial in one line; raises ValueError where something is wrong."""
    if trial.state != "done":
        raise ValueError(_("freeing its cache ended with {state}").format(state=trial.state))
    if trial.device == "mps" and not trial.freed:
        raise ValueError(_("nothing was freed, though tensors were deleted"))
    if trial.client_before:
        raise ValueError(_("macOS listed it as a GPU client before it had submitted any work"))
    words = _("torch {version}, {device}: held {held}, freed {freed} in {time}").format(
        version=trial.torch,
        device=trial.device,
        held=_("unknown") if trial.held is None else size(trial.held),
        freed=_("unknown") if trial.freed is None else size(trial.freed),
        time=duration(trial.free_seconds),
    )
    if trial.device != "mps":
        return words
    known = {True: _("yes"), False: _("no"), None: _("unknown")}
    before, after = known[trial.client_before], known[trial.client_after]
    text = _("{words}; GPU client before its first work: {before}, after: {after}")
    return text.format(words=words, before=before, after=after)


@cache
def try_worker(python: str) -> WorkerTrial:
    """Runs it once. Raises OSError, TimeoutError among them, and NotTrustedError."""
    with _started(python) as child:
        began = time.monotonic()
        device, version = _read_line(child).split()[:2]
        before = _find_client(child.pid)
        assert child.stdin is not None
        child.stdin.write(b"\n")
        _read_line(child)
        after = _find_client(child.pid)
        worker = _wait_for(child.pid, device, after)
        connected = time.monotonic()
        footprint = this_computer().read_footprint(child.pid).now
        freed = free_worker(child.pid, after)
        return WorkerTrial(
            version, device, before, after, worker.held, worker.cached, footprint, freed.freed,
            freed.state, round(connected - began, 3), round(time.monotonic() - connected, 3),
        )  # fmt: skip


@contextmanager
def _started(python: str) -> Iterator["subprocess.Popen[bytes]"]:
    child = start_python(
        python, ["-c", _SCRIPT], build_environment(os.environ, find_site()),
        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.send_signal(signal.SIGINT)  # so that it removes its socket
        with suppress(subprocess.TimeoutExpired):
            child.wait(_END_SECONDS)
        end_with_children(child)
        assert child.stdin is not None
        child.stdin.close()


def _read_line(child: "subprocess.Popen[bytes]") -> str:
    assert child.stdout is not None
    end, line = time.monotonic() + _SECONDS, b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, end - time.monotonic())):
                raise TimeoutError(
                    _("the process printed nothing within {time}").format(time=duration(_SECONDS))
                )
            part = os.read(child.stdout.fileno(), 1000)
            if not part or len(line) > 1000:
                python = child.args[0]  # type: ignore[index]
                text = _("the process ended: {python!r} has no torch, or it failed")
                raise OSError(text.format(python=python))
            line += part
    return line.decode("utf-8", "replace")


def _find_client(pid: int) -> bool | None:
    """Returns whether this process has given the GPU work; None if macOS does not say."""
    clients = this_computer().read_gpu_clients()
    return None if clients is None else find_gpu_users(clients).get(pid, False)


def _wait_for(pid: int, device: str, gpu_client: bool | None) -> Worker:
    workers, end = WorkerPoll(), time.monotonic() + _SECONDS
    hints = {} if gpu_client is None else {pid: gpu_client}
    try:
        while time.monotonic() < end:
            for worker in workers.poll(hints):
                is_counted = worker.held or device != "mps"
                if worker.pid == pid and worker.state == "live" and is_counted:
                    return worker
            time.sleep(0.1)
    finally:
        workers.close()
    raise TimeoutError(
        _("the process was not connected within {time}").format(time=duration(_SECONDS))
    )
