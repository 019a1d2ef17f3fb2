"""Host programs that watch what an agent does to them, in any Python, and the load put on them.

With MPSBAR_TESTS_ALONE=unasked nothing is ever asked of the agents, with =unattached there are none:
what fails then is the host's own fault.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import interpreters
from worker_kit import ROOT, TIMEOUT, UNPACED, Worker, Workers, wait_for

from mpsbar.agent import protocol

ALONE = os.environ.get("MPSBAR_TESTS_ALONE", "")
UNATTACHED = ALONE == "unattached"
# In place of attach(): a plain file where the socket would be, so that the host can be waited for.
NO_AGENT = """(__import__("pathlib").Path(__import__("os").environ["MPSBAR_RUN_DIR"],
    "%d.sock" % __import__("os").getpid()).touch() is None)"""
# One read of the agent takes 8 KiB: so many requests of each connection are answered in one round.
AT_ONCE = 50
CONNECTIONS = 4

# STAND-IN for torch: the few names the agent uses, in plain Python. It says nothing about MPS.
STAND_IN = '''
    """Not torch: a stand-in for the tests of mpsbar."""
    import contextlib, sys, time, types
    __version__ = "2.13.0"
    class Tensor: pass
    class _C:
        _has_mps = True
        DisableTorchFunctionSubclass = contextlib.nullcontext
        @staticmethod
        def _accelerator_isAllocatorInitialized(): return True
        @staticmethod
        def _accelerator_getDeviceStats(index):
            amounts = {"all": {"current": 1 << 20, "peak": 2 << 20}}
            return {"allocated_bytes": amounts, "reserved_bytes": amounts}
    def work(): pass  # what a Free runs into: a host replaces it
    def empty_cache():
        mps.releases += 1
        work()
    mps = types.ModuleType("torch.mps")
    mps.releases = 0
    mps.empty_cache = empty_cache
    mps.driver_allocated_memory = mps.current_allocated_memory = lambda: 1 << 20
    mps.recommended_max_memory = lambda: 1 << 30
    sys.modules["torch.mps"] = mps
'''

# A host prints one line of JSON and ends when SIGUSR1 comes; its main thread may be anywhere. With
# SIGUSR2 it goes on until enough has happened: on a busy machine that takes its time. Without asyncio, whose
# import costs as much as the rest of a host's start: those that use it import it.
REPORT = """
import gc, json, os, queue, signal, sys, threading, time, weakref
def report(): return {}
def end(*_):
    print("report", json.dumps(report()), flush=True)
    sys.stderr.flush()
    os._exit(0)
def is_enough(): return True
waited = []
def end_when_enough(*_):
    waited.append(1)
    if is_enough() or len(waited) > 1200: end()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.signal(signal.SIGUSR1, end)
signal.signal(signal.SIGUSR2, end_when_enough)
signal.signal(signal.SIGALRM, end_when_enough)
"""

# Objects whose finalizers tell when they run on a thread that is not the host's own.
CANARIES = (
    REPORT
    + UNPACED
    + """
import itertools
own, foreign = set(), []
made, ran = itertools.count(), itertools.count()
refs, kept = {}, []
event = threading.Event()  # never set: its wait is one that a Free knows
def number(counter): return int(repr(counter)[6:-1])
def join_host():
    own.add(threading.get_native_id())
def record(kind):
    next(ran)
    if threading.get_native_id() not in own: foreign.append(kind)
def gone(ref):
    refs.pop(id(ref), None)
    record("weak reference")
class Cycle:
    def __init__(self):
        next(made)
        self.me = self
    def __del__(self): record("cycle")
class Node: pass
class Plain:
    def __init__(self): next(made)
    def __del__(self): record("plain")
def drop_cycles(count=1):
    for _ in range(count):
        Cycle()
        node = Node()
        node.me = node
        ref = weakref.ref(node, gone)
        refs[id(ref)] = ref
        next(made)
        del node, ref
def fill(spare=2):
    # Garbage, and after it so many objects that a few more start a collection.
    del kept[:]
    drop_cycles(3)
    while gc.get_count()[0] < gc.get_threshold()[0] - spare: kept.append([])
def is_enough(): return number(ran) > 100
def report():
    gc.collect()
    return {"ran": number(ran), "foreign": len(foreign), "kinds": sorted(set(foreign))}
