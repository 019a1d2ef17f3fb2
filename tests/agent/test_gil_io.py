"""Sockets by number: made, recognised, and left alone once they are somebody else's."""

import os
import socket
import subprocess
import sys

import pytest
from worker_kit import ROOT

from mpsbar.agent import gil_io

# sys/un.h: Linux has a family of two bytes, macOS a length and a family of one byte each.
LINUX = b"\x01\x00/run/7.new\x00"
MACOS = b"\x0d\x01/run/7.new\x00"


@pytest.mark.parametrize(("platform", "raw"), [("linux", LINUX), ("darwin", MACOS)])
def test_addresses_are_as_each_kernel_wants_them(platform, raw):
    assert gil_io.unix_address(b"/run/7.new", platform) == raw
    assert gil_io.parse_unix_address(raw, platform) == b"/run/7.new"
    # As macOS gives them back: padded to the whole struct.
    assert gil_io.parse_unix_address(raw + b"\0" * 80, platform) == b"/run/7.new"


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_other_addresses_have_no_path(platform):
    internet = (
        b"\x02\x00\x1f\x90\x7f\x00\x00\x01" if platform == "linux" else b"\x10\x02\x1f\x90\x7f"
    )
    for raw in (b"", b"\x01", internet):
        assert gil_io.parse_unix_address(raw, platform) == b""


def test_a_socket_is_ours_until_its_number_is_another_file(tmp_path):
    path = str(tmp_path / "7.new")
    number = gil_io.listen(path, 5)
    bound = os.fsencode(path)
    assert gil_io.bound_path(number) == bound
    assert not os.get_inheritable(number)
    with pytest.raises(BlockingIOError):
        gil_io.accept(number)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        connection = gil_io.accept(number)
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


def test_what_cannot_be_bound_leaves_no_descriptor(tmp_path):
    before = os.listdir("/dev/fd")
    with pytest.raises(FileNotFoundError):
        gil_io.listen(str(tmp_path / "missing" / "7.new"), 5)
    assert os.listdir("/dev/fd") == before


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
connection = gil_io.accept(number)
free = []
for stream in range(3):
    try: os.fstat(stream)
    except OSError: free.append(stream)
os._exit(0 if number >= 3 and connection >= 3 and free == [0, 1, 2] else 1)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60)
    assert done.returncode == 0


def test_a_knock_wakes_who_waits_and_is_no_error_where_nobody_does(tmp_path):
    path = str(tmp_path / "7.new")
    number = gil_io.listen(path, 5)
    gil_io.knock(path)
    connection = gil_io.accept(number)
    assert gil_io.ReceiveBuffer().receive(connection) == b""
    for each in (connection, number):
        gil_io.close_ours(each, os.fsencode(path))
    gil_io.knock(path)
    os.unlink(path)
    gil_io.knock(path)


def test_the_sleep_is_not_times_own(monkeypatch):
    """gevent and eventlet replace that one, and theirs would run the host's greenlets on our thread."""
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("time.sleep was called"))
    gil_io.sleep(0.001)
