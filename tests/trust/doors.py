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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from worker_kit import ROOT, Workers, wait_for

from mpsbar.workers.connection import NotListeningError, WorkerConnection
from mpsbar.workers.poll import WorkerPoll
from trust import places
from trust.figures import Figures, SkippedError

STRANGER = 65534  # nobody
IDLE = "import mpsbar, time; print(mpsbar.attach(), flush=True)\nwhile True: time.sleep(0.05)\n"


@contextmanager
def workers_here() -> Iterator[Workers]:
    if os.geteuid() != 0 or sys.platform != "linux":
        raise SkippedError("only root on Linux can become another user")
    with places.workers_here() as workers:
        workers.folder.chmod(0o755)
        yield workers


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
            except (OSError, NotListeningError):
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


COMMANDS = (
    ["status", "--format", "{held}"],
    ["status", "--watch", "1"],
    ["doctor", "--self-test"],
    ["enable", "--list"],
    ["enable", "--jupyter"],
    ["disable", "--all"],
    ["login", "on"],
    ["login", "off"],
    ["login", "on", "--export"],
    ["login", "off", "--export"],
    ["report"],
    ["why"],
    ["probe", "--device", "cpu"],
    ["config", "edit"],
    ["free", "--all"],
    ["limit", "1", "off"],
    ["run", "--summary", "true"],
)
# They use no file in the home folder, so they have nothing to say about it. What `login` says is its own.
SILENT = ("free", "limit", "login", "run")
# In a mount namespace of its own, so that no file of sudo's is changed for anybody else.
AS_ROOT_BY_SUDO = """
mount --bind "$1" /etc/sudoers.d && shift
exec setpriv --reuid 65534 --regid 65534 --clear-groups sudo -n --preserve-env=HOME,PYTHONPATH "$@"
"""


