"""The ends of real processes that are not our children: at once, and with their exit status."""

import errno
import os
import select
import signal
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
from mpsbar.system.macos.exits import (
    FILTER_PROC,
    NOTE_EXIT,
    NOTE_EXITSTATUS,
    KqueueWatch,
    parse_exit_data,
)
from mpsbar.system.platform import NoExitWatch, parse_wait_status

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


def test_a_platform_without_a_watch():
    watch = NoExitWatch()
    assert not watch.add(1, 1.0)
    assert (watch.poll(), watch.is_running(1, 1.0)) == ([], False)
    watch.close()


# --- macOS: kqueue as xnu has it, over real processes of this machine


class Event:
    def __init__(self, ident, kind, flags, fflags, data=0):
        self.ident, self.filter = ident, kind
        self.flags, self.fflags, self.data = flags, fflags, data


class Queue:
    """filt_procattach and filt_procevent of xnu: ESRCH for who is gone, EACCES for another's status."""

    def __init__(self, forbidden=()):
        self.notes, self.forbidden, self.closed, self.calls = {}, set(forbidden), False, 0

    def control(self, changes, most, timeout):
        assert timeout == 0
        self.calls += 1
        for change in changes or ():
            assert (change.filter, change.flags) == (FILTER_PROC, 0x0011)
            if change.fflags & NOTE_EXITSTATUS and change.ident in self.forbidden:
                raise PermissionError(errno.EACCES, "not yours")
            try:
                handle = os.pidfd_open(change.ident)
            except ProcessLookupError:
                raise ProcessLookupError(errno.ESRCH, "gone") from None
            self.notes[change.ident] = (change.fflags, handle)
        events = []
        for pid, (notes, handle) in list(self.notes.items()):
            if len(events) < most and select.select([handle], [], [], 0)[0]:
                del self.notes[pid]
                os.close(handle)
                _, status = os.waitpid(pid, 0)
                data = status if notes & NOTE_EXITSTATUS else 0
                told = NOTE_EXIT | (notes & NOTE_EXITSTATUS)
                events.append(Event(pid, FILTER_PROC, 0x0010, told, data))
        return events

    def close(self):
        self.closed = True


def start(code):
    return subprocess.Popen([sys.executable, "-c", "input()\n" + code], stdin=subprocess.PIPE)


def finish(process):
    process.stdin.write(b"\n")
    process.stdin.close()
    wait_for(lambda: psutil_state(process.pid) == "Z", "zombie")


def psutil_state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_kqueue_gives_the_status_of_a_stranger():
    queue, process = Queue(), start("import os; os._exit(6)")
    watch = KqueueWatch(COMPUTER.read_start, queue=queue, make_event=Event)
    started = COMPUTER.read_start(process.pid)
    calls = queue.calls
    assert watch.poll() == []
    assert queue.calls == calls  # nobody is watched: not even a call
    assert watch.add(process.pid, started)
    assert watch.add(process.pid, started)
    assert watch.is_running(process.pid, started)
    finish(process)
    (found,) = watch.poll()
    assert (found.pid, found.started, found.status) == (process.pid, started, ExitStatus(code=6))
    process.returncode = 6
    watch.close()
    assert queue.closed


def test_kqueue_tells_all_that_ended_at_once_in_one_call():
    """Else a scan misses them twice, and their status is never asked for."""

    class AllEnded:
        def control(self, changes, most, timeout):
            ended = range(1, 301) if changes is None else ()
            told = [Event(pid, FILTER_PROC, 0x0010, NOTE_EXIT | NOTE_EXITSTATUS) for pid in ended]
            return told[:most]

    watch = KqueueWatch(lambda _: 1.0, queue=AllEnded(), make_event=Event)
    assert all(watch.add(pid, 1.0) for pid in range(1, 301))
    assert {found.pid for found in watch.poll()} == set(range(1, 301))


def test_kqueue_without_the_right_to_signal_tells_the_moment():
    process = start("")
    watch = KqueueWatch(COMPUTER.read_start, queue=Queue({process.pid}), make_event=Event)
    assert watch.add(process.pid, COMPUTER.read_start(process.pid))
    finish(process)
    (found,) = watch.poll()
    assert found.status is None
    process.returncode = 0


def test_kqueue_refuses_who_is_gone_or_another():
    process = start("")
    watch = KqueueWatch(COMPUTER.read_start, most=1, queue=Queue(), make_event=Event)
    assert not watch.add(2**22 + 5, 1.0)
    assert not watch.add(process.pid, 1.0)
    assert watch.add(process.pid, COMPUTER.read_start(process.pid))
    assert not watch.add(os.getpid(), 1.0)
    finish(process)
    assert len(watch.poll()) == 1
    process.returncode = 0


@pytest.mark.skipif(hasattr(select, "kqueue"), reason="there is a kqueue here")
def test_where_there_is_no_kqueue():
    with pytest.raises(OSError, match="kqueue"):
        KqueueWatch(COMPUTER.read_start)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (0, ExitStatus(code=0)),
        (0x300, ExitStatus(code=3)),
        (9, ExitStatus(signal=9)),
        (0x86, ExitStatus(signal=6)),  # with a core dump
        (0x40020009, ExitStatus(signal=9, jetsam="vm-compressor-thrashing")),
        (0x10020009 - (1 << 32), ExitStatus(signal=9, jetsam="per-process-limit")),
        (0x00020009, ExitStatus(signal=9, jetsam="jettisoned")),
        (0x00040009, ExitStatus(signal=9, code_signing=True)),
        (0x137F, None),  # stopped: no end
    ],
)
def test_the_word_of_kqueue(data, status):
    assert parse_exit_data(data) == status


def test_a_status_that_is_no_end():
    assert parse_wait_status(0xFFFF) is None
    assert signal.SIGKILL == 9
