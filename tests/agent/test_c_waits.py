"""A wait in C that user code has called: what is proven to be one, in every Python."""

import json
import os
import select
import signal
import subprocess
import threading
import time
import weakref
from pathlib import Path

import interpreters
import pytest
from host_kit import start_host
from worker_kit import ROOT, TIMEOUT, UNPACED, wait_for

from mpsbar.agent import call_site, frame_values, host_frames, idle_check

MiB = 1 << 20
every_python = pytest.mark.parametrize("version", interpreters.VERSIONS)


@every_python
def test_threads_that_wait_in_c_are_told_from_those_that_may_compute(version):
    script = Path(__file__).with_name("wait_states.py")
    done = subprocess.run(
        [interpreters.need(version), "-W", "error", str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["missed"] == []
    assert len(told["waits"]) > 25
    assert told["layout"] is True
    assert told["left"] == 0


# The main thread in each of these, one after the other; a signal ends each by an exception.
MAIN_STATES = {
    "sleep": "time.sleep(1000)",
    "a loop of sleeps": "while True: time.sleep(0.01)",
    "select": "select.select([], [], [], 1000)",
    "pause": "signal.pause()",
    "a pipe": "os.read(pipe, 1)",
    "a command": "os.system('while ! test -e go; do sleep 0.1; done')",
    "input": "input('> ')",
    "lines": "for line in sys.stdin: print(line)",
    "lock": "lock.acquire()",
    "with": "with lock: pass",
    "a pool's worker": "semaphore.acquire()",
    "accept": "listener.accept()",
    "a function": "wait_in_a_function()",
}
MAIN = """
import _signal, json, multiprocessing, os, select, signal, socket, sys, threading, time
{unpaced}
import torch, mpsbar
class Next(Exception): pass
def go_on(*_): raise Next
signal.signal(signal.SIGUSR1, go_on)
pipe, _ = os.pipe()
lock = threading.Lock(); lock.acquire()
semaphore = multiprocessing.Semaphore(0)
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
def wait_in_a_function(pause=500):
    time.sleep(pause * 2)
assert mpsbar.attach()
for name, code in json.loads({states!r}).items():
    function = compile(code, name, "exec")
    space = dict(globals())
    print("in", name, flush=True)
    try: exec(function, space)
    except Next: pass
    except EOFError as error: print("end", error)
print("over", flush=True)
time.sleep(1000)
"""


@every_python
def test_main_is_freed_in_every_wait_in_c(workers, version):
    code = MAIN.format(unpaced=UNPACED, states=json.dumps(MAIN_STATES))
    worker = start_host(workers, code, version, stdin=subprocess.PIPE)
    freed = []
    with worker.connect() as client:
        for name in MAIN_STATES:
            worker.wait_line(f"in {name}")
            # The first may meet main on its way there, or between two waits.
            wait_for(lambda: client.ask("free")["backends"]["mps"]["on_main"] is False, name)
            freed.append(name)
            worker.wait_asleep()  # a signal just before the wait's own system call ends it at its end
            worker.process.send_signal(signal.SIGUSR1)
            if name == "a command":  # which only then ends, and main raises at once
                (worker.run_dir / "go").touch()
    worker.wait_line("over")
    assert freed == list(MAIN_STATES)
    assert worker.end() == ""


def refuse(*_):
    raise AssertionError("foreign code ran")


class Foreign:
    """Nothing of it may be called."""

    __slots__ = ("__dict__", "slot")
    __eq__ = __hash__ = __bool__ = __len__ = refuse
    shared = 5

    @property
    def prop(self):
        return refuse()

    def method(self):
        refuse()

    __getattr__ = refuse


def test_attributes_are_found_without_running_anybodys_code():
    thing = Foreign()
    thing.slot, thing.own = 1, 2
    assert frame_values.read_attribute(thing, "slot") == 1
    assert frame_values.read_attribute(thing, "own") == 2
    assert frame_values.read_attribute(thing, "shared") == 5
    thing.__dict__["shared"] = 6
    assert frame_values.read_attribute(thing, "shared") == 6
    for name in ("prop", "method", "missing", "__class__"):
        with pytest.raises(frame_values.UnknownValueError):
            frame_values.read_attribute(thing, name)
    lock = threading.Lock()
    bound = frame_values.read_attribute(lock, "acquire")
    assert bound.instance is lock
    assert bound.function is type(lock).__dict__["acquire"]


class Shadowed:
    @property
    def __dict__(self):
        return refuse()


class Local(threading.local):
    def __init__(self):
        self.value = 5


@pytest.mark.parametrize("thing", [Shadowed(), Local()])
def test_an_object_that_hides_its_dictionary_stays_unknown(thing):
    with pytest.raises(frame_values.UnknownValueError):
        frame_values.read_attribute(thing, "value")


def test_a_look_keeps_nothing_of_the_host_alive():
    # Up to 3.12 frame.f_locals would keep the tensors of a training function alive.
    class Tensor:
        pass

    seen, go_on, ended = [], threading.Event(), threading.Event()

    def train():
        tensor = Tensor()
        seen.append(weakref.ref(tensor))
        while not go_on.is_set():
            time.sleep(0.01)
        del tensor
        ended.set()
        time.sleep(0.2)

    thread = threading.Thread(target=train)
    thread.start()

    def is_proven():
        frame = host_frames.current_frames()[thread.ident]
        return idle_check.waits_in_c(frame, frame.f_code, thread.ident)

    wait_for(lambda: seen and is_proven(), "its sleep")
    go_on.set()
    assert ended.wait(TIMEOUT)
    assert seen[0]() is None
    thread.join()
    idle_check.forget_call_sites()
    assert host_frames.left_over == []


def test_the_class_of_an_object_is_never_compared_or_hashed_by_its_own_code():
    ran = []

    class Meta(type):
        def __eq__(cls, other):
            ran.append("eq")
            return cls is other

        def __hash__(cls):
            ran.append("hash")
            return type.__hash__(cls)

    class Odd(metaclass=Meta):
        def fileno(self):
            return reads

    reads, writes = os.pipe()
    odd = Odd()

    def wait_for_input():
        select.select([odd], [], [], TIMEOUT)

    thread = threading.Thread(target=wait_for_input)
    thread.start()

    def is_proven():
        frame = host_frames.current_frames().get(thread.ident)
        return frame is not None and idle_check.waits_in_c(frame, frame.f_code, thread.ident)

    wait_for(is_proven, "its select")
    os.write(writes, b"x")
    thread.join()
    os.close(reads)
    os.close(writes)
    idle_check.forget_call_sites()
    assert ran == []


def sites(function):
    """All calls of a function that can be followed back, by the line's text."""
    code = function.__code__
    found = [call_site.find_call_site(code, offset) for offset in range(0, len(code.co_code), 2)]
    return [site[0].name for site in found if site is not None]


def test_the_bytecode_of_a_newer_python_is_not_followed(monkeypatch):
    def straight(a):
        time.sleep(a)

    assert sites(straight)
    monkeypatch.setattr(call_site, "_NEWEST", (3, 8))
    assert not sites(straight)


def test_only_straight_code_is_followed():
    def straight(a):
        time.sleep(a)

    def chosen(a, b):
        time.sleep(a if b else 1)

    def caught(a):
        time.sleep([each + 1 for each in a])

    assert sites(straight)
    assert sites(chosen) == []
    assert len(sites(caught)) <= 1  # at most the comprehension's own call


def test_the_memory_of_a_frame_is_read_only_where_its_layout_is_proven(monkeypatch):
    monkeypatch.setattr(frame_values, "_LAYOUTS", {})
    assert frame_values._find_layout() is None
