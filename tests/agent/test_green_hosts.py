"""Hosts whose standard library gevent or eventlet has replaced: the agent keeps to real threads.

A hub belongs to one thread. Patched modules, called on the agent's, make another one there or switch
the host's greenlets in the wrong place.
"""

import contextlib
import importlib.util
import os
import sys
from functools import partial

import pytest
from host_kit import ALONE, REPORT, Load, add_stand_in, run_host, start_host
from worker_kit import NO_MPS, ROOT, UNPACED, wait_for

# Greenlets that count, wait for each other and talk over a socket; main ends when it is told to.
GEVENT = """
import gevent, gevent.event, gevent.socket, gevent.pool
spawn, sleep = gevent.spawn, gevent.sleep
"""
EVENTLET = """
import eventlet, eventlet.green.socket
spawn, sleep = eventlet.spawn, eventlet.sleep
"""
START = (
    REPORT
    + """
import torch
counts = [0, 0, 0]
def count(index):
    while True:
        counts[index] += 1
        sleep(0.005)
def exists(name): return os.path.exists(name)
def run():
    for index in range(3): spawn(count, index)
    while not exists("stop"): sleep(0.01)
    first = list(counts)
    while min(after - before for after, before in zip(counts, first)) < 10: sleep(0.01)
    print("goes on", flush=True)
import mpsbar
"""
    + UNPACED
    + "\n"
)
SCENES = {
    "patched before": "{patch}\nimport mpsbar\nassert mpsbar.attach()\nrun()",
    "patched after": "assert mpsbar.attach()\n{patch}\nrun()",
    "patched after the first poll": """
assert mpsbar.attach()
while not exists("polled"): time.sleep(0.01)
{patch}
open("patched", "w").close()
run()
""",
}
PATCHES = {
    "gevent without threads": (
        GEVENT,
        "from gevent import monkey; monkey.patch_all(thread=False)",
    ),
    "gevent": (GEVENT, "from gevent import monkey; monkey.patch_all()"),
    "eventlet without threads": (
        EVENTLET,
        "eventlet.monkey_patch(os=True, select=True, socket=True, time=True, thread=False)",
    ),
    "eventlet": (EVENTLET, "eventlet.monkey_patch()"),
}
CASES = [
    (patch, scene)
    for patch in PATCHES
    for scene in SCENES
    if " " in patch or scene != "patched before"  # those are below
]
# So that there is a cache to free.
USED = 'x = torch.ones(1 << 20, device="mps")\ndel x\n'
# What they themselves say of being late or outdated. The second form is for a fork of a Python with torch.
QUIET = {"PYTHONWARNINGS": "ignore"}
QUIETLY = "import warnings; warnings.simplefilter('ignore')\n"


def need(patch):
    name = patch.split()[0]
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"no {name} in this Python")


def poll_one_by_one(worker):
    """As monitors do that come and go: patched modules do not survive many rounds of their loop."""
    for _ in range(0 if ALONE else 3):
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(worker.connect()) for _ in range(4)]
            for _ in range(12):
                for client in clients:
                    client.send("stats")
                for client in clients:
                    assert "result" in client.receive()


def put_load_on(worker):
    """Polled and freed, the host goes on and then ends as it should."""
    poll_one_by_one(worker)
    with Load(worker) as load:
        for _ in range(3):
            load.poll(200)
            load.free(4, seconds=0.1)
            load.poll_slowly(0.2)
        (worker.run_dir / "stop").touch()
        worker.wait_line("goes on")
    wait_for(lambda: worker.process.poll() is not None, "end")
    assert worker.process.returncode == 0, worker.end()


@pytest.mark.parametrize(("patch", "scene"), CASES)
def test_greenlets_go_on_and_polls_are_answered(workers, patch, scene):
    need(patch)
    imports, call = PATCHES[patch]
    if scene == "patched before":  # as they want it: first of all
        start = f"{imports}\n{call}\n{START}"
        code = start + SCENES[scene].format(patch="")
    else:
        code = imports + START + SCENES[scene].format(patch=call)
    worker = start_host(workers, code, **QUIET)
    if scene == "patched after the first poll":
        if not ALONE:
            assert worker.ask("stats")["frameworks"] == {"torch": "2.13.0"}
        (worker.run_dir / "polled").touch()
        wait_for((worker.run_dir / "patched").exists, "patch")
    put_load_on(worker)


