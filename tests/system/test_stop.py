"""Ending a process: only the one that was meant, as Ctrl-C does, never by force."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from system.scripted import Scripted
from worker_kit import TIMEOUT

from mpsbar.core.actions import Stop
from mpsbar.system import stop as stopping
from mpsbar.system.linux import LinuxComputer
from mpsbar.system.replay import RecordedComputer, read_recording
from mpsbar.system.stop import stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
# Says which signal it got; ready once it can.
LISTENER = """
import os, signal, sys, time
def tell(number, _):  # not by print: the signal may come while "ready" is being printed
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    sys.exit(0)
for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, tell)
print("ready", flush=True)
while True: time.sleep(0.05)
"""


@pytest.fixture
def listener():
    process = subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture(params=["by its handle", "by its pid"])
def signal_sender(request, monkeypatch):
    """macOS has no pidfd."""
    if request.param == "by its pid":
        monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.parametrize(("firmly", "name"), [(False, "SIGINT"), (True, "SIGTERM")])
def test_it_is_asked_as_by_ctrl_c_and_the_second_time_firmly(listener, signal_sender, firmly, name):
    computer = LinuxComputer()
    started = computer.read_details(listener.pid).started
    outcome = stop(computer, Stop(listener.pid, started, "x.py", firmly))
    assert (outcome.state, outcome.firmly, outcome.name) == ("asked", firmly, "x.py")
    assert listener.communicate(timeout=TIMEOUT)[0] == f"{name}\n"


def test_the_pid_of_another_is_left_alone(listener, signal_sender):
    """The same pid, but it was started at another time: the one that was meant has ended."""
    computer = LinuxComputer()
    started = computer.read_details(listener.pid).started
    assert stop(computer, Stop(listener.pid, started - 1, "x.py")).state == "another"
    time.sleep(0.2)
    assert listener.poll() is None


def test_the_gone(listener, signal_sender):
    computer = LinuxComputer()
    started = computer.read_details(listener.pid).started
    listener.kill()
    listener.wait()
    assert stop(computer, Stop(listener.pid, started, "x.py")).state == "gone"


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_nobody_and_everybody_are_never_signalled(pid, monkeypatch):
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal was sent"))
    assert stop(LinuxComputer(), Stop(pid, 1.0, "x")).state == "not_allowed"
    assert stop(LinuxComputer(), Stop(os.getpid(), 1.0, "x")).state == "not_allowed"


def test_a_recorded_pid_is_anyones(monkeypatch):
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal was sent"))
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: pytest.fail("a signal was sent"))
    recorded = RecordedComputer(read_recording("m1max-64gb"))
    (pid, *_) = recorded.list_processes()
    started = recorded.read_details(pid).started
    assert stop(recorded, Stop(pid, started, "x")).state == "gone"


@pytest.mark.parametrize(
    ("error", "state"),
    [(PermissionError(1, "no"), "not_allowed"), (OSError(22, "odd"), "failed")],
)
def test_what_the_system_refuses(listener, monkeypatch, error, state):
    computer = Scripted()

    def refuse(*_):
        raise error

    monkeypatch.setattr(stopping, "_open_handle", lambda pid: None)
    with monkeypatch.context() as patch:  # the end of `listener` needs the real one
        patch.setattr(os, "kill", refuse)
        outcome = stop(computer, Stop(listener.pid, float(listener.pid), "x"))
    assert (outcome.state, outcome.error) == (state, "odd" if state == "failed" else None)


def test_a_pid_that_is_used_anew_just_before_the_signal(listener, monkeypatch):
    """psutil looks a second time: the process that it was made for is not there any more."""
    monkeypatch.setattr(stopping, "_open_handle", lambda pid: None)
    computer = Scripted()

    def read_start(pid):
        monkeypatch.setattr(psutil.Process, "_get_ident", lambda self: (self.pid, "another"))
        return 1.0

    computer.read_start = read_start
    with monkeypatch.context() as patch:  # the end of `listener` needs the real one
        patch.setattr(os, "kill", lambda *_: pytest.fail("a signal was sent"))
        assert stop(computer, Stop(listener.pid, 1.0, "x")).state == "gone"


def test_a_kernel_without_handles(listener, monkeypatch):
    def refuse(pid):
        raise OSError(38, "not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    started = LinuxComputer().read_details(listener.pid).started
    assert stop(LinuxComputer(), Stop(listener.pid, started, "x")).state == "asked"
    assert listener.communicate(timeout=TIMEOUT)[0] == "SIGINT\n"
