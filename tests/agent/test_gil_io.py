"""Sockets by number: made, recognized, and left alone once they are somebody else's."""

import ctypes
import os
import socket
import stat
import subprocess
import sys

import interpreters
import pytest
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.agent import gil_io

# sys/un.h: Linux has a family of two bytes, macOS a length and a family of one byte each.
LINUX = b"\x01\x00/run/7.new\x00"
MACOS = b"\x0d\x01/run/7.new\x00"


@pytest.mark.parametrize(("platform", "raw"), [("linux", LINUX), ("darwin", MACOS)])
def test_addresses_are_as_each_kernel_wants_them(platform, raw):
    assert gil_io.unix_address(b"/run/7.new", platform) == raw
    memory = ctypes.create_string_buffer(raw, 111)  # the kernel's answer, padded
    family, path = gil_io.view_address(memory, platform)
    assert (family.raw, path.value) == (b"\x01", b"/run/7.new")


def test_other_descriptors_are_not_ours(tmp_path):
    number = gil_io.listen(str(tmp_path / "7.new"), 5)
    bound = os.fsencode(tmp_path / "7.new")
    assert gil_io.is_ours(number, bound)
    near, far = socket.socketpair()
    with socket.socket() as internet, near, far, open(os.devnull, "rb") as file:
        internet.bind(("127.0.0.1", 0))
        for other in (internet.fileno(), near.fileno(), file.fileno(), -1, 10_000):
            assert not gil_io.is_ours(other, bound)
            assert not gil_io.is_ours(other, b"")
            with pytest.raises(OSError, match="closed"):
                gil_io.send(other, bound, bytearray(b"x"))
            with pytest.raises(OSError, match="closed"):
                gil_io.accept(other, bound)
    gil_io.close_ours(number, bound)


def test_a_socket_is_ours_until_its_number_is_another_file(tmp_path):
    path = str(tmp_path / "7.new")
    number = gil_io.listen(path, 5)
    bound = os.fsencode(path)
    assert gil_io.is_ours(number, bound)
    assert not os.get_inheritable(number)
    with pytest.raises(BlockingIOError):
        gil_io.accept(number, bound)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        connection = gil_io.accept(number, bound)
        assert gil_io.is_ours(connection, bound)
        assert not gil_io.is_ours(client.fileno(), bound)
        with open(tmp_path / "checkpoint", "wb") as file:
            os.dup2(file.fileno(), connection)  # the host takes the number
            assert not gil_io.is_ours(connection, bound)
            gil_io.close_ours(connection, bound)
            os.fstat(connection)  # still open
            os.close(connection)
    gil_io.close_ours(number, bound)
    with pytest.raises(OSError):
        os.fstat(number)
    assert not gil_io.is_ours(number, bound)
    assert not gil_io.is_ours(-1, b"")


def check_none_left(before):
    """Another thread of this process, of an earlier test, may have one open for a moment."""
    wait_for(lambda: set(os.listdir("/dev/fd")) <= set(before), "end of new descriptors")


def test_what_cannot_be_bound_leaves_no_descriptor(tmp_path):
    before = os.listdir("/dev/fd")
    with pytest.raises(FileNotFoundError):
        gil_io.listen(str(tmp_path / "missing" / "7.new"), 5)
    check_none_left(before)


def test_the_standard_streams_numbers_are_never_taken(tmp_path):
    code = f"""
import os
os.closerange(0, 3)
from mpsbar.agent import gil_io
number = gil_io.listen({str(tmp_path / "7.new")!r}, 5)
import socket
for stream in range(3): os.open("/dev/null", os.O_RDWR)
client = socket.socket(socket.AF_UNIX)
client.connect({str(tmp_path / "7.new")!r})
os.closerange(0, 3)
connection = gil_io.accept(number, os.fsencode({str(tmp_path / "7.new")!r}))
free = []
for stream in range(3):
    try: os.fstat(stream)
    except OSError: free.append(stream)
os._exit(0 if number >= 3 and connection >= 3 and free == [0, 1, 2] else 1)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=TIMEOUT)
    assert done.returncode == 0


def test_wake_listener_wakes_who_waits_and_is_no_error_where_nobody_does(tmp_path):
    path = str(tmp_path / "7.new")
    number = gil_io.listen(path, 5)
    bound = os.fsencode(path)
    gil_io.wake_listener(path)
    connection = gil_io.accept(number, bound)
    assert gil_io.ReceiveBuffer().receive(connection, bound) == b""
    for each in (connection, number):
        gil_io.close_ours(each, bound)
    gil_io.wake_listener(path)
    os.unlink(path)
    gil_io.wake_listener(path)


def test_the_sleep_is_not_times_own(monkeypatch):
    """gevent and eventlet replace that one, and theirs would run the host's greenlets on our thread."""
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("time.sleep was called"))
    gil_io.sleep(0.001)