def start(target):
    def run():
        join_host()
        target()
    threading.Thread(target=run, daemon=True).start()
join_host()
"""
)


def add_stand_in(folder: Path) -> str:
    """A place for PYTHONPATH where `import torch` finds the stand-in."""
    place = folder / "stand_in"
    if not place.exists():
        (place / "torch").mkdir(parents=True)
        (place / "torch" / "__init__.py").write_text(textwrap.dedent(STAND_IN))
    return str(place)


def start_host(
    workers: Workers,
    code: str,
    version: str | None = None,
    *,
    python: str | None = None,
    stand_in: bool = True,
    stdin: int = subprocess.DEVNULL,
    **extra: str,
) -> Worker:
    """A host in the given Python (none: the one that has everything); returns once it is attached."""
    if python is None:
        python = sys.executable if version is None else interpreters.need(version)
    script = workers.folder / f"host{len(workers.started)}.py"
    script.write_text(_prepare(code))
    places = [add_stand_in(workers.folder), str(ROOT)] if stand_in else [str(ROOT)]
    extra["PYTHONPATH"] = os.pathsep.join(places)
    forked = not stand_in and version is None and "import torch" in code
    host = workers.run([python, str(script)], popen={"stdin": stdin}, forked=forked, **extra)
    return host.wait_attached()


def _prepare(code: str) -> str:
    code = textwrap.dedent(code)
    return code.replace("mpsbar.attach()", NO_AGENT) if UNATTACHED else code


def run_host(
    workers: Workers, code: str, version: str | None = None, **extra: str
) -> subprocess.CompletedProcess[str]:
    """A whole life of a host that asks its own agent, or nobody."""
    python = sys.executable if version is None else interpreters.need(version)
    places = os.pathsep.join([add_stand_in(workers.folder), str(ROOT), str(ROOT / "tests")])
    env = workers.env(PYTHONPATH=places, **extra)
    command = [python, "-c", _prepare(code)]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=TIMEOUT, cwd=workers.folder
    )


def ask_for_report(worker: Worker, *, when_enough: bool = False) -> Any:
    worker.process.send_signal(signal.SIGUSR2 if when_enough else signal.SIGUSR1)
    return json.loads(worker.wait_line("report").partition(" ")[2])


class Load:
    """Several clients of one agent; each call returns once all its answers are there."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.clients = [] if ALONE else [worker.connect() for _ in range(CONNECTIONS)]
        self.frees: list[Any] = []
        self.censuses: list[Any] = []

    def poll(self, count: int) -> None:
        """`count` hellos and stats, AT_ONCE in one write on each connection."""
        if ALONE:
            time.sleep(0.3)
            return
        while count > 0:
            for client in self.clients:
                lines = [protocol.request(n, ("hello", "stats")[n % 2]) for n in range(AT_ONCE)]
                client.socket.sendall(b"".join(lines))
            for client in self.clients:
                for number in range(AT_ONCE):
                    answer = client.receive()
                    assert answer["id"] == number
                    assert "result" in answer, answer
            count -= AT_ONCE * len(self.clients)

    def poll_slowly(self, seconds: float) -> None:
        """Ten times a second, as several monitors would."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for client in self.clients:
                client.ask("stats")
            time.sleep(0.1)

    def free(self, count: int, seconds: float = 0.5) -> None:
        for number in range(count):
            if ALONE:
                time.sleep(0.03)
            else:
                client = self.clients[number % len(self.clients)]
                self.frees.append(client.ask("free", seconds=seconds))

    def count_tensors(self, count: int) -> None:
        for number in range(0 if ALONE else count):
            self.censuses.append(self.clients[number % len(self.clients)].ask("tensors"))

    def free_until_done(self, count: int = 1) -> None:
        """Until so many were done: beside a busy host, on a busy machine, some find no moment."""
        if not ALONE:
            wait_for(
                lambda: self.done() >= count or self.free(1, seconds=5), "Frees that were done"
            )

    def done(self) -> int:
        """How many frees were not refused."""
        return sum(answer["state"] == "done" for answer in self.frees)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for client in self.clients:
            client.__exit__(None, None, None)
        if error is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.worker.process.wait(5)  # a moment for a host that is being ended by a signal
                code, text = self.worker.process.returncode, self.worker.end()
                raise AssertionError(f"the host ended with {code}: {text}") from error
