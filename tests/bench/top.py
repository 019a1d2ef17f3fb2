"""mpsbar top beside htop, btop, glances and nvitop in tmux, at 80 and 580 processes (goals: first frame 0.6 s; CPU below htop's and at most 1.5 times btop's; 45 MB; a key within 50 ms while a worker hangs)."""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

REFRESH = 2
WARM_UP, WINDOW = 6.0, 30.0
STARTS = 5
MORE_PROCESSES = 500
KEYS = 15
# A program that draws nothing within this time is left out.
TIMEOUT = 60.0


@dataclass(frozen=True)
class Peer:
    name: str
    command: list[str]
    ready: str  # on its screen once it shows processes


def run(folder: Path) -> None:
    if shutil.which("tmux") is None:
        print("  skipped: no tmux here")
        return
    ours = Peer(
        "mpsbar top", [sys.executable, "-m", "mpsbar", "top", "--interval", f"{REFRESH}"], "NAME"
    )
    _print_starts(ours, folder)
    with _some_workers() as workers:
        for more in (0, MORE_PROCESSES):
            with _more_processes(more):
                print(f"  {len(psutil.pids())} processes")
                _print_idle([ours, *_find_peers(folder)], folder)
        _print_key(ours, folder, workers[0])


@contextmanager
def _more_processes(number: int) -> Iterator[None]:
    sleepers = [subprocess.Popen(["sleep", "100000"]) for _ in range(number)]
    try:
        yield
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def _print_key(ours: Peer, folder: Path, worker: "subprocess.Popen[bytes]") -> None:
    """From a key to its help on the screen, while a worker is stopped (SIGSTOP)."""
    pane = Pane(ours, folder)
    pane.wait()
    worker.send_signal(signal.SIGSTOP)
    spent = []
    try:
        for _ in range(KEYS):
            time.sleep(0.7)
            began = time.monotonic()
            pane.tmux("send-keys", "?")
            while "this help" not in pane.tmux("capture-pane", "-p"):
                time.sleep(0.002)
            spent.append(time.monotonic() - began)
            pane.tmux("send-keys", "q")
    finally:
        worker.send_signal(signal.SIGCONT)
        pane.end()
    print(
        f"  a key is answered within {1000 * statistics.median(spent):.0f} ms"
        f" ({1000 * min(spent):.0f} to {1000 * max(spent):.0f}; goal: 50), with tmux, while a worker hangs"
    )


def _find_peers(folder: Path) -> Iterator[Peer]:
    config = folder / "btop"
    config.mkdir(exist_ok=True)
    (config / "btop.conf").write_text(f"update_ms = {REFRESH * 1000}\n")
    here = Path(sys.executable).with_name("glances")
    glances = str(here) if here.exists() else "glances"
    for peer in (
        Peer("htop", ["htop", "-d", f"{REFRESH * 10}"], "PID"),
        Peer("btop", ["btop", "--utf-force"], "Pid"),
        Peer("nvitop", ["nvitop", "-m", "full"], "PID"),
        Peer("glances", [glances, "-t", f"{REFRESH}", "--disable-check-update"], "PID"),
    ):
        if shutil.which(peer.command[0]):
            yield peer
        else:
            print(f"  {peer.name}: not installed here, left out")


class Pane:
    """A program in a tmux server of its own; `root` is its process."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self.peer = peer
        # A new one each time: the server before may still be on its way out.
        self.socket = tempfile.mktemp(dir=folder, suffix=".tmux")
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "TERM": "screen-256color"}
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TMUX")} | home
        self.tmux("new-session", "-d", "-x", "120", "-y", "40", "sleep 1000000")
        self.began = time.monotonic()
        self.tmux("respawn-pane", "-k", *peer.command)
        self.first: float | None = None

    def wait(self) -> bool:
        while time.monotonic() - self.began < TIMEOUT:
            if self.peer.ready in self.tmux("capture-pane", "-p"):
                self.first = time.monotonic() - self.began
                return True
            time.sleep(0.01)
        return False

    def family(self) -> list[psutil.Process]:
        root = psutil.Process(int(self.tmux("display-message", "-p", "#{pane_pid}")))
        return [root, *root.children(recursive=True)]

    def cpu(self) -> float:
        return sum(sum(process.cpu_times()[:4]) for process in self.family())

    def memory(self) -> float:
        return sum(process.memory_info().rss for process in self.family()) / 2**20

    def end(self) -> None:
        self.tmux("kill-server")

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True).stdout


def _print_starts(ours: Peer, folder: Path) -> None:
    walls, cpus = [], []
    for _ in range(STARTS):
        pane = Pane(ours, folder)
        pane.wait()
        walls.append(pane.first or TIMEOUT)
        cpus.append(pane.cpu())
        pane.end()
    textual, nothing = _import_cost("import textual.app, textual.widget"), _import_cost("pass")
    print(
        f"  first frame {statistics.median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}; goal: 0.6),"
        f" {statistics.median(cpus):.2f} s of CPU; python alone {nothing:.2f}, with textual {textual:.2f}"
    )


def _import_cost(code: str) -> float:
    spent = []
    for _ in range(STARTS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def _print_idle(peers: list[Peer], folder: Path) -> None:
    """The same seconds for all: whatever else runs here disturbs each alike."""
    with ExitStack() as stack:
        panes = []
        for peer in peers:
            pane = Pane(peer, folder)
            stack.callback(pane.end)
            if pane.wait():
                panes.append(pane)
            else:
                print(f"  {peer.name}: drew nothing, left out")
        time.sleep(WARM_UP)
        before, began = [pane.cpu() for pane in panes], time.monotonic()
        time.sleep(WINDOW)
        passed = time.monotonic() - began
        spent = [pane.cpu() - cpu for pane, cpu in zip(panes, before, strict=True)]
        for pane, cpu in zip(panes, spent, strict=True):
            ratio = spent[0] / cpu if cpu else float("inf")
            print(
                f"  {pane.peer.name:10} {100 * cpu / passed:5.2f} % of a core, {pane.memory():5.1f} MB resident;"
                f" ours is {ratio:.2f} of its CPU"
            )


@contextmanager
def _some_workers() -> Iterator["list[subprocess.Popen[bytes]]"]:
    """Something to look at: the demo's, where they can run."""
    from mpsbar.cli.demo import plan_workers, started
    from mpsbar.monitor import Monitor

    with started(plan_workers()) as processes:
        monitor = Monitor()
        until = time.monotonic() + 60
        while len(monitor.tick().workers) < len(processes) and time.monotonic() < until:
            time.sleep(0.5)
        monitor.close()
        print(f"  {len(processes)} workers")
        yield processes
