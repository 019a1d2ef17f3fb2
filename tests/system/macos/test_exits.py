"""Ends by kqueue as xnu has it, over real processes of this machine."""

import errno
import os
import select
import subprocess
import sys

import pytest
from worker_kit import wait_for

from mpsbar.core.endings import ExitStatus
from mpsbar.system.linux import LinuxComputer
from mpsbar.system.macos.exits import (
    FILTER_PROC,
    NOTE_EXIT,
    NOTE_EXITSTATUS,
    KqueueWatch,
    parse_exit_data,
)

COMPUTER = LinuxComputer()


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
    wait_for(lambda: read_state(process.pid) == "Z", "zombie")


def read_state(pid):
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
