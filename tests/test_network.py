"""mpsbar talks to nobody: no connect, no listener, no look-up of a name, outside Unix sockets."""

import ast
import os
import re
import shutil
import subprocess
import sys

import appkit
import psutil
import pytest
from fake_torch import join, make_torch, working
from fleet_kit import wait_page
from worker_kit import ATTACH, ROOT, TIMEOUT, wait_for

ONE = '{"schema": 1, "time": 1, "machine": {}, "workers": [], "processes": [], "health": {}}'

# Runs in every Python that mpsbar starts, and in mpsbar itself.
WATCH = """
import os, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        address = arguments[-1] if event[7:] in ("connect", "bind", "sendto") else arguments[0]
        if isinstance(address, (str, bytes)) and event[7:] in ("connect", "bind", "sendto"): return
        with open(os.environ["NETWORK_LOG"], "a") as file: file.write(f"{event} {address!r} {sys.argv}\\n")
sys.addaudithook(watch)
"""
MODULES = {
    "aiohttp", "ftplib", "http", "httpx", "imaplib", "poplib", "requests", "smtplib", "socketserver", "ssl",
    "urllib3", "webbrowser", "xmlrpc",
}  # fmt: skip
# Only for a link that a person clicks, or a path written as a link.
ALLOWED = {"urllib.parse"}


@pytest.fixture
def watched(workers):
    folder = workers.folder / "watch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WATCH)
    make_torch(folder, working())  # a report looks at every Python: a second less for each
    log = workers.folder / "network.log"

    def run(*arguments):
        path = f"{folder}:{ROOT}"
        subprocess.run(
            [sys.executable, *arguments],
            env=workers.env(PYTHONPATH=path, NETWORK_LOG=str(log), HOME=str(workers.folder)),
            capture_output=True, cwd="/", timeout=TIMEOUT, check=False,
        )  # fmt: skip
        return log.read_text() if log.exists() else ""

    return run


def test_the_watch_sees_a_connect(watched):
    code = "import socket; socket.socket().connect_ex(('127.0.0.1', 9))"
    assert "socket.connect ('127.0.0.1', 9)" in watched("-c", code)


def test_no_command_opens_a_connection(watched, workers):
    workers.start(ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    report = str(workers.folder / "report.html")
    # As Python sees it, also the look-up of a name; all others as the kernel sees them, below.
    for arguments in (["status", "--json"], ["report", "-o", report], ["config", "print"], ["login", "status"]):  # fmt: skip
        assert watched("-m", "mpsbar", *arguments) == ""


# As the kernel sees it: also what libraries and other programs do, whom no hook of Python reaches.
FAMILIES = re.compile(r"^\d+<(.*?)> (\w+)\(.*?sa_family=(AF_\w+)(.*)$")
LOCAL = ("AF_UNIX", "AF_LOCAL", "AF_UNSPEC", "AF_NETLINK")


@pytest.fixture
def traced(workers):
    """Runs a command; the calls of it and its children that name an address outside this computer's files."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")

    def start(*command, **extra):
        log = workers.folder / f"trace-{len(workers.started)}-{os.urandom(2).hex()}"
        trace = [
            "strace",
            "-f",
            "--seccomp-bpf",  # only the traced calls stop a program
            "--decode-pids=comm",
            "-e",
            "trace=connect,bind,sendto,sendmsg,sendmmsg",
        ]
        worker = workers.run([*trace, "-e", "signal=none", "-o", str(log), *command], **extra)
        return worker, log

    return start


def find_calls(log):
    """(program, call, address) of every call that is not between processes of this computer."""
    found = []
    for line in log.read_text(errors="replace").splitlines():
        match = FAMILIES.match(line)
        if match and match[3] not in LOCAL:
            found.append((match[1], match[2], f"{match[3]}{match[4]}"))
    return found


def wait_end(worker):
    wait_for(lambda: worker.process.poll() is not None, "end")
    return worker.end()


def test_the_trace_sees_what_no_hook_of_python_sees(traced):
    code = """
import ctypes, socket, struct
number = socket.socket().fileno()
address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(9), bytes([127, 0, 0, 1]))
ctypes.CDLL(None).connect(number, address, 16)
"""
    worker, log = traced(
        sys.executable,
        "-c",
        "import socket; keep = socket.socket()\n" + code.replace("socket.socket()", "keep"),
    )
    wait_end(worker)
    ((_, call, address),) = find_calls(log)
    assert call == "connect"
    assert "127.0.0.1" in address


MODEL = """
import torch
def make(): return torch.nn.Linear(4, 4), torch.ones(2, 4)
"""
# Commands that ask a worker: their connects to its socket show that something was traced.
ASKING = ("status", "free", "limit", "top")


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"], ["free", "--all"], ["doctor", "--python", sys.executable], ["limit", "PID", "off"],
        ["why"], ["why", "--json"], ["probe", "--device", "cpu", "--python", sys.executable],
        ["compare", "MODEL:make", "--dtypes", "float32", "--python", sys.executable], ["enable", "--list"],
        ["run", "--summary", "--explain", sys.executable, "-c", "import torch, mpsbar; mpsbar.attach()"],
        ["report", "-o", "REPORT"], ["doctor", "--self-test", "--share"], ["top"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_kernel_sees_no_connection_of_any_command(traced, workers, arguments):
    asked = workers.start(ATTACH + "import time\nwhile True: time.sleep(0.05)\n")
    model = workers.folder / "model.py"
    model.write_text(MODEL)
    places = {
        "PID": str(asked.pid),
        "MODEL:make": f"{model}:make",
        "REPORT": f"{workers.folder}/r.html",
    }
    words = [places.get(word, word) for word in arguments]
    how = ["-c", ON_A_TERMINAL, "worker0.py"] if words == ["top"] else ["-m", "mpsbar"]
    extra = {"HOME": str(workers.folder)}
    if (
        words[0] == "report"
    ):  # it looks at every Python, as doctor does, which does it with the real torch
        extra["PYTHONPATH"] = join(make_torch(workers.folder / "light", working()), str(ROOT))
    worker, log = traced(sys.executable, *how, *words, **extra)
    errors = wait_end(worker)
    assert "strace:" not in errors, errors
    assert worker.process.returncode in (0, 1), (
        errors
    )  # 1: no run has ended, nothing can be limited
    assert "connect" in log.read_text() or words[0] not in ASKING, "nothing was traced"
    assert find_calls(log) == []


# Starts a command on a terminal of its own, and presses q once it shows what the first argument says.
ON_A_TERMINAL = """
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if not pid:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.environ["TERM"] = "xterm-256color"
    os.execv(sys.executable, [sys.executable, "-m", "mpsbar", *sys.argv[2:]])
