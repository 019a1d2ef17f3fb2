"""Starts hosts with torch already imported: one process imports it, and each host is a fork of that.

An import of torch takes two seconds of a core, a fork some milliseconds, and the tests need hundreds of
hosts. The server runs no kernel and starts no thread, so a fork of it is as good as a fresh Python after
`import torch`. It differs in what the system says about it: its command line and its environment in /proc
are the server's. A test that looks there starts a Python of its own.
"""

import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

# Read by the interpreter, by torch or by its libraries when they are loaded: too late after a fork.
READ_AT_START = (
    "PYTHON",
    "PYTORCH_",
    "TORCH",
    "OMP_",
    "MKL_",
    "KMP_",
    "LD_",
    "MALLOC_",
    "LC_",
    "LANG",
)
UNDERSTOOD = {"PYTHONPATH", "PYTHONUNBUFFERED", "OMP_NUM_THREADS"}
# Files in a folder of PYTHONPATH that a fresh Python would run or import in place of what is loaded.
CHANGES_START = ("sitecustomize.py", "usercustomize.py", "torch", "torch.py")
# How a sitecustomize.py begins that does the same after an import of torch: a fork runs it.
AFTER_TORCH = "# torch may have been imported\n"
MESSAGE = 1 << 17  # bytes; a request holds the environment and the code
ENTRY = """import sys; sys.path[0] = {tests!r}
{after}
import fork_server
exec(fork_server.serve({fd}))
__leave__()
"""


class ForkedProcess:
    """A host that the server forked, with the methods of subprocess.Popen that tests use."""

    def __init__(self, status: int, pipes: "list[Any]") -> None:
        self.stdin, self.stdout, self.stderr = pipes
        self._status = os.fdopen(
            status, "rb", 0
        )  # a line with the pid, later one with the exit code
        self.returncode: int | None = None
        self.pid = self._read_number()

    def _read_number(self) -> int:
        line = self._status.readline()
        if not line:
            raise RuntimeError("the server of tests/fork_server.py has ended")
        return int(line)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            with selectors.DefaultSelector() as watch:
                watch.register(self._status, selectors.EVENT_READ)
                if not watch.select(timeout):
                    raise subprocess.TimeoutExpired(f"host {self.pid}", timeout or 0)
            self.returncode = self._read_number()
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended, and its server says so soon
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(
        self,
        input: bytes | None = None,  # noqa: A002 (as in subprocess)
        timeout: float | None = None,
    ) -> "tuple[bytes, bytes]":
        """Write `input`, read all output and wait for the end; small inputs only, nothing is interleaved."""
        end = None if timeout is None else time.monotonic() + timeout
        if self.stdin is not None and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.write(input or b"")
                self.stdin.flush()
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        texts: dict[Any, list[bytes]] = {p: [] for p in (self.stdout, self.stderr) if p is not None}
        with selectors.DefaultSelector() as watch:
            for pipe in texts:
                if not pipe.closed:
                    watch.register(pipe, selectors.EVENT_READ)
            while watch.get_map():
                ready = watch.select(None if end is None else max(0.0, end - time.monotonic()))
                if not ready and end is not None and time.monotonic() >= end:
                    raise subprocess.TimeoutExpired(f"host {self.pid}", timeout or 0)
                for key, _ in ready:
                    piece = os.read(key.fd, 1 << 16)
                    texts[key.fileobj].append(piece)
                    if not piece:
                        watch.unregister(key.fileobj)
                        key.fileobj.close()
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        return b"".join(texts.get(self.stdout, [])), b"".join(texts.get(self.stderr, []))


class Server:
    """The process that has imported torch, seen from the tests."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.environment = _usual_environment()
            self.process: Any = self._begin(theirs.fileno())
        self.control = ours

    def _begin(self, fd: int) -> Any:
        entry = ENTRY.format(tests=str(Path(__file__).parent), fd=fd, after="")
        return subprocess.Popen(
            [sys.executable, "-c", entry], env=self.environment, pass_fds=[fd],
            stdin=subprocess.DEVNULL, cwd="/", start_new_session=True,
        )  # fmt: skip

    def start(
        self, request: "dict[str, Any]", *, stdin: int, stdout: int, stderr: int | None
    ) -> ForkedProcess:
        """A host; the last three as for subprocess.Popen, of files only the number."""
        pipes: list[Any] = []
        theirs: list[int] = []
        for number, kind in enumerate((stdin, stdout, stderr)):
            if kind == subprocess.PIPE:
                read, write = os.pipe()
                theirs.append(write if number else read)
                pipes.append(os.fdopen(read, "rb", 0) if number else os.fdopen(write, "wb", 0))
            else:
                null = kind == subprocess.DEVNULL
                same = theirs[1] if kind == subprocess.STDOUT else number if kind is None else kind
                theirs.append(os.open(os.devnull, os.O_RDWR) if null else os.dup(same))
                pipes.append(None)
        ours, status = os.pipe()
        theirs.append(status)
        socket.send_fds(self.control, [json.dumps(request).encode()], theirs)
        for fd in theirs:
            os.close(fd)
        return ForkedProcess(ours, pipes)

    def end(self) -> None:
        """The hosts that still run are their tests' own matter."""
        self.control.close()
        self.process.wait()


