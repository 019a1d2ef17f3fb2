"""What the agent adds to a process is what docs/in-your-process.md says, and nothing else changes."""

import json
import re
import sys
from pathlib import Path

import interpreters
import pytest
from host_kit import run_host
from worker_kit import ROOT, UNPACED

PAGE = ROOT / "docs" / "in-your-process.md"
every_python = pytest.mark.parametrize("version", interpreters.VERSIONS)

CODE = r"""
import atexit, gc, json, locale, os, random, signal, sys, threading, warnings
import asyncio, logging, socket, builtins  # what a program has: asked about below
events, at_fork = [], []
sys.addaudithook(lambda event, arguments: event == "sys.addaudithook" and events.append(event))
register = os.register_at_fork
def noted(**hooks):
    at_fork.append(sorted(hooks))
    register(**hooks)
os.register_at_fork = noted

def state():
    return {
        "signal handlers": [repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "signal mask": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
        "wake-up descriptor": swap_wakeup(),
        "switch interval": sys.getswitchinterval(), "recursion limit": sys.getrecursionlimit(),
        "gc": [gc.isenabled(), gc.get_debug(), gc.get_freeze_count(), len(gc.callbacks)],
        "hooks": [hook.__qualname__ for hook in (sys.excepthook, sys.unraisablehook, sys.displayhook,
            sys.breakpointhook, threading.excepthook, threading.Thread.start, builtins.__import__)],
        "tracing": [repr(sys.gettrace()), repr(sys.getprofile())],
        "imports": [list(map(repr, sys.meta_path)), list(map(repr, sys.path_hooks)), sys.path[:]],
        "environment": dict(os.environ), "folder": os.getcwd(), "umask": swap_umask(),
        "locale": locale.setlocale(locale.LC_ALL), "warnings": list(map(repr, warnings.filters)),
        "audit hooks": events[:], "streams": [repr(each) for each in (sys.stdin, sys.stdout, sys.stderr)],
        "threads": [thread.name for thread in threading.enumerate()],
        "logging": [len(logging.getLogger().handlers), logging.getLogger().level],
        "sockets' time-out": socket.getdefaulttimeout(), "random": hash(random.getstate()),
        "builtins": sorted(vars(builtins)),
    }
def swap_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
def swap_wakeup():
    number = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(number)
    return number
def descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try: found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError: pass  # that of listdir itself
    return found
def measure():
    return {"threads": len(os.listdir("/proc/self/task")), "descriptors": descriptors(), "exit": atexit._ncallbacks()}

import time, torch
before_state = state()
thresholds = gc.get_threshold()
before = measure()
UNPACED
import mpsbar
assert mpsbar.attach()
def ask(*methods):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.path.join(os.environ["MPSBAR_RUN_DIR"], f"{os.getpid()}.sock"))
        lines = link.makefile()
        for method in methods:
            link.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n")
            answer = lines.readline()
            assert '"result"' in answer, answer
        lines.close()
    return json.loads(answer)["result"]
def use():
    ask("hello", *["stats"] * 20, "tensors")
    end = time.monotonic() + 60
    while not freed and time.monotonic() < end:  # main may come too late for gc.collect()
        answer = ask("free")
        if answer["state"] == "done" and answer["collected"]: freed.append(answer["backends"])
        time.sleep(0.05)
freed = []
user = threading.Thread(target=use)
user.start()
while user.is_alive(): pass
user.join()
assert freed and freed[0], "a real Free, on main"
def settled():  # the client's connection is closed by the agent when it comes by
    is_closed = len(descriptors()) <= len(before["descriptors"]) + 1
    has_ended = len(os.listdir("/proc/self/task")) <= before["threads"] + 1  # the thread that asked
    return is_closed and has_ended and gc.get_threshold() == thresholds
end = time.monotonic() + 60
while not settled() and time.monotonic() < end: time.sleep(0.02)
after = measure()
after_state = state()
new = {number: what for number, what in after["descriptors"].items() if number not in before["descriptors"]}
print(json.dumps({
    "changed": [name for name in before_state if before_state[name] != after_state[name]],
    "thresholds": gc.get_threshold() == thresholds,
    "threads": after["threads"] - before["threads"],
    "descriptors": len(new), "sockets": sum(what.startswith("socket:") for what in new.values()),
    "exit": after["exit"] - before["exit"], "fork": at_fork,
}))
"""
# In a Python that has imported nothing: what the agent needs, and how much that takes.
BARE = """
import sys
def resident():
    with open("/proc/self/statm") as file: return int(file.read().split()[1]) * 4096
before, memory = set(sys.modules), resident()
import mpsbar
assert mpsbar.attach()
memory = resident() - memory
print(memory, *sorted(name for name in set(sys.modules) - before))
"""
# More than any Python was seen to need; the figure of the page.
MAX_MEMORY = 8 << 20
STANDARD = "modules of the standard library, where not imported yet"


