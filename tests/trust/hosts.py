"""Faults of the program that mpsbar is in: it ends, patches its library, forks hundreds of children."""

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from worker_kit import ROOT, Worker, wait_for

from mpsbar.monitor import Monitor
from mpsbar.workers.poll import WorkerPoll
from trust.figures import SkippedError
from trust.places import list_pids, workers_here

LOADER = """
import os, torch, mpsbar
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
assert mpsbar.attach()
class Numbers(Dataset):
    def __len__(self): return {children} * 2
    def __getitem__(self, index): return torch.tensor(index)
if __name__ == "__main__":
    while not os.path.exists({enough!r}):
        loader = DataLoader(Numbers(), num_workers={children}, prefetch_factor=1)
        total = sum(int(batch.sum()) for batch in loader)
        assert total == {children} * ({children} * 2 - 1), total
        print("round", flush=True)
"""


def many_children(children: int) -> tuple[int, int]:
    """A DataLoader with hundreds of children: its result is right, every tick is whole, one row family."""
    ticks, good, most = watch_children(children)
    print(f"  {children} children, {ticks} ticks, at most {most} seen below their worker")
    return ticks + 1, good + (most >= children * 0.8)


def watch_children(children: int) -> tuple[int, int, int]:
    """How many ticks there were, how many of them without a problem, how many children in one at most.

    The loader starts its children again and again until most of them were seen, or for some minutes:
    on a busy machine a whole round of it can fall between two ticks.
    """
    with workers_here() as workers:
        script = workers.folder / "loader.py"
        enough = workers.folder / "enough"
        script.write_text(LOADER.format(children=children, enough=str(enough)))
        worker = workers.run([sys.executable, str(script)]).wait_attached()
        monitor = Monitor()
        ticks = good = most = 0
        given_up = time.monotonic() + 240
        while worker.process.poll() is None:
            snapshot = monitor.tick()
            ticks += 1
            good += snapshot.processes is not None and not snapshot.problems
            members = [one for each in snapshot.families for one in (*each.workers, *each.others)]
            # Not by the family's head: that is the test's own process where it has loaded torch.
            most = max(most, sum(one.parent == worker.pid for one in members))
            if most >= children * 0.8 or time.monotonic() > given_up:
                enough.touch()
        monitor.close()
        assert worker.process.returncode == 0, worker.end()
    return ticks, good, most


ENDS = """
import atexit, os, sys, threading, time, mpsbar
assert mpsbar.attach()
class Slow:
    def __del__(self): time.sleep(0.005)
held = [Slow() for _ in range(4)]
atexit.register(time.sleep, 0.01)
threading.Thread(target=time.sleep, args=(0.02,)).start()
print("up", flush=True)
time.sleep({seconds})
{end}
"""


def ends_while_asked(times: int) -> tuple[int, int]:
    """Python finalises while it is polled and freed: the exit code is its own, and it prints nothing."""
    survived = 0
    ends = ("sys.exit(7)", "raise SystemExit(7)", "os.kill(os.getpid(), 15)", "sys.exit(7)")
    with workers_here() as workers:
        for number in range(times):
            end = ends[number % len(ends)]
            seconds = random.random() * 0.05
            code = ENDS.format(seconds=seconds, end=end)
            worker = workers.run([sys.executable, "-c", code])
            worker.wait_line("up")
            while worker.process.poll() is None:
                ask_without_end(worker)
            expected = -15 if "kill" in end else 7
            errors = worker.end()
            survived += worker.process.returncode == expected and not errors
            if errors:
                print(f"  {end}: {worker.process.returncode} {errors[-300:]!r}")
            workers.started.remove(worker)
    return times, survived


def ask_without_end(worker: Worker) -> None:
    with suppress(OSError, AssertionError, ValueError), worker.connect(timeout=0.5) as client:
        while worker.process.poll() is None:
            for method in ("hello", "stats", "free"):
                client.send(method)
            client.receive()


# Each part of the library that they replace, alone and all together.
GREEN = {
    "gevent": (
        "from gevent import monkey, sleep, spawn",
        [f"monkey.patch_{part}()" for part in ("socket", "select", "time", "os", "thread", "all")]
        + ["monkey.patch_all(thread=False)", "monkey.patch_all(socket=False, select=False)"],
    ),
    "eventlet": (
        "import eventlet; from eventlet import sleep, spawn",
        [f"eventlet.monkey_patch(all=False, {part}=True)" for part in ("socket", "select", "time", "os", "thread")]
        + ["eventlet.monkey_patch()", "eventlet.monkey_patch(thread=False)"],
    ),
}  # fmt: skip
GREEN_HOST = """
import sys, os, time
{first}
counts = [0, 0]
def count(index):
    while True:
        counts[index] += 1
        sleep(0.002)
for index in range(2): spawn(count, index)
{second}
end = time.monotonic() + 60
{third}
print("up", flush=True)
while min(counts) < 150 and time.monotonic() < end: sleep(0.005)
sys.exit(0 if min(counts) >= 150 else 3)
"""


