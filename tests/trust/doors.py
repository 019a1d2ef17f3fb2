"""Doors: another user, planted and exchanged files and sockets, reused pids. Root only, on Linux."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from worker_kit import ROOT, Workers, wait_for

from mpsbar.workers.connection import Refused, WorkerConnection
from mpsbar.workers.poll import WorkerPoll
from trust.figures import Figures, Skipped

STRANGER = 65534  # nobody
IDLE = "import mpsbar, time; print(mpsbar.attach(), flush=True)\nwhile True: time.sleep(0.05)\n"


@contextmanager
def workers_here() -> Iterator[Workers]:
    if os.geteuid() != 0 or sys.platform != "linux":
        raise Skipped("only root on Linux can become another user")
    workers = Workers()
    before = os.environ.get("MPSBAR_RUN_DIR")
    os.environ["MPSBAR_RUN_DIR"] = str(workers.run_dir)
    workers.folder.chmod(0o755)
    try:
        yield workers
    finally:
        if before is None:
            del os.environ["MPSBAR_RUN_DIR"]
        else:
            os.environ["MPSBAR_RUN_DIR"] = before
        workers.end()
        shutil.rmtree(workers.folder, ignore_errors=True)


def as_stranger(code: str) -> "subprocess.Popen[str]":
    drop = f"import os, socket, sys, time; os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})\n"
    return subprocess.Popen(
        [sys.executable, "-c", drop + code], stdout=subprocess.PIPE, text=True, cwd="/"
    )


def run_mpsbar(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "mpsbar", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | env,
        capture_output=True, text=True, cwd="/", timeout=300, check=False,
    )  # fmt: skip


def strangers_call(times: int = 20) -> tuple[int, int]:
    """Another user connects to an agent whose files would let him in; he gets no answer."""
    with workers_here() as workers:
        worker = workers.start(IDLE)
        workers.run_dir.chmod(0o755)
        worker.path.chmod(0o777)
        child = as_stranger(f"""
held = 0
for _ in range({times}):
    s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect({str(worker.path)!r})
    try:
        s.sendall(b'{{"jsonrpc":"2.0","id":1,"method":"hello"}}\\n')
        held += s.recv(1000) == b""
    except OSError: held += 1
print(held)
""")
        held = int(child.communicate(timeout=600)[0])
        assert worker.ask("hello")["pid"] == worker.pid
        return times, held


def unsafe_run_directories() -> tuple[int, int]:
    """The agent binds in no directory that others can write, that is a link or not its own."""
    held = 0
    with workers_here() as workers:
        cases: dict[str, Callable[[Path], object]] = {
            "group": lambda path: (path.mkdir(), path.chmod(0o770)),
            "world": lambda path: (path.mkdir(), path.chmod(0o777)),
            "sticky": lambda path: (path.mkdir(), path.chmod(0o1777)),
            "foreign": lambda path: (path.mkdir(0o700), os.chown(path, STRANGER, STRANGER)),
            "link": lambda path: path.symlink_to(workers.run_dir),
            "file": lambda path: path.touch(),
        }
        for name, make in cases.items():
            folder = workers.folder / name
            make(folder)
            mode = folder.lstat().st_mode
            code = "import mpsbar; print(mpsbar.attach())"
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=workers.env(PYTHONPATH=str(ROOT)) | {"MPSBAR_RUN_DIR": str(folder)},
                capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
            is_quiet = done.returncode == 0 and len(done.stderr.splitlines()) == 1
            held += done.stdout == "False\n" and is_quiet and folder.lstat().st_mode == mode
        return len(cases), held


def planted_sockets() -> tuple[int, int]:
    """Another user's listener in our directory, then one of ours under another's pid."""
    with workers_here() as workers:
        workers.run_dir.chmod(0o777)
        path = workers.run_dir / "4000000.sock"
        child = as_stranger(f"""
s = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); os.chmod({str(path)!r}, 0o777); s.listen(5)
print("up", flush=True); s.settimeout(5)
try: print("heard", s.accept()[0].recv(100))
except OSError: print("silence")
""")
        assert child.stdout is not None
        child.stdout.readline()
        held = 0
        for mode in (
            0o777,
            0o700,
        ):  # by its rights it is not looked at; else the kernel says whose it is
            workers.run_dir.chmod(mode)
            poll = WorkerPoll()
            held += poll.poll(seconds=0.2) == ()
            poll.close()
        heard = child.communicate(timeout=60)[0]
        held += "heard b'{" not in heard
        path.unlink()
        ours = socket.socket(socket.AF_UNIX)
        ours.bind(str(workers.run_dir / f"{os.getppid()}.sock"))
        ours.listen(5)
        poll = WorkerPoll()
        held += poll.poll(seconds=0.2) == ()
        poll.close()
        ours.close()
        return 4, held


def exchanged_between_check_and_connect(times: int = 300) -> tuple[int, int]:
    """A listener of another user takes turns with ours under one name while we connect."""
    with workers_here() as workers:
        workers.run_dir.chmod(0o777)
        path, theirs = workers.run_dir / f"{os.getpid()}.sock", workers.run_dir / "theirs"
        ours = workers.run_dir / "ours"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(ours))
        listener.listen(128)
        child = as_stranger(f"""
s = socket.socket(socket.AF_UNIX); s.bind({str(theirs)!r}); os.chmod({str(theirs)!r}, 0o777); s.listen(128)
print("up", flush=True); heard = 0
s.settimeout(20)
try:
    while True:
        link, _ = s.accept(); link.settimeout(5); heard += bool(link.recv(100)); link.close()
except OSError: print(heard)
""")
        assert child.stdout is not None
        child.stdout.readline()
        stop = threading.Event()

        def exchange() -> None:
            while not stop.is_set():
                for target in (ours, theirs):
                    link = workers.run_dir / "next"
                    os.link(target, link)
                    link.replace(path)
                    time.sleep(0.0002)

        thread = threading.Thread(target=exchange)
        thread.start()
        reached = tried = 0
        while tried < times:
            try:
                connection = WorkerConnection(str(path), os.getpid())
            except (OSError, Refused):
                tried += path.exists()
                continue
            tried, reached = tried + 1, reached + 1
            connection.ask("hello")
            connection.send()
            connection.close()
            listener.accept()[0].close()
        stop.set()
        thread.join()
        heard = int(child.communicate(timeout=60)[0])
        listener.close()
        print(f"  of {tried} connects {reached} reached ours, {heard} words reached the stranger")
        return tried, tried - heard


def settings_of_another() -> tuple[int, int]:
    """A hard link to another user's file, a linked one, a writable one: none is believed."""
    held = 0
    with workers_here() as workers:
        theirs = workers.folder / "theirs.toml"
        theirs.write_text('bar = "gpu"\n')
        os.chown(theirs, STRANGER, STRANGER)
        for name in ("hard", "soft", "writable"):
            folder = workers.folder / name
            folder.mkdir(0o700)
            file = folder / "settings.toml"
            if name == "hard":
                os.link(theirs, file)
            elif name == "soft":
                file.symlink_to(theirs)
            else:
                file.write_text('bar = "gpu"\n')
                file.chmod(0o666)
            done = run_mpsbar("config", "print", MPSBAR_CONFIG_DIR=str(folder))
            held += 'bar = "gpu"' not in done.stdout and "internal error" not in done.stderr
    return 3, held


def anothers_home_kept_by_sudo() -> tuple[int, int]:
    """Root with another user's HOME: nothing of it is run, nothing is left in it."""
    held = 0
    with workers_here() as workers:
        home, marker = workers.folder / "home", workers.folder / "ran"
        python = home / "venv" / "bin" / "python"
        data = home / ".local" / "share" / "mpsbar"
        for folder in (python.parent, data):
            folder.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\ntouch {marker}\n")
        python.chmod(0o755)
        (data / "enabled.json").write_text(json.dumps({"schema": 1, "pythons": [str(python)]}))
        for path in [home, *home.rglob("*")]:
            os.chown(path, STRANGER, STRANGER)
        before = sorted((str(path), path.lstat().st_mtime_ns) for path in home.rglob("*"))
        verbs = (
            ["status"],
            ["enable", "--list"],
            ["disable", "--all"],
            ["report", "-o", "/dev/null"],
        )
        for arguments in verbs:
            env = dict.fromkeys(("MPSBAR_DATA_DIR", "XDG_DATA_HOME"), "")
            run_mpsbar(*arguments, HOME=str(home), SUDO_USER="nobody", **env)
            after = sorted((str(path), path.lstat().st_mtime_ns) for path in home.rglob("*"))
            held += after == before and not marker.exists()
        return len(verbs), held


