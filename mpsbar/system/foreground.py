"""Runs a command as its parent, and stays out of its way: signals, job control, stdin, status.

The command stays in the process group of the job, as without us, so the terminal and the shell
reach it themselves. A signal that was sent to us alone is passed on; one that the whole group got
is not, or the command would get it twice. A small guard process in the same group tells the two
apart: it gets what the group gets. It also ends the command if we are killed.
"""

import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

# Those that end, stop or wake a program; the rest nobody sends to a command.
_PASSED_ON = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGALRM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT,
)  # fmt: skip
# How long the kernel may need to give a signal to the whole group, one process after the other.
_GROUP_SECONDS = 0.05
# How long the guard has to answer; on a busy machine it may wait that long for a processor.
_GUARD_SECONDS = 10.0
# In what the guard writes: no signal has this number.
_ANSWER, _QUESTION = 0, b"?"
_POLL_SECONDS = 0.5
# waitid: the numbers of macOS, where Python has no waitid before 3.13.
_P_PID, _WNOHANG, _WEXITED, _WSTOPPED, _WNOWAIT = 1, 0x01, 0x04, 0x08, 0x20
_CLD_STOPPED = 5


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended: the status of wait(2), when it ran, what the kernel counted."""

    pid: int
    status: int
    began: float  # seconds since the epoch
    ended: float
    most_resident: int  # bytes, of the largest of its processes
    exit_reason: tuple[int, int] | None = None  # macOS: namespace and code


def run_command(
    command: Sequence[str],
    environ: Mapping[str, str],
    on_start: Callable[[int], None] | None = None,
    read_exit_reason: Callable[[int], tuple[int, int] | None] | None = None,
) -> CommandEnd:
    """Run it to its end. OSError: it could not be started.

    `read_exit_reason` is asked after the end and before the pid is given back.
    """
    with _SignalGuard() as guard, _Signals() as signals:
        began = time.time()
        process = subprocess.Popen(list(command), env=dict(environ), close_fds=False)
        guard.protect(process.pid)
        if on_start is not None:
            on_start(process.pid)
        while not _wait(process.pid, signals):
            for number in signals.read(_POLL_SECONDS):
                if not guard.was_sent_to_group(number):
                    _send(process.pid, number)
        ended = time.time()
        reason = read_exit_reason(process.pid) if read_exit_reason is not None else None
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # it is reaped
    unit = 1 if sys.platform == "darwin" else 1024
    return CommandEnd(process.pid, status, began, ended, usage.ru_maxrss * unit, reason)


def exit_like(status: int) -> int:
    """The exit code to return; after a signal this process ends by the same, as the command did."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    number = -code
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 + number  # where the signal is ignored after all


def _wait(pid: int, signals: "_Signals") -> bool:
    """Returns whether the command has ended; stops with it, so that the shell knows."""
    reason = _peek(pid)
    if reason is None:
        return False
    if reason != _CLD_STOPPED:
        return True
    _, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
    if os.WIFSTOPPED(status):
        signals.stop_self(os.WSTOPSIG(status))
    return False


def _peek(pid: int) -> int | None:
    """How a child changed (CLD_…), without taking its status; None: it did not."""
    if hasattr(os, "waitid"):
        options = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        result = os.waitid(os.P_PID, pid, options)
        return None if result is None else result.si_code
    return _peek_by_library(ctypes.CDLL(None, use_errno=True), pid)


def _peek_by_library(library: ctypes.CDLL, pid: int) -> int | None:
    """The same by the C library: siginfo_t begins with si_signo, si_errno, si_code everywhere."""
    info = (ctypes.c_int * 32)()
    options = _WEXITED | _WSTOPPED | _WNOHANG | _WNOWAIT
    if library.waitid(_P_PID, pid, info, options) != 0:
        raise OSError(ctypes.get_errno(), "waitid")
    return int(info[2]) if info[0] == signal.SIGCHLD else None


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