def green_hosts(limit: int | None = None) -> tuple[int, int]:
    """gevent and eventlet, every patch alone and together, before, between and after attach: greenlets go on."""
    attach = "import mpsbar; mpsbar.attach()"
    cases = []
    for imports, patches in GREEN.values():
        for patch in patches:
            cases += [
                (f"{imports}; {patch}; {attach}", "", ""),
                (f"{attach}; {imports}; {patch}", "", ""),
                (f"{attach}; {imports}", patch, ""),
                (f"import mpsbar; {imports}; {patch}", attach, ""),
                (f"{imports}", attach, patch),
            ]
    if limit is not None:
        cases = random.sample(cases, limit)
    survived = 0
    with workers_here() as workers:
        for first, second, third in cases:
            code = GREEN_HOST.format(first=first, second=second, third=third)
            worker = workers.run([sys.executable, "-W", "ignore", "-c", code])
            poll = WorkerPoll()
            while worker.process.poll() is None:
                poll.poll(seconds=0.2)
                time.sleep(0.01)
            poll.close()
            errors = [
                line
                for line in worker.end().splitlines()
                if line and not line.startswith("mpsbar: not attached:")
            ]
            is_good = worker.process.returncode == 0 and not any("mpsbar" in e for e in errors)
            survived += is_good
            if not is_good:
                shown = (worker.process.returncode, errors[-5:])
                print(f"  {first} | {second} | {third}: {shown}")
            workers.started.remove(worker)
    return len(cases), survived


SUBINTERPRETERS = """
import sys, time
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
{attach_first}
code = "import sys; sys.path[:0] = [{root!r}]; import mpsbar; mpsbar.attach()"
for _ in range({times}):
    number = interpreters.create()
    try: interpreters.run_string(number, code)
    except Exception as problem: assert "mpsbar" not in str(problem), problem
    interpreters.destroy(number)
print("lived", flush=True)
time.sleep(0.2)
"""


def subinterpreters(pythons: list[str], times: int) -> tuple[int, int]:
    """attach() in subinterpreters, beside an agent in the main one and without: nothing crashes."""
    tried = survived = 0
    for python in pythons:
        for attach in ("import mpsbar; assert mpsbar.attach()", ""):
            with workers_here() as workers:
                code = SUBINTERPRETERS.format(attach_first=attach, root=str(ROOT), times=times)
                worker = workers.run([python, "-c", code])
                poll = WorkerPoll()
                while worker.process.poll() is None:
                    poll.poll(seconds=0.1)
                poll.close()
                errors = worker.end()
                is_good = worker.process.returncode == 0 and "Traceback" not in errors
                tried, survived = tried + times, survived + times * is_good
                if not is_good:
                    print(f"  {python}: {worker.process.returncode} {errors[-400:]!r}")
    return tried, survived


def find_pythons(ending: str = "") -> list[str]:
    """Pythons of pyenv from 3.9 on; the ending t is a free-threaded build."""
    found = []
    for path in sorted(Path("~/.pyenv/versions").expanduser().glob("3.*")):
        name = path.name
        is_free = name.endswith("t")
        minor = name.split(".")[1]
        if minor.isdigit() and int(minor) >= 9 and is_free == (ending == "t"):
            found.append(str(path / "bin" / "python"))
    return found


def free_threaded(times: int) -> tuple[int, int]:
    """A Python without a GIL: polled and freed, it lives and answers, or refuses in one line."""
    pythons = find_pythons("t")
    if not pythons:
        raise SkippedError("no free-threaded Python is installed")
    survived = 0
    for python in pythons:
        with workers_here() as workers:
            code = "import mpsbar, time; print(mpsbar.attach(), flush=True); time.sleep(5); print('end')"
            worker = workers.run([python, "-c", code])
            worker.wait_line("")
            while worker.process.poll() is None:
                ask_without_end(worker)
                time.sleep(0.01)
            survived += worker.process.returncode == 0
    return len(pythons), survived


MLX_NURSERY = """
import os, sys, time, signal
import mlx.core as mx
import mpsbar.agent.lifecycle
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    for _ in range(int(line)):
        if not os.fork():
            mpsbar.agent.lifecycle.attach()
            mx.set_cache_limit(1 << 30)
            while True:
                x = mx.ones((1 << 20,)) * 2
                mx.eval(x)
                del x
                time.sleep(0.001)
    print("made", flush=True)
"""


def killed_mlx_workers(times: int) -> tuple[int, int]:
    """kill -9 of MLX workers amid computing, polls and frees: sockets are removed, the poll goes on."""
    import importlib.util

    if importlib.util.find_spec("mlx") is None:
        raise SkippedError("MLX is not installed")
    from mpsbar.workers.request import free_worker

    killed = survived = freed = 0
    with workers_here() as workers:
        nursery = workers.run(
            [sys.executable, "-c", MLX_NURSERY],
            popen={"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL},
        )
        assert nursery.process.stdin is not None
        poll = WorkerPoll()
        while killed < times:
            nursery.process.stdin.write(b"4\n")
            nursery.wait_line("made")
            wait_for(
                lambda: sum(bool(w.in_use) for w in poll.poll(seconds=0.2)) == 4, "MLX in four"
            )
            pids = list_pids(workers)
            wait_for(lambda pids=pids: free_worker(pids[0]).state == "done", "a free")
            freed += 1
            for pid in pids:
                poll.poll(seconds=0.0)
                os.kill(pid, 9)
            killed += len(pids)
            wait_for(lambda: not poll.poll(seconds=0.2) and not list_pids(workers), "removal")
            survived += len(pids)
        poll.close()
    print(f"  {freed} frees were answered in between")
    return killed, survived if freed else 0