class ServerAfter(Server):
    """A fork of the server that has run some more code, which takes long as well."""

    def __init__(self, first: Server, after: str) -> None:
        self.first, self.after = first, after
        super().__init__()

    def _begin(self, fd: int) -> Any:
        entry = ENTRY.format(tests=str(Path(__file__).parent), fd=0, after=self.after)
        command = [sys.executable, "-c", entry]
        request = {"command": command, "env": self.environment, "cwd": "/", "leave": False}
        return self.first.start(request, stdin=fd, stdout=1, stderr=2)


class SharedServer(Server):
    """The server of another process, to which each request is one message."""

    def __init__(self, fd: int, environment: "dict[str, str]") -> None:
        self.control = socket.socket(fileno=fd)
        self.environment = environment


# Once a test has needed it: one that has torch, and one for each code that was run after that.
_servers: dict[str, Server] = {}
_starting = threading.Lock()  # some tests start hosts from two threads


def end_servers() -> None:
    while _servers:
        _servers.popitem()[1].end()


def _usual_environment() -> dict[str, str]:
    """What hosts have in common; each brings the whole of its own."""
    ours = ("MPSBAR_", "SOFTMPS", "PYTEST", "PYTHONPATH")
    usual = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return usual | {"PYTHONUNBUFFERED": "1"}


def can_serve(command: "list[str]", env: "dict[str, str]") -> bool:
    """Whether a fork would be the same to this program as a Python of its own."""
    if not sys.platform.startswith("linux") or find_spec("torch") is None:
        return False
    if command[0] != sys.executable:
        return False
    usual = next((s.environment for s in _servers.values()), None) or _usual_environment()
    options = [word for word in command[1:2] if word.startswith("-") and word not in ("-B", "-c")]
    other = {n for n in env.keys() | usual.keys() if env.get(n) != usual.get(n)} - UNDERSTOOD
    places = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    return not (
        options
        or any(name.startswith(READ_AT_START) for name in other)
        or any(_changes_start(Path(place, name)) for place in places for name in CHANGES_START)
    )


def _changes_start(path: Path) -> bool:
    return path.exists() and not (
        path.name == "sitecustomize.py" and path.read_text().startswith(AFTER_TORCH)
    )


def start_python(
    command: "list[str]", *, env: "dict[str, str]", cwd: "str | Path",
    stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE, stderr: int | None = subprocess.PIPE,
    start_new_session: bool = True, bufsize: int = 0, leave: bool = False, after: str = "",
) -> Any:  # fmt: skip
    """`python [-B] FILE` or `python [-B] -c CODE` as a fork of a Python that has torch; else as it is.

    With `leave`, a program that reached its end runs its exit functions and leaves; taking torch apart
    module by module, as Python does at its end, would cost it half a second more. `after` is code that
    the program would run first, such as more imports of seconds: a fork comes from a server that has.
    """
    if not can_serve(command, env):
        return subprocess.Popen(
            command, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr,
            start_new_session=start_new_session, bufsize=bufsize,
        )  # fmt: skip
    assert start_new_session
    assert bufsize == 0
    request = {"command": command, "env": env, "cwd": str(cwd), "leave": leave}
    return _need_server(after).start(request, stdin=stdin, stdout=stdout, stderr=stderr)


def _need_server(after: str = "") -> Server:
    with _starting:
        if after not in _servers:
            first = _servers.get("") or _servers.setdefault("", Server())
            if after:
                _servers[after] = ServerAfter(first, after)
    return _servers[after]


def run_python(
    command: "list[str]", *, env: "dict[str, str]", cwd: "str | Path", timeout: float, input: str = "",  # noqa: A002
    after: str = "",
) -> "subprocess.CompletedProcess[str]":  # fmt: skip
    """The same to its end, as subprocess.run with text and captured output."""
    process = start_python(
        command, env=env, cwd=cwd, stdin=subprocess.PIPE, leave=True, after=after
    )
    try:
        out, err = process.communicate(input.encode(), timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out.decode(), err.decode())


def run_beside_mps(code: str) -> str:
    """For `after`, where the code asks torch for MPS: torch remembers the answer.

    The device itself is made in each fork, by its own variables.
    """
    return f"""
import softmps.build, torch
torch.ops.load_library(softmps.build.build(lambda line: None))
torch._C._has_mps = True
{code}
torch._C._has_mps = False
"""


def run_fresh(
    command: "list[str]", *, env: "dict[str, str]", cwd: "str | Path", timeout: float
) -> "subprocess.CompletedProcess[str]":
    """The same in a Python of its own that has imported nothing yet."""
    return subprocess.run(
        command, env=env, cwd=cwd, timeout=timeout, capture_output=True, text=True
    )


# ---- children of mpsbar ----