REUSE = """
import os, signal, subprocess, sys, time
from mpsbar.system import this_computer
from mpsbar.system.stop import stop
from mpsbar.core.actions import Stop
computer, held, tried = this_computer(), 0, 0
for _ in range(int(sys.argv[1])):
    first = subprocess.Popen(["sleep", "600"])
    started = computer.read_start(first.pid)
    first.kill(); first.wait()
    time.sleep(0.03)  # starts are counted in hundredths of a second
    with open("/proc/sys/kernel/ns_last_pid", "w") as file: file.write(str(first.pid - 1))
    second = subprocess.Popen(["sleep", "600"])
    if second.pid == first.pid:
        tried += 1
        outcome = ask(computer, first.pid, started)
        time.sleep(0.02)
        held += outcome == "another" and second.poll() is None
    second.kill(); second.wait()
print(tried, held)
"""


def stop_of_a_reused_pid(times: int = 30) -> tuple[int, int]:
    """In a pid namespace of its own the kernel gives a pid again; Stop leaves its new owner alone."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise Skipped("no pid namespace can be made")
    ask = "def ask(computer, pid, started):\n    return stop(computer, Stop(pid=pid, name='x', started=started)).state\n"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", ask + REUSE, str(times)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if not done.stdout:
        raise RuntimeError(done.stderr[-500:])
    tried, held = map(int, done.stdout.split())
    return tried, held


def free_of_a_reused_pid() -> tuple[int, int]:
    """A killed worker's socket stays; another process may have its pid by now: nothing is asked of it."""
    from mpsbar.workers.request import free_worker

    with workers_here() as workers:
        worker = workers.start(IDLE)
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait()
        first = free_worker(worker.pid).state == "gone"
        other = workers.start(IDLE)
        os.link(other.path, worker.path.with_suffix(".new"))
        worker.path.with_suffix(".new").replace(worker.path)  # as if it were the old one's
        second = free_worker(worker.pid).state == "refused"
        wait_for(lambda: other.ask("stats"), "answer")
        return 2, first + second


def limit_of_a_reused_pid() -> tuple[int, int]:
    """The same for a limit: the process that has the pid now keeps what it has."""
    from mpsbar.workers.request import limit_worker

    with workers_here() as workers:
        worker = workers.start(IDLE)
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait()
        first = limit_worker(worker.pid, 1 << 30).state == "gone"
        other = workers.start(IDLE)
        os.link(other.path, worker.path.with_suffix(".new"))
        worker.path.with_suffix(".new").replace(worker.path)  # as if it were the old one's
        second = limit_worker(worker.pid, 1 << 30).state == "refused"
        wait_for(lambda: other.ask("stats"), "answer")
        return 2, first + second


ATTACKS = {
    "another user calls an agent": strangers_call,
    "unsafe run directories": unsafe_run_directories,
    "planted sockets": planted_sockets,
    "exchanged between check and connect": exchanged_between_check_and_connect,
    "settings that another user can change": settings_of_another,
    "root with another user's HOME": anothers_home_kept_by_sudo,
    "Stop of a pid that was used again": stop_of_a_reused_pid,
    "Free of a pid that was used again": free_of_a_reused_pid,
    "a limit for a pid that was used again": limit_of_a_reused_pid,
}


def main(scale: float = 1.0) -> int:
    del scale
    figures = Figures("doors")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            {f"MPSBAR_{name}_DIR": f"{folder}/{name}" for name in ("DATA", "CONFIG", "LOG")}
        )
        for name, attack in ATTACKS.items():
            figures.run(name, attack)
    return figures.end()
