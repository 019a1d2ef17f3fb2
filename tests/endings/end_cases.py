"""The ways in which a real worker can end, and what may be said about each. Data and small programs.

torch and MLX are imported only where the ending needs them: the scan finds a worker by its agent's
socket, or here by an extension that carries the name of a framework's library.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from worker_kit import NO_MPS, ROOT

# What stands before each program: it attaches, says so, and waits until it is told to go on. The
# library makes the scan see a process with torch, without its seconds and its 200 MB.
BEGIN = """
import ctypes, os, signal, sys, threading, time
signal.signal(2, signal.default_int_handler)  # a job of a script inherits that Ctrl-C is ignored
library = os.environ.get("ENDINGS_LIBRARY")
if library: ctypes.CDLL(library)
import mpsbar
assert mpsbar.attach()
def ready():
    print("ready", flush=True)
    if not sys.stdin.readline(): os._exit(99)
"""


@dataclass(frozen=True)
class Way:
    """How a worker ends: its program, and who ends it from outside."""

    name: str
    code: str
    seen: str  # the verdict's code while mpsbar runs
    unseen: str  # while it does not: never more than was left behind
    signal: int | None = None  # sent from outside, once it is ready
    values: dict = field(default_factory=dict)  # that the verdict must have
    sure: str = "known"
    sure_unseen: str = "known"
    how: str = "script"  # script, -c, -m
    needs: str = ""  # softmps, mlx, cgroup
    env: dict = field(default_factory=dict)


UNKNOWN = {"unseen": "unknown", "sure_unseen": "unknown"}
MPS = "import torch\nx = torch.zeros(1 << 20, device='mps')\n"
WAYS = (
    Way("normal", "ready()", "finished", "exited"),
    Way("sys.exit()", "ready(); sys.exit()", "finished", "exited"),
    Way("sys.exit(3)", "ready(); sys.exit(3)", "exit_code", "exited", values={"code": 3}),
    Way("sys.exit('text')", "ready(); sys.exit('no')", "exit_code", "exited", values={"code": 1}),
    Way("exception", "ready(); raise ValueError('bad')", "exception", "exception",
        values={"type": "ValueError", "text": "bad"}),
    Way("exception -c", "ready(); raise KeyError('k')", "exception", "exception", how="-c",
        values={"type": "KeyError"}),
    Way("exception -m", "ready(); raise OSError('disk')", "exception", "exception", how="-m",
        values={"type": "OSError"}),
    Way("exception under a hook", "sys.excepthook = lambda *_: None; ready(); raise ValueError('q')",
        "exception", "exception", values={"type": "ValueError"}),
    Way("exception in a thread", "ready(); t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
        "finished", "exited"),
    Way("exception beside a thread",
        "ready(); threading.Thread(target=time.sleep, args=(0.2,)).start(); raise ValueError('b')",
        "exception", "exception", values={"type": "ValueError"}),
    Way("caught exception", "ready()\ntry: 1 / 0\nexcept Exception: pass", "finished", "exited"),
    Way("secret in an exception", "ready(); raise RuntimeError('key hf_abcdefghijklmnop')",
        "exception", "exception", values={"text": "key ***"}),
    Way("MemoryError", "ready(); raise MemoryError", "out_of_memory", "out_of_memory"),
    Way("Ctrl-C", "ready(); time.sleep(600)", "interrupted", "interrupted", signal=2),
    Way("SIGTERM", "ready(); time.sleep(600)", "terminated", signal=15, values={"signal": 15}, **UNKNOWN),
    Way("SIGHUP", "ready(); time.sleep(600)", "terminated", signal=1, values={"signal": 1}, **UNKNOWN),
    Way("SIGTERM, handled", "signal.signal(15, lambda *_: sys.exit(4)); ready(); time.sleep(600)",
        "exit_code", "exited", signal=15, values={"code": 4}),
    Way("SIGKILL", "ready(); time.sleep(600)", "killed", signal=9, values={"signal": 9}, **UNKNOWN),
    Way("kills itself", "ready(); os.kill(os.getpid(), 9)", "killed", values={"signal": 9}, **UNKNOWN),
    Way("segmentation fault", "ready(); ctypes.string_at(0)", "crashed", values={"signal": 11}, **UNKNOWN),
    Way("SIGSEGV from outside", "ready(); time.sleep(600)", "crashed", signal=11, **UNKNOWN),
    Way("abort", "ready(); os.abort()", "crashed", values={"signal": 6}, **UNKNOWN),
    Way("SIGBUS", "ready(); time.sleep(600)", "crashed", signal=7, values={"signal": 7}, **UNKNOWN),
    Way("SIGFPE", "ready(); os.kill(os.getpid(), 8)", "crashed", values={"signal": 8}, **UNKNOWN),
    Way("os._exit(0)", "ready(); os._exit(0)", "finished", **UNKNOWN),
    Way("os._exit(7)", "ready(); os._exit(7)", "exit_code", values={"code": 7}, **UNKNOWN),
    Way("exec", "ready(); os.execv('/bin/sleep', ['sleep', '600'])", "replaced", **UNKNOWN),
    Way("fork", "ready()\nif os.fork() == 0: os._exit(5)\nos.wait()", "finished", "exited"),
    Way("fork, the child raises", "ready()\nif os.fork() == 0: raise ValueError('child')\nos.wait()",
        "finished", "exited"),
    Way("prompt with an error", "ready()\nsys.ps1 = '> '\nraise ValueError('typed')", "exception",
        "exited", sure="likely", values={"type": "ValueError"}),
    Way("torch out of memory", MPS + "ready(); y = [torch.zeros(1 << 28, device='mps') for _ in range(99)]",
        "out_of_memory", "out_of_memory", needs="softmps", values={"limit": 429496729},
        env={"SOFTMPS": "1", "PYTORCH_MPS_HIGH_WATERMARK_RATIO": "0.1",
             "PYTORCH_MPS_LOW_WATERMARK_RATIO": "0.1"}),
    # On Linux MLX does not check its malloc: it is a crash, and that is what is said.
    Way("MLX out of memory on Linux", "import mlx.core as mx\nready(); mx.eval(mx.ones((1 << 20, 1 << 20)) + 1)",
        "crashed", needs="mlx", values={"signal": 11}, **UNKNOWN),
    Way("MLX's words on a Mac", "ready(); raise RuntimeError('[metal::malloc] Attempting to allocate "
        "137438953472 bytes which is greater than the maximum allowed buffer size of 86586540032 bytes.')",
        "out_of_memory", "out_of_memory", values={"tried": 137438953472, "limit": 86586540032}),
    Way("cgroup out of memory", "ready(); x = [bytearray(os.urandom(1 << 20)) for _ in range(4096)]",
        "killed_for_memory", needs="cgroup", **UNKNOWN),
)  # fmt: skip
# Cheap enough for every test run.
QUICK = [way for way in WAYS if not way.needs]


def build_library(folder: Path) -> Path | None:
    """An empty library with the name of torch's; None without a compiler."""
    path = folder / "libtorch_cpu.so"
    if not path.exists():
        source = folder / "empty.c"
        source.write_text("int empty;\nint nothing(void) { return empty; }\n")
        command = ["cc", "-shared", "-fPIC", "-o", str(path), str(source)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    return path


MEMORY_GROUP = Path("/sys/fs/cgroup/memory")


def why_no_cgroup() -> str | None:
    if not (MEMORY_GROUP / "memory.limit_in_bytes").exists():
        return "no memory controller of cgroup version 1 here"
    return None if os.access(MEMORY_GROUP, os.W_OK) else "cgroups cannot be made (root only)"


def make_group(name: str, limit: int) -> Path:
    group = MEMORY_GROUP / name
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(limit))
    swap = group / "memory.memsw.limit_in_bytes"
    if swap.exists():
        swap.write_text(str(limit))
    return group


def why_not(way: Way) -> str | None:
    if way.needs == "softmps":
        return NO_MPS
    if way.needs == "mlx":
        import importlib.util

        return None if importlib.util.find_spec("mlx") else "no MLX here"
    return why_no_cgroup() if way.needs == "cgroup" else None


def build_command(way: Way, folder: Path) -> list[str]:
    code = BEGIN + way.code + "\n"
    if way.how == "-c":
        return [sys.executable, "-c", code]
    name = "".join(c if c.isalnum() else "_" for c in way.name)
    (folder / f"{name}.py").write_text(code)
    return [sys.executable, "-m", name] if way.how == "-m" else [sys.executable, f"{name}.py"]


def build_environment(workers, library: Path | None, way: Way) -> dict[str, str]:
    env = workers.env(PYTHONPATH=str(ROOT), **way.env)
    if library is not None and way.needs not in ("softmps", "mlx"):
        env["ENDINGS_LIBRARY"] = str(library)
    return env
