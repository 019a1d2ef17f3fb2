"""64 hosts in one mpsbar top, over real ssh connections to a server on loopback (20 made-up workers each): keys, frames, CPU."""

import asyncio
import json
import math
import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

import psutil
from ssh_kit import SshHosts

from bench.top import Pane, Peer
from mpsbar.core.host_readings import HostReading
from mpsbar.core.settings import Settings
from mpsbar.fleet.parse_status import parse_status

HOSTS, WORKERS, GB = 64, 20, 1 << 30
KEYS, FRAMES = 15, 20
WARM_UP, WINDOW, TIMEOUT = 20.0, 40.0, 300.0
# What each of these hosts says: in shell and sed, for 64 Pythons would be most of what is measured.
SCRIPT = (
    'while sed "s/AVAILABLE/$(( ($(date +%s) % 60 + 60) * 1073741824 ))/" {file}; do sleep 2; done'
)


class NoWorkers:
    def env(self, **_more: str) -> dict[str, str]:
        return {}


def run(folder: Path) -> None:
    print_frames(HOSTS, WORKERS, new=HOSTS // 4)
    print_frames(2, 2000, new=2)
    if shutil.which("tmux") is None or shutil.which("sshd", path="/usr/sbin:/usr/bin") is None:
        print("  skipped: no tmux or no sshd here")
        return
    file = folder / "status.json"
    file.write_text(json.dumps(make_status()).replace('"AVAILABLE"', "AVAILABLE") + "\n")
    hosts = SshHosts(folder, NoWorkers())
    hosts.add("mac00", SCRIPT.format(file=file))
    try:
        port = hosts.servers["mac00"][0]
        for number in range(1, HOSTS):
            hosts.add_port(f"mac{number:02}", port)
        measure(hosts, folder)
    finally:
        hosts.end()


def measure(hosts: SshHosts, folder: Path) -> None:
    named = [word for name in hosts.servers for word in ("--host", name)]
    command = [sys.executable, "-m", "mpsbar", "top", "--ssh", hosts.options, *named]
    pane = Pane(Peer("hosts", command, f"{HOSTS} of {HOSTS} hosts answer"), folder)
    try:
        while not pane.wait():
            assert time.monotonic() - pane.began < TIMEOUT, pane.tmux("capture-pane", "-p")
        own, *others = pane.family()
        time.sleep(WARM_UP)
        before, began = cpu_of(own), time.monotonic()
        time.sleep(WINDOW)
        spent = (cpu_of(own) - before) / (time.monotonic() - began)
        print(
            f"  all {HOSTS} answered after {pane.first:.1f} s; then {100 * spent:.0f} % of a core and"
            f" {own.memory_info().rss / 2**20:.0f} MB, beside {len(others)} ssh processes"
            f" (load {os.getloadavg()[0]:.0f})"
        )
        spent = [answer_key(pane) for _ in range(KEYS)]
        print(
            f"  a key is answered within {statistics.median(spent):.0f} ms"
            f" ({min(spent):.0f} to {max(spent):.0f}), with tmux"
        )
    finally:
        pane.end()


def answer_key(pane: Pane) -> float:
    """From a key to its help on the screen; at any moment between two readings."""
    time.sleep(random.uniform(0.5, 1.0))
    began = time.monotonic()
    pane.tmux("send-keys", "?")
    while "^z    back" not in pane.tmux("capture-pane", "-p"):
        time.sleep(0.002)
    spent = 1000 * (time.monotonic() - began)
    pane.tmux("send-keys", "q")
    return spent


def print_frames(hosts: int, workers: int, new: int) -> None:
    """The CPU from new readings to a drawn screen, without a terminal; where there are very many
    processes, they are others each time."""
    from mpsbar.ui.terminal.hosts_app import HostsApp

    def read(number: int) -> HostReading:
        first_pid = random.randrange(1000, 10**6) if workers > WORKERS else 1000
        status = make_status(workers, random.random() * 1e6, first_pid)
        line = json.dumps(status).replace('"AVAILABLE"', str(random.randrange(90, 150) * GB))
        return HostReading(f"mac{number:02}", parse_status(line.encode()), time.time())

    readings = [read(number) for number in range(hosts)]
    spent = []

    async def draw() -> None:
        app = HostsApp(lambda: list(readings), lambda *_: "", Settings())
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(1.0)
            for frame in range(FRAMES):
                for number in range(new):
                    at = (frame * new + number) % hosts
                    readings[at] = read(at)
                began = time.process_time()
                app._take()
                await pilot.pause()
                spent.append(1000 * (time.process_time() - began))

    asyncio.run(draw())
    print(
        f"  a frame with {new} new readings of {hosts} hosts with {workers} workers:"
        f" {statistics.median(spent):.0f} ms of CPU ({min(spent):.0f} to {max(spent):.0f})"
    )


def cpu_of(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def make_status(
    count: int = WORKERS, phase: float = 0.0, first_pid: int = 1000
) -> dict[str, object]:
    """`phase`: with another one all sizes are others."""
    workers, processes = [], []
    for number in range(count):
        allocated, cached = int((1 + math.sin(number + phase)) * GB), GB // 2
        sizes = {"allocated": allocated, "cached": cached, "driver": allocated + cached}
        backend = {"name": "mps", "framework": "torch", "state": "in use"} | sizes
        name, pid = f"train{number}.py", first_pid + number
        workers.append(
            {"pid": pid, "name": name, "state": "live", "age_s": 0.1, "backends": [backend],
             "progress": {"bar": {"name": "epoch", "done": 10 * number, "total": 1000}}}
        )  # fmt: skip
        processes.append(
            {"pid": pid, "started": 5.0, "name": name, "frameworks": ["torch"],
             "footprint": allocated + GB, "gpu_percent": 5.0}
        )  # fmt: skip
    machine = {
        "os": "macOS 26.1", "chip": "Apple M2 Ultra", "memory_total": 192 * GB,
        "memory_available": "AVAILABLE", "swap_used": 0, "pressure": "normal",
        "gpu": {"utilization": 60.0},
    }  # fmt: skip
    return {
        "schema": 1, "time": 1.0, "machine": machine, "workers": workers, "processes": processes,
        "health": {"level": "ok", "reasons": []},
    }  # fmt: skip