# Every function and class that gevent or eventlet has replaced notes who calls it on another thread than
# main: a crash comes by chance, after many rounds of their loops, and this does not.
WATCH = """
import functools, importlib, sys, threading
def list_replaced():
    if "gevent" in sys.modules:
        from gevent import monkey
        return {module: list(names) for module, names in monkey.saved.items()}
    found = {}
    for module in ("os", "select", "selectors", "socket", "time", "subprocess"):
        green = importlib.import_module("eventlet.green." + module)
        found[module] = list(green.__patched__)
    return found
main, called = threading.get_native_id(), set()
def note(name):
    if threading.get_native_id() != main: called.add(name)
def watch(name, value):
    if isinstance(value, type):
        class Watched(value):
            def __init__(self, *a, **k): note(name); super().__init__(*a, **k)
            def __new__(cls, *a, **k): note(name); return super().__new__(cls, *a, **k)
        return Watched
    @functools.wraps(value, updated=())
    def watched(*a, **k): note(name); return value(*a, **k)
    return watched
count_watched = 0
for module, names in list_replaced().items():
    for name in names:
        value = getattr(sys.modules.get(module), name, None)
        if callable(value) and module not in ("threading", "_thread") and not (isinstance(value, type) and issubclass(value, BaseException)):
            try: setattr(sys.modules[module], name, watch(module + "." + name, value))
            except TypeError: continue  # a class that cannot be derived from
            count_watched += 1
print("watched", count_watched, flush=True)
"""
ASKED = ("hello", "stats", "free", "tensors", "limit", "no such method")


@pytest.mark.parametrize("patch", ["gevent without threads", "eventlet without threads"])
@pytest.mark.parametrize("scene", ["patched before", "patched after"])
def test_nothing_that_was_replaced_is_called_on_our_thread(workers, patch, scene):
    need(patch)
    imports, call = PATCHES[patch]
    attach = "assert mpsbar.attach()\n"
    steps = [call + WATCH, attach] if scene == "patched before" else [attach, call + WATCH]
    done = "run()\nprint('called', sorted(called), flush=True)\n"
    code = "\n".join([QUIETLY + imports + START, USED if NO_MPS is None else "", *steps, done])
    start = partial(start_host, workers) if NO_MPS is not None else workers.start_mps
    worker = start(code)
    assert int(worker.wait_line("watched").split()[1]) >= 10
    if not ALONE:
        for method in ASKED:
            with worker.connect() as client:
                client.send(method)
                client.receive()
    (worker.run_dir / "stop").touch()
    assert worker.wait_line("called") == "called []"
    wait_for(lambda: worker.process.poll() is not None, "end")
    assert worker.process.returncode == 0, worker.end()


REFUSABLE = """
print("attached", mpsbar.attach(), flush=True)
run()
"""


def check_refusal(worker):
    (worker.run_dir / "stop").touch()
    worker.wait_line("goes on")
    wait_for(lambda: worker.process.poll() is not None, "end")
    errors = worker.end()
    assert (worker.process.returncode, errors.count("\n")) == (0, 1), errors
    assert errors.startswith("mpsbar: not attached: ")


def start_refusable(workers, patch):
    need(patch)
    imports, call = PATCHES[patch]
    script = workers.folder / "host.py"
    script.write_text(f"{imports}\n{call}\n{START}{REFUSABLE}")
    places = os.pathsep.join([add_stand_in(workers.folder), str(ROOT)])
    launcher = ["env", f"PYTHONPATH={places}", sys.executable, str(script)]
    worker = workers.run(launcher, **QUIET)
    return worker, worker.wait_line("attached") == "attached True"


def test_gevent_that_has_replaced_threads_is_refused_in_one_line(workers):
    worker, attached = start_refusable(workers, "gevent")
    assert not attached
    check_refusal(worker)


def test_eventlet_that_has_replaced_threads_is_refused_or_served(workers):
    worker, attached = start_refusable(workers, "eventlet")
    if attached:
        put_load_on(worker)
    else:
        check_refusal(worker)


@pytest.mark.parametrize("patch", ["gevent", "eventlet"])
def test_a_late_patch_leaves_no_traceback_of_ours_at_exit(workers, patch):
    """Threads that were there before it end with a KeyError in threading, if threading started them."""
    need(patch)
    imports, call = PATCHES[patch]
    late = SCENES["patched after"].format(patch=call)
    done = run_host(workers, imports + START + "open('stop', 'w').close()\n" + late, **QUIET)
    assert (done.stdout, done.returncode) == ("goes on\n", 0)
    assert "mpsbar" not in done.stderr, done.stderr


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
@pytest.mark.parametrize("patch", ["gevent", "eventlet"])
def test_a_late_patch_does_not_make_free_busy(workers, patch):
    """Patched, threading.get_ident() and the main thread's number are those of greenlets."""
    need(patch)
    imports, call = PATCHES[patch]
    late = SCENES["patched after"].format(patch=f"{call}\nspawn(print, 'patched')")
    worker = workers.start_mps(QUIETLY + imports + START + USED + late)
    worker.wait_line("patched")  # a Free in the midst of attach() would say nothing of the patch
    for _ in range(3):
        answer = worker.ask("free")
        assert (answer["state"], answer["reason"]) == ("done", None)
    assert answer["backends"]["mps"]["on_main"] is True
