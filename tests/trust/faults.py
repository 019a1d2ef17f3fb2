"""Faults: processes killed, stopped, replaced and out of descriptors, while a real monitor ticks."""

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from worker_kit import ROOT, wait_for

from mpsbar.monitor import Monitor
from mpsbar.workers.poll import WorkerPoll
from trust import hosts, surroundings
from trust.figures import Figures
from trust.places import list_pids, workers_here

WORKER = "import mpsbar, time; assert mpsbar.attach()\nwhile True: time.sleep(0.01)\n"
# Several workers from one interpreter: forks cost a hundredth of a start.
NURSERY = """
import os, sys, time, signal
import mpsbar.agent.lifecycle
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    for _ in range(int(line)):
        if not os.fork():
            mpsbar.agent.lifecycle.attach()
            while True: time.sleep(0.01)
    print("made", flush=True)
"""


def killed_workers(times: int) -> tuple[int, int]:
    """kill -9 at any moment: the poll goes on, and the dead one's socket is removed."""
    survived = killed = 0
    with workers_here() as workers:
        nursery = workers.run(
            [sys.executable, "-c", NURSERY],
            popen={"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL},
        )
        assert nursery.process.stdin is not None
        poll = WorkerPoll()
        try:
            while killed < times:
                number = min(20, times - killed)
                nursery.process.stdin.write(f"{number}\n".encode())
                nursery.wait_line("made")
                wait_for(lambda number=number: len(list_pids(workers)) >= number, "workers")
                poll.poll(seconds=0.2)
                pids = list_pids(workers)
                for pid in pids:
                    if random.random() < 0.5:
                        poll.poll(seconds=0.0)
                    os.kill(pid, signal.SIGKILL)
                killed += len(pids)
                wait_for(lambda: not poll.poll(seconds=0.2) and not list_pids(workers), "removal")
                survived += len(pids)
        finally:
            poll.close()
    return killed, survived


RECORDER = """
import sys, time
sys.path[:0] = {paths!r}
from history_kit import MACHINE, make_private_worker
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.snapshot import Snapshot
from mpsbar.history import recorder
from pathlib import Path
recorder.FLUSH_SECONDS = 0.0
r, tracker, wall = recorder.Recorder(print, Path({file!r})), ProcessTracker(), float(sys.argv[1])
for number in range(10**9):
    wall += 1
    worker = make_private_worker(4711, "train.py", 6 * 10**9 + number, 1)
    seen = Snapshot(wall, (worker,), MACHINE, (worker.process,))
    r.record(seen, tracker.present.values(), tracker.update(seen))
    r._due = 0.0
    if r._rows.is_empty: print(int(wall * 1000), flush=True)
"""


def killed_recorder(times: int) -> tuple[int, int]:
    """kill -9 amid writing: the file is whole, and what was acknowledged is in it."""
    survived = 0
    with workers_here() as workers:
        file = workers.folder / "data" / "history.sqlite"
        code = RECORDER.format(paths=[str(ROOT), str(ROOT / "tests")], file=str(file))
        wall = time.time() - 86_400
        for _ in range(times):
            child = subprocess.Popen(
                [sys.executable, "-c", code, str(wall)],
                env=workers.env() | {"MPSBAR_DATA_DIR": str(file.parent)},
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert child.stdout is not None
            lines = [child.stdout.readline() for _ in range(random.randint(1, 20))]
            child.kill()
            lines += child.communicate()[0].splitlines()
            acknowledged = [int(line) for line in lines if line.strip().isdecimal()]
            with closing(sqlite3.connect(file)) as connection:
                is_whole = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
                newest = connection.execute("SELECT max(time) FROM machine").fetchone()[0]
            survived += is_whole and bool(acknowledged) and newest >= acknowledged[-1]
            wall = newest / 1000 + 1
    return times, survived


def stopped_workers(times: int) -> tuple[int, int]:
    """SIGSTOP: shown as busy with the last values; live again after SIGCONT."""
    survived = 0
    with workers_here() as workers:
        worker = workers.start(WORKER)
        poll = WorkerPoll()
        for _ in range(times):
            wait_for(lambda: [w.state for w in poll.poll(seconds=5)] == ["live"], "answer")
            worker.freeze()
            busy = [w.state for w in poll.poll(seconds=0.2)] == ["busy"]
            worker.thaw()
            survived += busy
        poll.close()
    return times, survived


HOLDS_GIL = """
import ctypes, mpsbar
assert mpsbar.attach()
ctypes.PyDLL(None).sleep({seconds})
print("back", flush=True)
import time
while True: time.sleep(0.01)
"""


def held_gil(seconds: int) -> tuple[int, int]:
    """A host that lets no other thread run: it is not hurt, and answers when it can."""
    with workers_here() as workers:
        worker = workers.run(
            [sys.executable, "-c", HOLDS_GIL.format(seconds=seconds)]
        ).wait_attached()
        poll = WorkerPoll()
        poll.poll(seconds=0.2)
        worker.wait_line("back")
        wait_for(lambda: [w.state for w in poll.poll(seconds=1)] == ["live"], "answer")
        poll.close()
    return 1, 1


FORKS = """
import os, mpsbar, threading
assert mpsbar.attach()
for _ in range({times}):
    pid = os.fork()
    if not pid: os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print("forked", flush=True)
import time
while True: time.sleep(0.01)
"""


def forks_amid_answers(times: int) -> tuple[int, int]:
    """fork while the agent answers: no child hangs or crashes, the parent still answers."""
    with workers_here() as workers:
        worker = workers.run(
            [sys.executable, "-W", "ignore", "-c", FORKS.format(times=times)]
        ).wait_attached()
        with worker.connect() as client:
            while worker.process.poll() is None and "forked" not in "".join(worker.lines):
                client.ask("stats")
                worker.lines += _read_ready(worker)
        assert worker.ask("hello")["pid"] == worker.pid
    return times, times


def _read_ready(worker: object) -> list[str]:
    import select

    pipe = worker.process.stdout  # type: ignore[attr-defined]
    return [pipe.readline().decode()] if select.select([pipe], [], [], 0)[0] else []


def replaced_by_exec(times: int) -> tuple[int, int]:
    """exec and os._exit leave a socket that nobody serves: no row, and in the end no file."""
    survived = 0
    with workers_here() as workers:
        poll = WorkerPoll()
        for number in range(times):
            end = "os.execv('/bin/sleep', ['sleep', '60'])" if number % 2 else "os._exit(0)"
            code = f"import mpsbar, os; assert mpsbar.attach(); {end}"
            worker = workers.run([sys.executable, "-c", code])
            wait_for(lambda w=worker: w.process.poll() is not None or w.path.exists(), "agent")
            wait_for(lambda: not poll.poll(seconds=0.2), "removal")
            worker.end()  # until then the file of a living process stays, though it refuses
            wait_for(lambda: not poll.poll(seconds=0.2) and not list_pids(workers), "removal")
            survived += 1
        poll.close()
    return times, survived


def out_of_descriptors(times: int) -> tuple[int, int]:
    """EMFILE in the monitor: each tick gives a snapshot, and all is well again afterwards."""
    survived = 0
    with workers_here() as workers:
        worker = workers.start(WORKER)
        time.sleep(1)  # until the list of sockets is believed for good
        monitor = Monitor()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for _ in range(times):
            taken: list[int] = []
            highest = max(int(name) for name in os.listdir("/proc/self/fd"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
            try:
                while True:
                    taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                pass
            try:
                snapshot = monitor.tick()
            finally:
                for number in taken:
                    os.close(number)
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            survived += snapshot is not None
            wait_for(lambda: [w.pid for w in monitor.tick().workers] == [worker.pid], "worker")
        monitor.close()
    return times, survived


def short_lived_processes(number: int) -> tuple[int, int]:
    """Thousands of processes that come and go: every tick gives a list without a problem."""
    monitor = Monitor()
    shell = subprocess.Popen(
        ["sh", "-c", f"i=0; while [ $i -lt {number} ]; do /bin/true; i=$((i+1)); done"]
    )
    ticks = good = 0
    began = time.monotonic()
    while shell.poll() is None:
        snapshot = monitor.tick()
        ticks, good = ticks + 1, good + (snapshot.processes is not None and not snapshot.problems)
    monitor.close()
    rate = number / (time.monotonic() - began) * 60
    print(f"  {number} processes, {rate:.0f} a minute, during {ticks} ticks")
    return ticks, good


def main(scale: float = 0.05) -> int:
    """Scale 1 is the whole suite: 2,000 workers and 500 recorders are killed.

    $FAULTS names some, with commas: FAULTS="clock set,full disk" make faults.
    """
    figures = Figures("faults")
    attacks: dict[str, Callable[[], tuple[int, int]]] = {
        "workers killed": lambda: killed_workers(max(20, int(2000 * scale))),
        "recorders killed": lambda: killed_recorder(max(3, int(500 * scale))),
        "workers stopped": lambda: stopped_workers(max(3, int(100 * scale))),
        "the GIL held": lambda: held_gil(max(1, int(10 * scale))),
        "forks amid answers": lambda: forks_amid_answers(max(20, int(1000 * scale))),
        "exec and os._exit": lambda: replaced_by_exec(max(4, int(100 * scale))),
        "out of descriptors": lambda: out_of_descriptors(max(3, int(100 * scale))),
        "short-lived processes": lambda: short_lived_processes(max(200, int(5000 * scale))),
        "MLX workers killed": lambda: hosts.killed_mlx_workers(max(4, int(400 * scale))),
        "children of a DataLoader": lambda: hosts.many_children(max(20, int(300 * scale))),
        "Python finalising": lambda: hosts.ends_while_asked(max(8, int(200 * scale))),
        "gevent and eventlet": lambda: hosts.green_hosts(None if scale >= 1 else 8),
        "subinterpreters": lambda: hosts.subinterpreters(
            [sys.executable, *hosts.find_pythons()], max(2, int(20 * scale))
        ),
        "Python without a GIL": lambda: hosts.free_threaded(1),
        "full disk": lambda: surroundings.full_disk(max(2, int(20 * scale))),
        "read-only home": surroundings.read_only_home,
        "clock set": lambda: surroundings.set_clocks(max(1, int(10 * scale))),
    }
    wanted = os.environ.get("FAULTS", "").split(",")
    attacks = {name: attacks[name] for name in attacks if wanted == [""] or name in wanted}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            {f"MPSBAR_{name}_DIR": f"{folder}/{name}" for name in ("DATA", "CONFIG", "LOG")}
        )
        Path(folder).chmod(0o700)
        for name, attack in attacks.items():
            figures.run(name, attack)
    return figures.end()
