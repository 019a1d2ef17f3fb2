"""One instance: held by a real process, given up however it ends, nudged by a second one."""

import errno
import fcntl
import os
import subprocess
import sys
import time

import pytest
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.system import paths
from mpsbar.system.single_instance import claim, nudge, read_holder

HOLD = (
    "import sys\nfrom mpsbar.system.single_instance import claim\nheld = claim()\n"
    "print(held is not None, flush=True)\nsys.stdin.readline()\nprint(held.nudged(), held.nudged(), flush=True)\n"
    "sys.stdin.readline()\n"
)


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def start():
    started = []

    def run(code=HOLD):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate(timeout=TIMEOUT)


def test_the_second_says_so_and_the_first_is_nudged(start):
    first = start()
    assert first.stdout.readline() == "True\n"
    assert claim() is None
    assert read_holder() == first.pid
    assert nudge()
    first.stdin.write("\n")
    first.stdin.flush()
    assert first.stdout.readline() == "True False\n"


@pytest.mark.parametrize("signal", [2, 9, 15])
def test_it_is_free_again_however_the_holder_ended(start, signal):
    first = start()
    first.stdout.readline()
    first.send_signal(signal)
    first.wait(timeout=TIMEOUT)
    held = claim()
    assert held is not None
    assert held.is_sure
    assert read_holder() == os.getpid()
    held.close()


def test_of_many_that_start_at_once_one_is_the_one(start):
    many = [start() for _ in range(6)]
    lines = [process.stdout.readline() for process in many]
    assert sorted(lines) == ["False\n"] * 5 + ["True\n"]


@pytest.mark.parametrize(
    "make_child",
    [
        "import os, time\nif os.fork() == 0:\n    os.close(1)\n    time.sleep(600)\n",
        "import subprocess\nsubprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL)\n",
        "import multiprocessing, time\nmultiprocessing.get_context('fork').Process(target=time.sleep, args=(600,)).start()\n",
    ],
    ids=["fork", "exec", "multiprocessing"],
)
def test_a_child_does_not_hold_it(start, make_child, tmp_path):
    """The child lives on after its parent was killed, and the lock is free all the same."""
    code = (
        "import os, sys\nos.setpgid(0, 0)\nfrom mpsbar.system.single_instance import claim\nheld = claim()\n" + make_child
        + "print('ready', flush=True)\nsys.stdin.readline()\n"
    )  # fmt: skip
    first = start(code)
    assert first.stdout.readline() == "ready\n"
    assert claim() is None  # nor does a child's end of it take it from the parent
    first.kill()
    first.wait(timeout=TIMEOUT)
    try:
        os.killpg(first.pid, 0)  # a child is there
        # A child that was forked a moment ago may not have run yet.
        wait_for(lambda: (held := claim()) is not None and not held.close(), "the lock")
    finally:
        os.killpg(first.pid, 9)


def test_given_up_and_taken_again():
    held = claim()
    assert not held.nudged()
    held.close()
    held.close()
    assert not held.nudged()
    again = claim()
    assert again is not None
    again.close()


def test_every_nudge_is_noticed_once():
    held = claim()
    for _ in range(5):
        assert nudge()
        assert held.nudged()
        assert not held.nudged()
    held.close()


def test_nudges_within_one_tick_of_the_clock_are_distinguished(monkeypatch):
    held = claim()
    monkeypatch.setattr(time, "time_ns", lambda: paths.lock_file("menubar").stat().st_mtime_ns)
    for _ in range(3):
        nudge()
        assert held.nudged()
    held.close()


def test_two_names_do_not_meet():
    first, other = claim("first"), claim("other")
    assert None not in (first, other)
    first.close()
    other.close()


def test_nobody_to_nudge():
    assert (nudge(), read_holder()) == (False, None)


def test_a_place_that_cannot_be_written_is_not_sure(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path / "file/mpsbar"))
    held = claim()
    assert (held.is_sure, held.nudged()) == (False, False)
    assert held.why_unsure == "Not a directory"
    held.close()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_is_not_sure(monkeypatch, number):
    """None is at hand, so the kernel's answer is given by hand."""

    def refuse(descriptor, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    held = claim()
    assert (held.is_sure, held.why_unsure) == (False, os.strerror(number))


def test_a_link_in_its_place_is_not_followed(data, tmp_path):
    data.mkdir()
    (tmp_path / "precious").write_text("keep")
    paths.lock_file("menubar").symlink_to(tmp_path / "precious")
    assert not claim().is_sure
    assert (tmp_path / "precious").read_text() == "keep"


def test_what_others_wrote_there_is_no_pid(data):
    data.mkdir()
    for text in ("", "12x", "²", "9" * 5000):
        paths.lock_file("menubar").write_text(text)
        assert read_holder() is None