def fork_children(after: str = "") -> Any:
    """For mpsbar.system.child_process.start_python: the same, but children with torch are forks.

    Where the environment asks for a start of its own (PYTHONPATH with a start-up file, PYTORCH_
    variables), and for any other Python, they start as usual.
    """
    from mpsbar.system.child_process import start_python as start_fresh

    def start(
        python: str, arguments: "list[str]", environ: Any, *, stdin: int = subprocess.DEVNULL
    ) -> Any:
        command, env = [python, "-B", *arguments], dict(environ)
        if can_serve(command, env):
            return start_python(command, env=env, cwd="/", stdin=stdin, after=after)
        return start_fresh(python, arguments, environ, stdin=stdin)

    return start


# `mpsbar …` whose children are forks of the test's own server.
COMMAND = """import json, os, sys
sys.path.insert(0, {tests!r}); import fork_server; del sys.path[0]
fork_server._servers[{after!r}] = fork_server.SharedServer(*json.loads({shared!r}))
from mpsbar.system import child_process
child_process.start_python = fork_server.fork_children({after!r})
if "status" in sys.argv:  # half a second for workers is too little on busy cores
    from mpsbar.workers.poll import WorkerPoll
    WorkerPoll.poll.__defaults__ = (None, 120.0)
from mpsbar.__main__ import main
sys.argv[0] = "mpsbar"
sys.exit(main())
"""


def run_mpsbar(
    arguments: "list[str]",
    *,
    env: "dict[str, str]",
    timeout: float,
    after: str = "",
    **options: Any,
) -> "subprocess.CompletedProcess[str]":
    """`python -m mpsbar …` to its end, without the seconds that each child would need to import torch."""
    code, fds = build_command(after)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, pass_fds=fds, timeout=timeout,
        capture_output=True, text=True, **options,
    )  # fmt: skip


def build_command(after: str = "") -> "tuple[str, list[int]]":
    """The code of such an mpsbar, and the descriptors that it needs."""
    if not sys.platform.startswith("linux") or find_spec("torch") is None:
        return "import sys; sys.argv[0] = 'mpsbar'; from mpsbar.__main__ import main; main()", []
    server = _need_server(after)
    shared = json.dumps([server.control.fileno(), server.environment])
    tests = str(Path(__file__).parent)
    return COMMAND.format(tests=tests, shared=shared, after=after), [server.control.fileno()]


# ---- in the server ----


def serve(fd: int) -> CodeType:
    """Fork one host for each request; returns in the host alone, with the code it is to run."""
    import torch  # noqa: F401

    control = socket.socket(fileno=fd)
    ends: dict[int, tuple[int, int]] = {}  # pidfd -> pid, where its end is told
    with selectors.DefaultSelector() as watch:
        watch.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in watch.select():
                if key.fd != fd:
                    watch.unregister(key.fd)
                    _tell_end(key.fd, *ends.pop(key.fd))
                    continue
                text, fds, _, _ = socket.recv_fds(control, MESSAGE, 4)
                if not text:
                    os._exit(0)  # the tests are over
                pid = os.fork()
                if not pid:
                    watch.close()
                    control.close()
                    return _become_host(json.loads(text), fds)
                for each in fds[:3]:
                    os.close(each)
                pidfd = os.pidfd_open(pid)
                ends[pidfd] = pid, fds[3]
                watch.register(pidfd, selectors.EVENT_READ)


def _tell_end(pidfd: int, pid: int, status: int) -> None:
    _, how = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(how))
    os.close(status)
    os.close(pidfd)


def _become_host(request: "dict[str, Any]", fds: "list[int]") -> CodeType:
    """Everything a fresh Python would have got from its command line, its parent and its environment."""
    os.setsid()
    # Only now: as with subprocess, whoever knows its number may signal its group and does not meet ours.
    os.write(fds[3], b"%d\n" % os.getpid())
    for number in range(3):
        os.dup2(fds[number], number)
    os.closerange(3, 1024)
    os.chdir(request["cwd"])
    env, (python, *words) = request["env"], request["command"]
    os.environ.clear()
    os.environ.update(env)
    sys.orig_argv[:] = [python, *words]
    if words[0] == "-B":
        sys.dont_write_bytecode = True
        del words[0]
    main = vars(sys.modules["__main__"])
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]
    if words[0] == "-c":
        place, name, text = "", "<string>", words[1].encode()
        sys.argv[:] = ["-c", *words[2:]]
    else:
        place, name, text = os.path.dirname(words[0]), words[0], Path(words[0]).read_bytes()
        sys.argv[:] = words
        main["__file__"] = name
    sys.path[:1] = [place, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    if any(os.path.exists(os.path.join(place, "sitecustomize.py")) for place in sys.path[1:3]):
        import sitecustomize  # noqa: F401
    main["__leave__"] = _leave if request["leave"] else lambda: None
    del sys.modules["fork_server"]
    if torch := sys.modules.get("torch"):
        if threads := env.get("OMP_NUM_THREADS"):
            torch.set_num_threads(int(threads))
        if env.get("SOFTMPS"):
            import softmps

            softmps.autoload()
    return compile(text, name, "exec", dont_inherit=True)


def _leave() -> None:
    """The end of a program, without taking its modules apart."""
    threading._shutdown()  # waits for threads that are no daemons, as Python does first
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
