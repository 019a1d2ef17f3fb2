"""Threads in every kind of wait in C, and some that only look so. Run by each Python, 3.9 on.

Prints one line of JSON: what c_waits says of each of them. No test itself: see test_c_waits.
"""

import dis
import hashlib
import json
import multiprocessing
import os
import queue
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from time import sleep

from mpsbar.agent import frame_values, host_frames, idle_check, known_waits

LONG = 1000


class Service:
    """What a program keeps its locks and sockets in."""

    pause = LONG

    def __init__(self):
        self.lock = threading.Lock()
        self.lock.acquire()
        self.again = threading.RLock()
        self.again.acquire()
        self.tasks = queue.SimpleQueue()
        self.semaphore = multiprocessing.Semaphore(0)
        self.target, self.arguments, self.keywords = time.sleep, (LONG,), {}
        self.pipe, self._pipe_end = os.pipe()
        self.link, self._link_end = socket.socketpair()
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.bytes = os.fdopen(os.dup(self.pipe), "rb")
        self.lines = os.fdopen(os.dup(self.pipe), "r")
        self.child = subprocess.Popen(["sleep", str(LONG)])

    @property
    def computed_pause(self):
        return LONG


class Slotted:
    __slots__ = ("lock",)


service = Service()
slotted = Slotted()
slotted.lock = service.lock


class Waits:
    """Each is a wait; a thread stands in it."""

    def sleeps(self):
        time.sleep(LONG)

    def sleeps_by_a_name_of_its_own(self):
        sleep(LONG)

    def sleeps_in_a_loop(self, service=service):
        while True:
            time.sleep(service.pause)

    def sleeps_as_long_as_it_computes(self, count=4):
        part = 0.25
        time.sleep(count * part * LONG + min(len("ab"), 3))

    def sleeps_until(self):
        end = time.monotonic() + LONG
        time.sleep(max(0, end - time.monotonic()))

    def sleeps_at_random(self):
        time.sleep(LONG + random.random())

    def sleeps_in_a_debugger(self):
        sys._getframe().f_trace = lambda *_: None
        time.sleep(LONG)

    def sleeps_by_stars(self):
        service.target(*service.arguments, **service.keywords)

    def acquires(self):
        service.lock.acquire()

    def acquires_with_a_time_out(self):
        service.lock.acquire(timeout=LONG)

    def acquires_in_a_slot(self):
        slotted.lock.acquire()

    def acquires_in_a_closure(self):
        lock = service.lock

        def inner():
            lock.acquire()

        inner()

    def enters_a_lock(self):
        with service.lock:
            pass

    def enters_a_reentrant_lock(self):
        with service.again:
            pass

    def enters_a_condition(self):
        condition = threading.Condition(service.again)
        with condition:
            pass

    def acquires_a_semaphore_of_processes(self):
        service.semaphore.acquire()

    def enters_a_semaphore_of_processes(self):
        with service.semaphore:
            pass

    def gets(self):
        service.tasks.get()

    def gets_with_a_time_out(self):
        service.tasks.get(True, timeout=LONG)

    def gets_by_a_bound_method(self):
        get = service.tasks.get
        while True:
            get()

    def accepts(self):
        service.listener.accept()

    def receives(self):
        service.link.recv(4096)

    def receives_into(self):
        buffer = bytearray(16)
        service.link.recv_into(buffer, 5)

    def reads(self):
        os.read(service.pipe, 1)

    def reads_a_line(self):
        service.bytes.readline()

    def reads_lines(self):
        for _ in service.lines:
            pass

    def selects(self):
        select.select([service.link], [], [], LONG)

    def polls(self):
        poll = select.poll()
        poll.register(service.link, select.POLLIN)
        poll.poll()

    def waits_for_a_signal(self):
        signal.sigwait([signal.SIGUSR1])

    def waits_for_a_process(self):
        os.waitpid(service.child.pid, 0)

    def waits_for_a_command(self):
        while True:
            os.system("sleep 1")


class Overridden(socket.socket):
    def recv(self, *arguments):
        while True:
            hash(arguments)


class Opaque:
    """Its attributes are found by code of its own."""

    def __getattr__(self, name):
        return time.sleep

    def __index__(self):
        return LONG


class Watched:
    def __getattribute__(self, name):
        return time.sleep


opaque, watched = Opaque(), Watched()
table = [time.sleep]
work = hashlib.pbkdf2_hmac  # C code that lets go of the GIL and computes for long


class NoWaits:
    """Each may compute, as far as anybody can tell."""

    def computes(self):
        while True:
            hash("")

    def computes_in_c(self):
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)

    def computes_by_a_name_that_was_rebound(self):
        work("sha256", b"", b"", 2_000_000_000)

    def sleeps_for_an_unknown_object(self):
        time.sleep(opaque)

    def sleeps_for_a_property(self):
        time.sleep(service.computed_pause)

    def sleeps_by_getattr(self):
        opaque.sleep(LONG)

    def sleeps_by_getattribute(self):
        watched.sleep(LONG)

    def sleeps_by_an_item(self):
        table[0](LONG)

    def sleeps_by_choice(self, really=True):
        (time.sleep if really else time.time)(LONG)

    def sleeps_by_a_name_bound_among_the_arguments(self):
        name = time.sleep
        name(name := LONG)

    def receives_by_a_method_of_its_own(self):
        Overridden().recv(1)


def main():
    global work  # noqa: PLW0603 - a name of the program's that is bound anew
    threads = {"a thread's target": threading.Thread(target=time.sleep, args=(LONG,), daemon=True)}
    for group in (Waits, NoWaits):
        for name, function in vars(group).items():
            if callable(function) and not name.startswith("_"):
                instance = group()
                threads[name] = threading.Thread(target=function, args=(instance,), daemon=True)
    for thread in threads.values():
        thread.start()
    expected = [name for name in threads if name not in vars(NoWaits)]
    wait_until_proven(threads, expected)
    wait_until_called(threads["computes_by_a_name_that_was_rebound"])
    # Only now, when its thread is inside the call: the name leads to a wait.
    work = time.sleep
    proven = wait_until_proven(threads, expected)
    print(json.dumps({
        "layout": frame_values._layout is not None,
        "waits": sorted(set(expected) & proven),
        "missed": sorted(set(expected) - proven),
        "wrong": sorted(proven - set(expected)),
        "left": len(host_frames.left_over),
    }))  # fmt: skip
    service.child.kill()
    sys.stdout.flush()
    os._exit(0)


def wait_until_called(thread):
    """Until it has read the name of the function that it calls."""
    while True:
        frame = sys._current_frames()[thread.ident]
        if frame.f_code is NoWaits.computes_by_a_name_that_was_rebound.__code__:
            names = {each.offset: each.opname for each in dis.get_instructions(frame.f_code)}
            if "CALL" in names.get(frame.f_lasti, ""):
                return
        time.sleep(0.001)


def wait_until_proven(threads, expected):
    """Threads need a moment to get there, on busy cores a long one."""
    waits = known_waits.find_waits()
    for _ in range(2000):
        frames = host_frames.current_frames()
        proven = {
            name
            for name, thread in threads.items()
            if (frame := frames.get(thread.ident)) is not None
            and (frame.f_code in waits or idle_check.waits_in_c(frame, frame.f_code, thread.ident))
        }
        if proven >= set(expected):
            break
        time.sleep(0.05)
    return proven


main()
