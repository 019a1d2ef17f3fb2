"""The ends of real processes that are not our children: at once, and with their exit status."""

import errno
import os
import struct
import subprocess
import sys
import time

import pytest
from worker_kit import TIMEOUT, wait_for

from mpsbar.core.endings import ExitStatus
from mpsbar.system import linux_exits
from mpsbar.system.linux import LinuxComputer
from mpsbar.system.linux_exits import PidfdWatch, parse_zombie

COMPUTER = LinuxComputer()
KERNEL = tuple(map(int, os.uname().release.split(".")[:2]))

# A grandchild: its parent reaps it, and we are not it. Prints its pid, then waits for a line.
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.readline()
if child.poll() is None: child.stdin.close()
if sys.argv[2] == "reap": child.wait()
print("reaped", flush=True)
sys.stdin.readline()
"""
WAIT = "import sys, os, ctypes; sys.stdin.read(); "


class Grandchild:
    def __init__(self, code, reap=True):
        command = [sys.executable, "-c", PARENT, WAIT + code, "reap" if reap else "leave"]
        self.parent = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = int(self.parent.stdout.readline())

    def end(self):
        self.parent.stdin.write("\n")
        self.parent.stdin.flush()
        assert self.parent.stdout.readline() == "reaped\n"

    def close(self):
        self.parent.kill()
        self.parent.wait(TIMEOUT)
        self.parent.stdin.close()
        self.parent.stdout.close()


def wait_exit(watch):
    found = []

    def poll():
        found.extend(watch.poll())
        return found

    (exit_,) = wait_for(poll, "exit")
    return exit_


@pytest.mark.skipif(KERNEL < (6, 15), reason="the kernel gives no exit status before 6.15")
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("", ExitStatus(code=0)),
        ("os._exit(7)", ExitStatus(code=7)),
        ("os.kill(os.getpid(), 9)", ExitStatus(signal=9)),
        ("os.abort()", ExitStatus(signal=6)),
    ],
)
def test_the_status_of_a_process_that_is_not_our_child(code, status):
    grandchild = Grandchild(code)
    watch = PidfdWatch(COMPUTER.read_start)
    try:
        started = COMPUTER.read_start(grandchild.pid)
        assert watch.add(grandchild.pid, started)
        assert watch.poll() == []
        assert watch.is_running(grandchild.pid, started)
        grandchild.end()
        found = wait_exit(watch)
        assert (found.pid, found.started, found.status) == (grandchild.pid, started, status)
        assert abs(found.time - time.time()) < TIMEOUT
        assert not watch.is_running(grandchild.pid, started)
        assert watch.poll() == []
    finally:
        watch.close()
        grandchild.close()


def test_a_parent_that_does_not_reap_leaves_a_zombie_whose_status_is_read():
    grandchild = Grandchild("os._exit(5)", reap=False)
    watch = PidfdWatch(COMPUTER.read_start, ioctl=no_ioctl)
    try:
        watch.add(grandchild.pid, COMPUTER.read_start(grandchild.pid))
        grandchild.end()
        assert wait_exit(watch).status == ExitStatus(code=5)
    finally:
        watch.close()
        grandchild.close()


def no_ioctl(*_):
    raise OSError(errno.ENOTTY, "as before Linux 6.13")


def test_on_an_older_kernel_the_moment_is_known_and_the_status_is_not():
    grandchild = Grandchild("os._exit(5)")
    watch = PidfdWatch(COMPUTER.read_start, ioctl=no_ioctl)
    try:
        watch.add(grandchild.pid, COMPUTER.read_start(grandchild.pid))
        grandchild.end()
        assert wait_exit(watch).status is None  # after a second in which it could be reaped
    finally:
        watch.close()
        grandchild.close()


def test_the_layout_is_that_of_the_kernels_header():
    """struct pidfd_info, first size: u64 mask, u64 cgroupid, u32 pid … fsgid, i32 exit_code."""
    assert linux_exits.INFO.size == 64
    number = 0xFF << 8 | 11 | 64 << 16 | 3 << 30  # _IOWR(0xFF, 11, 64 bytes)
    assert number == linux_exits.GET_INFO

    def ioctl(_handle, request, buffer):
        assert request == linux_exits.GET_INFO
        assert struct.unpack_from("=Q", buffer)[0] & 8
        struct.pack_into("=Q", buffer, 0, 8)
        struct.pack_into("=i", buffer, 60, 9)

    watch = PidfdWatch(COMPUTER.read_start, ioctl=ioctl)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    watch.add(process.pid, COMPUTER.read_start(process.pid))
    process.stdin.close()
    assert wait_exit(watch).status == ExitStatus(signal=9)
    process.wait(TIMEOUT)
    watch.close()


def test_who_cannot_be_watched():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = COMPUTER.read_start(process.pid)
    watch = PidfdWatch(COMPUTER.read_start, most=1)
    assert not watch.add(process.pid, started + 1)  # another process had this pid
    assert not watch.add(2**22 + 5, 1.0)
    assert watch.add(process.pid, started)
    assert watch.add(process.pid, started)
    assert not watch.add(os.getpid(), COMPUTER.read_start(os.getpid()))  # one more than it may
    open_files = len(os.listdir("/proc/self/fd"))
    watch.close()
    # The process's and the epoll's; another thread may have one open for a moment.
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= open_files - 2, "end of two descriptors")
    process.stdin.close()
    process.wait(TIMEOUT)


def test_a_hundred_ends_at_once():
    commands = [[sys.executable, "-S", "-c", f"input(); exit({n % 50})"] for n in range(20)]
    processes = [
        subprocess.Popen(c, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) for c in commands
    ]
    watch = PidfdWatch(COMPUTER.read_start)
    for process in processes:
        assert watch.add(process.pid, COMPUTER.read_start(process.pid))
    for process in processes:
        process.stdin.write(b"\n")
        process.stdin.close()
    codes = {p.pid: p.wait(TIMEOUT) for p in processes}
    found = {}
    wait_for(lambda: found.update({e.pid: e for e in watch.poll()}) or len(found) == 20, "all ends")
    if KERNEL >= (6, 15):
        assert {pid: e.status.code for pid, e in found.items()} == codes
    watch.close()


@pytest.mark.parametrize(
    ("stat", "status"),
    [
        (b"", None),
        (b"7 (a) b) Z", None),
        (b"7 (x) S " + b"0 " * 48 + b"1792", None),
        (b"7 (x) ) Z " + b"0 " * 48 + b"1792", ExitStatus(code=7)),
        (b"7 (x) Z " + b"0 " * 48 + b"139", ExitStatus(signal=11)),
        (b"7 (x) Z " + b"0 " * 48 + b"nine", None),
    ],
)
def test_zombies_in_proc(stat, status):
    assert parse_zombie(stat) == status