shown = b""
try:
    while sys.argv[1].encode() not in shown: shown += os.read(terminal, 65536)
    os.write(terminal, b"q")
    while os.read(terminal, 65536): pass
except OSError: pass  # its program has ended
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if sys.argv[1].encode() in shown else 9)
"""


def test_the_kernel_sees_no_connection_of_the_menu_bar(traced, workers):
    """The scene of its own test: real workers, the monitor and rumps, on the double of AppKit; a Free, tensors, Stop."""
    scene = "tests/ui/menubar/test_app_real.py::test_tensors_stop_and_notify_when_it_ends"
    if why := appkit.why_no_rumps():
        pytest.skip(why)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    worker, log = traced(*command, scene, popen={"cwd": str(ROOT), "stderr": subprocess.STDOUT})
    assert "1 passed" in worker.wait_line(" in ")
    wait_for(lambda: worker.process.poll() is not None, "end")
    assert "connect" in log.read_text(), "nothing was traced"
    assert find_calls(log) == []


def test_the_exporter_listens_on_loopback_alone_and_calls_nobody(traced, workers):
    worker, log = traced(
        sys.executable, "-m", "mpsbar", "export", "--listen", "127.0.0.1:0", popen={"stderr": subprocess.STDOUT}
    )  # fmt: skip
    url = worker.wait_line("http://").split()[-1]
    wait_page(url, "mpsbar_ticks_total")
    psutil.Process(worker.pid).children()[0].terminate()
    wait_for(lambda: worker.process.poll() is not None, "end")
    calls = find_calls(log)
    assert calls
    for _, call, address in calls:
        assert call == "bind"
        assert '"127.0.0.1"' in address


def test_other_hosts_are_reached_by_the_users_ssh_alone(traced, workers, ssh_hosts):
    ssh_hosts.add("alpha", f"echo '{ONE}'")
    worker, log = traced(
        sys.executable, "-m", "mpsbar", "status", "--ssh", ssh_hosts.options, "--host", "alpha"
    )
    wait_for(lambda: worker.process.poll() is not None, "end")
    calls = find_calls(log)
    assert {program for program, _, _ in calls} == {"ssh"}


def test_no_module_of_ours_imports_a_client_of_the_network():
    """`fleet` is the exporter, which listens where its user says, and ssh, which is a program."""
    sources = (ROOT / "mpsbar").rglob("*.py")
    for path in [path for path in sources if path.parent.name != "fleet"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] not in MODULES, (path, name)
                assert not name.startswith("urllib") or name in ALLOWED, (path, name)