def test_a_new_file_is_for_this_user_alone_and_is_read_again(tmp_path):
    before = os.listdir("/dev/fd")
    path = os.fsencode(tmp_path / "record")
    gil_io.write_new_file(path, b"some text")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert gil_io.read_file(path) == b"some text"
    with pytest.raises(OSError, match="record"):
        gil_io.write_new_file(path, b"other")  # never over what is there
    assert gil_io.read_file(path) == b"some text"
    with pytest.raises(OSError, match="missing"):
        gil_io.read_file(os.fsencode(tmp_path / "missing"))
    check_none_left(before)


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path):
    path, unfinished, other = (tmp_path / name for name in ("record", ".record", "other"))
    other.write_text("another file")
    unfinished.symlink_to(other)  # as somebody may plant it
    gil_io.replace_file(os.fspath(path), b"first")
    unfinished.write_text("half a rec")  # a process was killed
    gil_io.replace_file(os.fspath(path), b"second")
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert other.read_text() == "another file"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        gil_io.replace_file(os.fspath(tmp_path / "folder"), b"a folder can't be replaced")
    assert sorted(os.listdir(tmp_path)) == ["folder", "other", "record"]


def test_a_file_that_the_disk_has_no_room_for_is_not_left_behind(tmp_path):
    code = f"""
import resource, signal, os
from mpsbar.agent import gil_io
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try: gil_io.write_new_file({os.fsencode(tmp_path / "record")!r}, b"x" * 1000)
except OSError: print(os.listdir({str(tmp_path)!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# One thread closes all descriptors and opens its own, over and over; ours works beside it.
CLOSES_ALL = """
import os, sys, threading, time
from mpsbar.agent import gil_io
from mpsbar.agent.backends import cpu
os.chdir({folder!r})
first = os.dup(2) + 1
sys.setswitchinterval(1e-6)
failed, answers = [], []
def take_all():
    while not failed and len(answers) < {times}:
        os.closerange(first, first + 8)
        for number in [os.open("checkpoint", os.O_RDWR | os.O_CREAT) for _ in range(8)]:
            try: same = os.path.samestat(os.fstat(number), os.stat("checkpoint"))
            except OSError: same = False
            if not same: failed.append(number)
        if os.path.getsize("checkpoint"): failed.append("written")
def work():
    while not failed and len(answers) < {times}:
        {work}
        answers.append(1)
threads = [threading.Thread(target=each) for each in (take_all, work)]
for thread in threads: thread.start()
for thread in threads: thread.join()
os.write(1, repr(failed[:3]).encode())
"""
WORK = {
    "resident memory": "cpu.measure()",
    "a record": """
        try: gil_io.write_new_file(b"%d.json" % len(answers), b"x")
        except OSError: pass""",
    "a listener": """
        try: gil_io.listen("%d.new" % len(answers), 5)
        except OSError: pass""",
    "waking a listener": """
        try: gil_io.wake_listener("nobody.sock")
        except OSError: pass""",
}


@pytest.mark.parametrize("version", interpreters.OLDEST_AND_NEWEST)
@pytest.mark.parametrize("work", WORK)
def test_a_host_that_closes_everything_meanwhile_keeps_what_it_opens(tmp_path, work, version):
    code = CLOSES_ALL.format(folder=str(tmp_path), work=WORK[work], times=4000)
    done = subprocess.run(
        [interpreters.need(version), "-c", code], cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[]", "")