def measure(workers, version):
    """What attaching adds and changes in this Python, in a program that is polled and freed."""
    done = run_host(workers, CODE.replace("UNPACED", UNPACED), version)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    done = run_host(workers, BARE, version)
    assert (done.returncode, done.stderr) == (0, "")
    memory, *modules = done.stdout.split()
    ours = [name for name in modules if name.startswith("mpsbar")]
    packages = {name.partition(".")[0] for name in set(modules) - set(ours)}
    public = sorted(name for name in packages if not name.startswith("_"))
    return found | {"memory": int(memory), "ours": len(ours), "modules": public}


def build_table(found, modules):
    return {
        "threads of the system": str(found["threads"]),
        "open descriptors": str(found["descriptors"]),
        "of them sockets": str(found["sockets"]),
        "callbacks at exit (`atexit`)": str(found["exit"]),
        "callbacks in a forked child (`os.register_at_fork`)": str(len(found["fork"])),
        "memory, in a Python that has imported nothing else": f"less than {MAX_MEMORY >> 20} MB",
        "modules of its own": str(found["ours"]),
        STANDARD: ", ".join(f"`{name}`" for name in sorted(modules)),
    }


def read_table(text):
    """{what: how much} of the page's table."""
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", text, re.MULTILINE)
    return {what: much for what, much in rows if set(what) != {"-"} and what != "what"}


def write_table(tables):
    """One for all Pythons, with the modules that any of them imports."""
    text = PAGE.read_text(encoding="utf-8")
    modules = {name for found in tables for name in found["modules"]}
    rows = build_table(tables[-1], modules).items()
    lines = ["| what | how much |", "|---|---|", *(f"| {what} | {much} |" for what, much in rows)]
    start, end = "<!-- table -->\n", "<!-- end of table -->"
    head, tail = text.partition(start)[0], text.partition(end)[2]
    PAGE.write_text(head + start + "\n".join(lines) + "\n" + end + tail, encoding="utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
@every_python
def test_nothing_of_the_host_changes_and_what_is_added_is_what_the_page_says(
    workers, version, request
):
    found = measure(workers, version)
    assert (found["changed"], found["thresholds"]) == ([], True)
    assert {hook for hooks in found["fork"] for hook in hooks} == {"after_in_child"}
    assert found["memory"] < MAX_MEMORY
    if request.config.getoption("--golden"):
        if version == interpreters.VERSIONS[-1]:
            write_table([measure(workers, each) for each in interpreters.VERSIONS])
        return
    table = read_table(PAGE.read_text(encoding="utf-8"))
    documented = re.findall(r"`([\w.]+)`", table[STANDARD])
    assert set(found["modules"]) <= set(documented)
    assert table == build_table(found, documented)


def test_the_page_is_linked():
    assert "docs/in-your-process.md" in Path(ROOT / "README.md").read_text(encoding="utf-8")