def run_by_sudo(rules: Path, home: Path, arguments: list[str]) -> str:
    """mpsbar as root, by another user's real sudo that keeps HOME; what it printed."""
    command = ["timeout", "-s", "INT", "25"] if "--watch" in arguments else []
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", AS_ROOT_BY_SUDO, "sh", str(rules), *command, sys.executable,
         "-m", "mpsbar", *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, cwd="/", timeout=300, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def run_with_home(_rules: Path, home: Path, arguments: list[str]) -> str:
    """The same without sudo: root whose HOME is another user's."""
    command = ["timeout", "-s", "INT", "25"] if "--watch" in arguments else []
    done = subprocess.run(
        [*command, sys.executable, "-m", "mpsbar", *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, cwd="/", timeout=300, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def list_files(folder: Path) -> list[tuple[str, int, int]]:
    found = [(path, path.lstat()) for path in [folder, *folder.rglob("*")]]
    return sorted((str(path), status.st_mtime_ns, status.st_uid) for path, status in found)


def anothers_home(
    run: Callable[[Path, Path, list[str]], str] = run_with_home,
    commands: Sequence[list[str]] = COMMANDS,
) -> tuple[int, int]:
    """Root with another user's HOME, empty or full: nothing of it is run, nothing is left in it."""
    held = tried = 0
    with workers_here() as workers:
        rules, marker = workers.folder / "sudoers.d", workers.folder / "ran"
        rules.mkdir()
        (rules / "stranger").write_text("nobody ALL=(root) NOPASSWD:SETENV: ALL\n")
        (rules / "stranger").chmod(0o440)
        for name in ("empty", "full"):
            home = workers.folder / name
            home.mkdir()
            if name == "full":
                fill_home(home, marker)
            for path in [home, *home.rglob("*")]:
                os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
            before = list_files(home)
            for arguments in commands:
                printed = run(rules, home, arguments)
                is_kept = list_files(home) == before and not marker.exists()
                is_said = "belongs to another user (nobody)" in printed or arguments[0] in SILENT
                tried, held = tried + 1, held + (is_kept and is_said)
                if not is_kept or not is_said:
                    print(f"  {name} {arguments}: {printed[-300:]!r}")
    return tried, held


def fill_home(home: Path, marker: Path) -> None:
    """A Python that was enabled, and what mpsbar itself would have written for its owner."""
    python, data = home / "venv" / "bin" / "python", home / ".local" / "share" / "mpsbar"
    startup = home / ".ipython" / "profile_default" / "startup"
    units = home / ".config" / "systemd" / "user"
    for folder in (python.parent, data, startup, units):
        folder.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {marker}\n")
    python.chmod(0o755)
    (data / "enabled.json").write_text(json.dumps({"schema": 1, "pythons": [str(python)]}))
    (startup / "50-mpsbar.py").write_text("# Written by mpsbar enable --jupyter\n")
    (units / "mpsbar-export.service").write_text("[Unit]\nX-FoldersMade=0\n")


def anothers_home_kept_by_sudo(commands: Sequence[list[str]] = COMMANDS) -> tuple[int, int]:
    if shutil.which("sudo") is None or shutil.which("unshare") is None:
        raise SkippedError("sudo or unshare is not installed")
    return anothers_home(run_by_sudo, commands)


# Runs alone in a pid namespace. A worker is looked at; then it is killed and the kernel gives its pid
# to the next one, while somebody asks for what was meant for the first.
REUSE = """
import os, random, signal, subprocess, sys, threading, time
from mpsbar.core.actions import *
from mpsbar.monitor import Monitor
from mpsbar.system import this_computer
from mpsbar.workers.poll import WorkerPoll
NURSERY = '''
import os, signal, sys, time
try: import mlx.core as mx
except ImportError: mx = None
import mpsbar.agent.lifecycle
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    pid = wanted = int(line)
    for _ in range(50):  # another thread may have taken it
        with open("/proc/sys/kernel/ns_last_pid", "w") as file: file.write(str(wanted - 1))
        pid = os.fork()
        if pid == wanted: break
        if not pid and os.getpid() != wanted: os._exit(0)
        if not pid: break
    if not pid:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if mx is not None: mx.eval(mx.ones((8,)))  # without a framework nothing can be limited
        assert mpsbar.agent.lifecycle.attach()
        while True: time.sleep(0.01)
    print(pid if pid == wanted else -1, flush=True)  # another's child has ended itself
'''
ACTIONS = {
    "Stop": lambda pid, started: Stop(pid, started, "x"),
    "Free": lambda pid, started: Free(pid, 5.0, started),
    "FreeWhenPossible": FreeWhenPossible,
    "CancelFree": CancelFree,
    "FindTensors": FindTensors,
    "Limit": lambda pid, started: Limit(pid, 1 << 30, started),
}
make, times = ACTIONS[sys.argv[1]], int(sys.argv[2])
nursery = subprocess.Popen([sys.executable, "-W", "ignore", "-c", NURSERY], stdin=-1, stdout=-1, text=True)
def bear(pid):
    nursery.stdin.write(f"{pid}\\n"); nursery.stdin.flush()
    return int(nursery.stdout.readline())
def is_there(pid):
    try: os.kill(pid, 0)
    except ProcessLookupError: return False
    return True
computer, monitor, poll = this_computer(), Monitor(), WorkerPoll()
def read_stats(pid):
    deadline = time.monotonic() + 120  # a busy machine
    while time.monotonic() < deadline:
        for worker in poll.poll(seconds=0.5):
            if worker.pid == pid and worker.state == "live" and worker.agent: return worker
        if not is_there(pid): raise ProcessLookupError(pid)
        time.sleep(0.005)
    raise SystemExit(f"no answer of {pid}: {poll.poll()}")
def is_untouched(worker):
    return (worker.last_free, worker.pending_free, worker.limit) == (None, None, None)
monitor.perform(Free(1)).result()  # starts its thread, which has a number too
tried = held = 0
states = {}
for number in range(times):
    pid = bear(300 + 50 * number)  # their threads have numbers too
    if pid < 0:  # a thread has that number
        states["not tried"] = states.get("not tried", 0) + 1
        continue
    read_stats(pid)
    action = make(pid, computer.read_start(pid))
    time.sleep(0.02)  # starts are counted in hundredths of a second
    second = []
    def exchange():
        os.kill(pid, signal.SIGKILL)
        while is_there(pid): time.sleep(0.0005)
        second.append(bear(pid))
    thread = threading.Thread(target=exchange)
    thread.start()
    # Any moment; every third time the second one is there and answers.
    if number % 3 == 0:
        thread.join()
        if second == [pid]: read_stats(pid)
    else:
        time.sleep(random.random() * 0.02)
    outcome = monitor.perform(action).result()
    thread.join()
    if second == [pid]:
        tried += 1
        states[outcome.state] = states.get(outcome.state, 0) + 1
        # Once the second one answers, every other outcome means that it was asked.
        was_asked = number % 3 == 0 and outcome.state not in ("gone", "another")
        held += is_there(pid) and is_untouched(read_stats(pid)) and not was_asked
    if second == [pid]:
        if is_there(pid): os.kill(pid, signal.SIGKILL)
        while is_there(pid): time.sleep(0.001)
    else:
        states["not tried"] = states.get("not tried", 0) + 1
nursery.kill()
monitor.close()
print(tried, held, states)
os._exit(0)
"""


def use_of_a_reused_pid(action: str, times: int = 60) -> tuple[int, int]:
    """In a pid namespace of its own the kernel gives a pid again; its new owner is left alone."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise SkippedError("no pid namespace can be made")
    with workers_here() as workers:
        command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", REUSE]
        done = subprocess.run(
            [*command, action, str(times)],
            env=workers.env(PYTHONPATH=str(ROOT)),
            capture_output=True, text=True, timeout=1200, check=False,
        )  # fmt: skip
    if not done.stdout:
        raise RuntimeError(done.stderr[-500:])
    tried, held, states = done.stdout.split(maxsplit=2)
    print(f"  {action}: {states.strip()}")
    return int(tried), int(held)


def anothers_socket_under_a_pid() -> tuple[int, int]:
    """A killed worker's socket stays; another process serves it by now: nothing is asked of it."""
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


ATTACKS = {
    "another user calls an agent": strangers_call,
    "unsafe run directories": unsafe_run_directories,
    "planted sockets": planted_sockets,
    "exchanged between check and connect": exchanged_between_check_and_connect,
    "settings that another user can change": settings_of_another,
    "root with another user's HOME": anothers_home,
    "sudo with another user's HOME kept": anothers_home_kept_by_sudo,
    "another process's socket under a pid": anothers_socket_under_a_pid,
    "Stop of a pid that is used again": lambda: use_of_a_reused_pid("Stop"),
    "Free of a pid that is used again": lambda: use_of_a_reused_pid("Free"),
    "Free When Possible of a pid that is used again": lambda: use_of_a_reused_pid(
        "FreeWhenPossible"
    ),
    "Cancel of a Free, of a pid that is used again": lambda: use_of_a_reused_pid("CancelFree"),
    "Largest Tensors of a pid that is used again": lambda: use_of_a_reused_pid("FindTensors"),
    "a limit for a pid that is used again": lambda: use_of_a_reused_pid("Limit"),
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
