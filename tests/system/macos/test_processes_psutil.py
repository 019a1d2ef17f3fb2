"""How a process was started, through psutil: whatever it says or raises, and that the double is like it."""

import inspect
import os
import subprocess
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from system.fakemac.double import IS_NEW_AFTER, LIVES_FOR, STATUS
from system.fakemac.psutil_double import FakeProcess, FakePsutil, Program
from system.macos import checks
from worker_kit import wait_for

from mpsbar.system.macos import processes
from mpsbar.system.platform import Details

START = 1_790_000_000.25
OTHER_USER = os.geteuid() + 1
# How often one reading of the details asks the system something.
QUESTIONS = 8


def test_details(mac, make_computer):
    checks.check_details(mac, make_computer)


@pytest.mark.parametrize("questions", range(QUESTIONS))
def test_a_process_that_dies_while_its_details_are_read(mac, computer, questions):
    mac.add_process(4242)
    mac.set_program(4242, [b"x"], executable=b"/bin/x")
    mac.set_process(4242, LIVES_FOR, questions)
    with pytest.raises(ProcessLookupError):
        computer.read_details(4242)


def test_a_process_that_dies_afterwards(mac, computer):
    mac.add_process(4242)
    mac.set_program(4242, [b"x"], executable=b"/bin/x")
    mac.set_process(4242, LIVES_FOR, QUESTIONS)
    assert computer.read_details(4242).command == ("x",)


@pytest.mark.parametrize("questions", range(1, QUESTIONS))
def test_a_pid_that_is_used_anew_while_its_details_are_read(mac, computer, questions):
    mac.add_process(4242)
    mac.set_program(4242, [b"x"], executable=b"/bin/x")
    mac.set_process(4242, IS_NEW_AFTER, questions)
    with pytest.raises(ProcessLookupError, match="has ended"):
        computer.read_details(4242)


def test_a_process_that_has_become_a_zombie_has_ended(mac, computer):
    mac.add_process(4242)
    mac.set_process(4242, STATUS, 5)
    for read in (computer.read_details, computer.read_start):
        with pytest.raises(ProcessLookupError, match="has ended"):
            read(4242)


def test_a_zombie_that_only_psutil_notices(mac, computer, monkeypatch):
    """It ended after libproc was asked."""
    mac.add_process(4242, status=5)
    monkeypatch.setattr(processes, "read_start", lambda *_: START)
    with pytest.raises(ProcessLookupError, match="has ended"):
        computer.read_details(4242)


@pytest.mark.parametrize(
    "error",
    [
        psutil.AccessDenied(4242),
        OSError(0, "(originated from sysctl(KERN_PROCARGS2))"),
        SystemError("returned NULL without setting an exception"),
        RuntimeError("sysctl failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_details_without_a_command(mac, computer, error):
    """In an exec, or not for us to see: the rest is still worth knowing."""
    mac.add_process(4242, parent=7)
    mac.set_program(4242, error, error, executable=b"/opt/x")
    assert computer.read_details(4242) == Details(START, 7, (), "/opt/x", {})
    mac.set_program(4242, [b"x"], error, executable=b"")
    assert computer.read_details(4242) == Details(START, 7, ("x",), None, {})
    mac.set_program(4242, [b"x"], [b"RANK=1"], executable=error)
    assert computer.read_details(4242) == Details(START, 7, ("x",), None, {"RANK": "1"})


def test_the_arguments_of_another_user_are_not_ours_to_see(mac, monkeypatch):
    mac.add_process(4242, parent=7, uid=OTHER_USER)
    mac.set_program(4242, [b"secret"], [b"RANK=1"], executable=b"/opt/x")
    assert processes.read_details(4242, START) == Details(START, 7, (), "/opt/x", {})


def test_the_most_arguments_a_process_can_have(mac, computer):
    mac.add_process(4242)
    many = [b"a" * 500, *[b"b"] * 200_000, b"c" * ((1 << 20) - 200_900)]
    mac.set_program(4242, many, [b"PATH=" + b"d" * 9000, b"HOME=/x", b"RANK=1"], b"/" + b"e" * 5000)
    details = computer.read_details(4242)
    assert details.command == ("a" * 300, *["b"] * 19)
    assert details.variables == {"PATH": "d" * 4096, "RANK": "1"}
    assert details.executable == "/" + "e" * 4095


def test_what_is_no_text(mac, computer):
    mac.add_process(4242)
    mac.set_program(4242, [b"\xff", b"\x1b[1m"], [b"RANK=\xff", b"\xff=1"], b"/\xff")
    details = computer.read_details(4242)
    assert details.command == ("\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}[1m")
    assert details.variables == {"RANK": "\N{REPLACEMENT CHARACTER}"}
    assert details.executable == "/\N{REPLACEMENT CHARACTER}"


@given(st.lists(st.binary(max_size=30)), st.lists(st.binary(max_size=30)), st.binary(max_size=30))
def test_any_bytes_at_all(command, variables, executable):
    class Kernel:
        def fake_kinfo(self, *_):
            return 0

    psutil_double = FakePsutil(Kernel())
    psutil_double.programs[4242] = Program(command, variables, executable)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "psutil", psutil_double)
        details = processes.read_details(4242, START)
    assert len(details.command) <= 20
    assert all(text.isprintable() for text in (*details.command, *details.variables.values()))
    (details.executable or "").encode()  # it can be written into a file


def test_psutil_has_what_the_double_has():
    """With the same arguments, as far as we pass any."""
    for double, real in ((FakePsutil, psutil), (FakeProcess, psutil.Process)):
        for name in (name for name in vars(double) if not name.startswith("_") and name != "ask"):
            theirs = getattr(real, name)
            if not inspect.isclass(theirs):
                wanted = list(inspect.signature(theirs).parameters)
                ours = list(inspect.signature(getattr(double, name)).parameters)
                assert wanted[: len(ours) - (double is FakePsutil)] == ours[double is FakePsutil :]
    assert psutil.version_info >= (7, 2, 2)


def test_the_real_psutil_of_this_system_tells_the_same_kinds_of_things():
    variables = {"RANK": "1", "PYTORCH_X": "y", "HOME": "/"}
    code = "print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout.readline() == b"\n"
        details = processes.read_details(child.pid, START)
        assert details.command == (sys.executable, "-c", code)
        assert details.variables == {"RANK": "1", "PYTORCH_X": "y"}
        assert details.executable == os.path.realpath(sys.executable)
        assert (details.started, details.parent) == (START, os.getpid())
        child.kill()
        wait_for(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE, "its end")
        with pytest.raises(ProcessLookupError, match="has ended"):
            processes.read_details(child.pid, START)
    finally:
        child.kill()
        child.communicate()
    with pytest.raises(ProcessLookupError, match="has ended"):
        processes.read_details(child.pid, START)
