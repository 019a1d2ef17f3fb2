"""Frames of other threads are read while those run on: no read may follow a frame that has moved."""

import os
import subprocess

import interpreters
import pytest
from host_kit import add_stand_in
from thorough import two_sizes
from worker_kit import ROOT, TIMEOUT

# The thread's frame returns and its memory is used again all the time. Threads change as often as
# they can, and in an audit hook for certain: read in more than one step, this ends with SIGSEGV.
READER = """
import random, sys, threading, time
from mpsbar.agent import frame_values, host_frames, idle_check, known_waits
class Thing: pass
def nap(a, b, c, d, e, f, g, h):
    time.sleep(min(a, b, c, d, e, f, g, h))
def other(a, b, c, d, e, f, g, h):  # where the frame of nap was
    time.sleep(2e-4)
def deep(n, a, b, c):
    x, y, z = [n], (a, b, c), {n: 1}
    return deep(n - 1, x, y, z) if n else x
def work():
    while True:
        nap(*[1e-5 * (1 + random.random()) for _ in range(8)])
        deep(30, random.random(), Thing(), [])
        other(*"abcdefgh")
threading.Thread(target=work, daemon=True).start()
(ident,) = set(sys._current_frames()) - {threading.get_ident()}
waits = known_waits.find_waits()
sys.setswitchinterval(1e-6)
sys.addaudithook(lambda event, _: event == "ctypes.cdata" and time.sleep(1e-4))
waiting = 0
wrong = set()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end or not waiting:
    frames = host_frames.current_frames()
    stack = host_frames.read_stack(frames.get(ident))
    waiting += idle_check.is_waiting(stack, waits, ident)
    if stack and stack[0].f_code is nap.__code__:
        for index in range(8):
            try: kind = type(frame_values.read_variable(stack[0], nap.__code__, index))
            except frame_values.UnknownValueError: kind = float
            if kind is not float: wrong.add(kind.__name__)
    host_frames.drop_references(stack)
    host_frames.drop_frames(frames)
    host_frames.left_over.clear()
print("waiting", waiting > 0, wrong)
"""


@pytest.mark.parametrize("version", interpreters.VERSIONS)
@two_sizes("seconds", small=[0.5], whole=[10])
def test_a_thread_that_returns_while_it_is_read_does_no_harm(version, seconds):
    if version in ("3.11", "3.12"):  # whose frames are reused most often
        seconds *= 3
    done = subprocess.run(
        [interpreters.need(version), "-c", READER, str(seconds)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "waiting True set()\n"), done.stderr


# An audit hook of the host that lets nobody read its frames.
STRICT = """
import gc, sys, time, torch
import mpsbar
allowed = []
def forbid(event, _):
    if event == "sys._current_frames" and not allowed: raise PermissionError(event)
assert mpsbar.attach()
sys.addaudithook(forbid)
before = gc.get_threshold()
def run():
    end = time.monotonic() + 1
    while time.monotonic() < end: pass
    # At a check of its own the agent may use other thresholds for a moment.
    while (found := gc.get_threshold()) != before and time.monotonic() < end + 60: pass
    return found
print("ready", flush=True)
input()
print(gc.isenabled(), run() == before, sys.getswitchinterval(), flush=True)
"""


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_a_host_that_forbids_it_keeps_its_collector_and_ends_without_a_word(version, workers):
    """Up to 3.11 the collector is off while the frames are taken."""
    stand_in = add_stand_in(workers.folder / "stand_in")
    worker = workers.run(
        [interpreters.need(version), "-c", STRICT],
        popen={"stdin": subprocess.PIPE},
        PYTHONPATH=f"{stand_in}{os.pathsep}{ROOT}",
    )
    worker.wait_line("ready")
    for _ in range(3):
        assert worker.ask("free", seconds=0.2)["state"] in ("failed", "done", "busy")
    worker.process.stdin.write(b"\n")
    worker.process.stdin.flush()
    assert worker.wait_line("0.00") == "True True 0.005"
    out, errors = worker.process.communicate(timeout=TIMEOUT)
    assert (worker.process.returncode, out, errors) == (0, b"", b"")