class _Signals:
    """The signals that this process gets while the command runs, as numbers to read."""

    def __enter__(self) -> "_Signals":  # noqa: PYI034
        self.output, self._input = os.pipe()
        for end in (self.output, self._input):
            os.set_blocking(end, False)
        # What is ignored stays so, here and in the command: nohup, a job of a script.
        caught = [n for n in _PASSED_ON if signal.getsignal(n) != signal.SIG_IGN]
        self._before = {n: signal.getsignal(n) for n in (*caught, signal.SIGCHLD)}
        self._wakeup = signal.set_wakeup_fd(self._input, warn_on_full_buffer=False)
        for number in self._before:
            signal.signal(number, _do_nothing)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self.output)
        os.close(self._input)

    def read(self, seconds: float) -> list[int]:
        """Wait for a signal; those that came, without SIGCHLD."""
        select.select([self.output], [], [], seconds)
        try:
            numbers = os.read(self.output, 256)
        except BlockingIOError:
            return []
        return [number for number in numbers if number != signal.SIGCHLD]

    def stop_self(self, number: int) -> None:
        """Stop by the same signal as the command; returns when somebody continues this process."""
        if number == signal.SIGSTOP or number not in self._before:
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, _do_nothing)


class _SignalGuard:
    """A process beside us that writes down which signals the whole group gets."""

    def __enter__(self) -> "_SignalGuard":  # noqa: PYI034
        self.output, report = os.pipe()
        control_pipe, self._control = os.pipe()
        os.set_blocking(report, False)
        self._seen: list[tuple[float, int]] = []
        # A signal that comes now would end the guard: it waits until the guard can write it down.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        try:
            self._pid = os.fork()
            if self._pid == 0:
                os.close(self.output)
                os.close(self._control)
                _stand_guard(report, control_pipe, before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(report)
        os.close(control_pipe)
        os.set_blocking(self.output, False)
        return self

    def __exit__(self, *_: object) -> None:
        _send(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self.output)
        os.close(self._control)

    def protect(self, pid: int) -> None:
        """Makes the command end with us, however we end."""
        os.write(self._control, f"{pid}\n".encode())

    def was_sent_to_group(self, number: int) -> bool:
        """Returns whether the whole group got this signal, not this process alone."""
        if self._find(number, _GROUP_SECONDS):
            return True
        # Before the guard reads the question, the kernel gives it what was sent before.
        with suppress(BrokenPipeError):
            os.write(self._control, _QUESTION)
        return self._find(number, _GUARD_SECONDS)

    def _find(self, number: int, seconds: float) -> bool:
        """Returns whether the guard writes this number within that time and before its answer."""
        deadline = time.monotonic() + seconds
        while True:
            has_answered = self._read()
            for entry in self._seen:
                if entry[1] == number:
                    self._seen.remove(entry)
                    return True
            left = deadline - time.monotonic()
            if has_answered or left <= 0:
                return False
            select.select([self.output], [], [], left)

    def _read(self) -> bool:
        """Note the signals that the guard got; returns whether it has answered, or has ended."""
        now = time.monotonic()
        self._seen = [entry for entry in self._seen if now - entry[0] < 5.0]
        try:
            numbers = os.read(self.output, 256)
        except BlockingIOError:
            return False
        self._seen += [(now, number) for number in numbers if number != _ANSWER]
        return _ANSWER in numbers or not numbers


def _stand_guard(report: int, control_pipe: int, mask: "set[int | signal.Signals]") -> None:
    """In the guard: never returns. The signal numbers are written by Python's own C handler."""
    try:
        for number in _PASSED_ON:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _do_nothing)
        signal.set_wakeup_fd(report, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)  # whoever reads our output must not wait for the guard
        received = b""
        while data := os.read(control_pipe, 64):
            received += data.replace(_QUESTION, b"")
            with suppress(BlockingIOError):
                os.write(report, bytes([_ANSWER]) * data.count(_QUESTION))
        # The pipe is closed while we live: our parent was killed.
        if received.strip().isdigit():
            _send(int(received), signal.SIGKILL)
    finally:
        os._exit(0)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Python must have a handler, or it writes no number."""
