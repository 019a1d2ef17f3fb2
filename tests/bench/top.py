"""mpsbar top beside htop, btop, glances and one like nvitop in tmux, at some 80 and 580 processes (goals: first frame 0.6 s; CPU below htop's and at most 1.5 times btop's; 45 MB; a key within 50 ms while a worker hangs). Three minutes."""

import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

REFRESH = 2
WARM_UP, WINDOW = 6.0, 40.0
STARTS = 5
MORE_PROCESSES = 500
KEYS = 15
COLUMNS, LINES = 120, 40
LIKE_NVITOP = Path(__file__).with_name("like_nvitop.py")
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
    with _some_workers() as workers:
        _print_starts(ours, folder)
        _print_key(ours, folder, workers[0])
        for more in (0, MORE_PROCESSES):
            with _more_processes(more):
                print(
                    f"  {len(psutil.pids())} processes, load {os.getloadavg()[0]:.1f}", flush=True
                )
                _print_idle([ours, *_find_peers(folder, workers)], folder)


@contextmanager
def _more_processes(number: int) -> Iterator[None]:
    sleepers = [subprocess.Popen(["sleep", "100000"]) for _ in range(number)]
    try:
        yield
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def _print_starts(ours: Peer, folder: Path) -> None:
    """Beside Python alone and the import of textual, in turn: whatever else runs disturbs each."""
    codes = ("pass", "import textual.app, textual.widgets")
    firsts, cpus, imports = [], [], {code: list[float]() for code in codes}
    for _ in range(STARTS):
        terminal = Terminal(ours.command, folder)
        firsts.append(terminal.wait(ours.ready))
        cpus.append(read_cpu(terminal.process.pid))
        terminal.end()
        for code in codes:
            began = time.monotonic()
            subprocess.run([sys.executable, "-c", code], check=True)
            imports[code].append(time.monotonic() - began)
    nothing, textual = (statistics.median(imports[code]) for code in codes)
    print(
        f"  first frame {statistics.median(firsts):.2f} s ({min(firsts):.2f} to {max(firsts):.2f}; goal: 0.6),"
        f" {statistics.median(cpus):.2f} s of CPU; python alone {nothing:.2f}, with textual {textual:.2f}",
        flush=True,
    )


def _print_key(ours: Peer, folder: Path, worker: "subprocess.Popen[bytes]") -> None:
    """From a key to its help on the terminal, while a worker is stopped (SIGSTOP)."""
    terminal = Terminal(ours.command, folder)
    terminal.wait(ours.ready)
    worker.send_signal(signal.SIGSTOP)
    spent, cpus = [], []
    try:
        for _ in range(KEYS):
            terminal.drain(0.7)
            before = read_cpu(terminal.process.pid)
            terminal.press("?")
            spent.append(terminal.wait("this help"))
            cpus.append(read_cpu(terminal.process.pid) - before)
            terminal.drain(0.1)
            terminal.press("q")
    finally:
        worker.send_signal(signal.SIGCONT)
        terminal.end()
    print(
        f"  a key is answered within {1000 * statistics.median(spent):.0f} ms"
        f" ({1000 * min(spent):.0f} to {1000 * max(spent):.0f}; goal: 50) while a worker hangs,"
        f" with {1000 * statistics.median(cpus):.0f} ms of CPU",
        flush=True,
    )


def _find_peers(folder: Path, workers: "list[subprocess.Popen[bytes]]") -> Iterator[Peer]:
    config = folder / "btop"
    config.mkdir(exist_ok=True)
    (config / "btop.conf").write_text(f"update_ms = {REFRESH * 1000}\n")
    here = Path(sys.executable).with_name("glances")
    glances = str(here) if here.exists() else "glances"
    for peer in (
        Peer("htop", ["htop", "-d", f"{REFRESH * 10}"], "PID"),
        Peer("btop", ["btop", "--utf-force"], "Pid"),
        Peer("glances", [glances, "-t", f"{REFRESH}", "--disable-check-update"], "PID"),
    ):
        if shutil.which(peer.command[0]):
            yield peer
        else:
            print(f"  {peer.name}: not installed here, left out")
    # nvitop itself wants an NVIDIA driver.
    pids = [str(worker.pid) for worker in workers]
    yield Peer("like nvitop", [sys.executable, str(LIKE_NVITOP), f"{REFRESH}", *pids], "PID")


def _places(folder: Path) -> dict[str, str]:
    """A home of its own: what this computer's mpsbar has recorded and probed would be read too."""
    return {"HOME": str(folder)} | {f"MPSBAR_{p}_DIR": str(folder) for p in ("DATA", "CONFIG")}


class Pane:
    """A program in a tmux server of its own; `root` is its process."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self.peer = peer
        # A new one each time: the server before may still be on its way out.
        self.socket = tempfile.mktemp(dir=folder, suffix=".tmux")
        own = {"XDG_CONFIG_HOME": str(folder), "TERM": "screen-256color"} | _places(folder)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TMUX")} | own
        size = ("-x", str(COLUMNS), "-y", str(LINES))
        self.tmux("new-session", "-d", *size, "sleep 1000000")
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
        return sum(read_cpu(process.pid) for process in self.family())

    def memory(self) -> float:
        return sum(process.memory_info().rss for process in self.family()) / 2**20

    def end(self) -> None:
        self.tmux("kill-server")

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True).stdout


class Terminal:
    """A program in a pseudo-terminal, which is read at once: a call of tmux takes some 10 ms."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.fd, program = pty.openpty()
        fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        env = os.environ | {"TERM": "xterm-256color"} | _places(folder)
        env = {key: value for key, value in env.items() if key not in ("COLUMNS", "LINES")}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=program, stdout=program, stderr=program, env=env, start_new_session=True
        )
        os.close(program)

    def press(self, key: str) -> None:
        self.began = time.monotonic()
        os.write(self.fd, key.encode())

    def wait(self, text: str) -> float:
        """Seconds from its start, or from the last key, until the text was written."""
        written = b""
        while text.encode() not in written:
            assert time.monotonic() - self.began < TIMEOUT, written
            written += os.read(self.fd, 65536)
        return time.monotonic() - self.began

    def drain(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                os.read(self.fd, 65536)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


def read_cpu(pid: int) -> float:
    """Seconds of CPU, on Linux to the nanosecond: psutil's 10 ms are a tenth of what btop uses."""
    if sys.platform == "linux":
        return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid() returns
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


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
                f"  {pane.peer.name:11} {100 * cpu / passed:5.2f} % of a core, {pane.memory():5.1f} MB resident;"
                f" ours is {ratio:.2f} of its CPU",
                flush=True,
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
