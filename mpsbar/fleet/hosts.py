"""Several hosts side by side: each has its own ssh and thread, so that none waits for another."""

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from mpsbar.core.actions import Freed
from mpsbar.fleet.parse_status import NotAStatus, RemoteStatus, parse_freed, parse_status
from mpsbar.fleet.ssh import RemoteCommand, TooMuch, build_command

# Between two attempts; doubled each time, until it answers again.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
# Of lines that are no answer: what a login script prints before it.
_MOST_NOISE = 200
_NO_MPSBAR = 127


@dataclass(frozen=True, slots=True)
class HostReading:
    """What is known of one host."""

    host: str
    status: RemoteStatus | None = None  # the last answer, if there ever was one
    heard: float | None = None  # when it came, by our own clock
    problem: str | None = None  # why there is none now; None: it answers, or has not yet
    is_done: bool = False  # no more will come


class Host:
    """Asks one host until it is closed; `reading` is replaced whole: any thread may read it."""

    def __init__(self, host: str, words: Sequence[str], options: str, *, again: bool) -> None:
        self.reading = HostReading(host)
        self._command = build_command(host, list(words), options)
        self._again = again
        self._running: RemoteCommand | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mpsbar-{host}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._running is not None:
            self._running.end()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._closed.is_set():
            before = self.reading.heard
            problem = self._ask()
            if self._closed.is_set():
                return
            self._note(problem=problem, is_done=not self._again)
            if not self._again:
                return
            pause = _FIRST_PAUSE if self.reading.heard != before else min(2 * pause, _LONGEST_PAUSE)
            self._closed.wait(pause)

    def _ask(self) -> str | None:
        """Run the command to its end; return why it did not answer, or None."""
        try:
            self._running = RemoteCommand(self._command)
        except OSError as problem:
            return problem.strerror or str(problem)
        try:
            return self._follow(self._running)
        finally:
            self._running.end()

    def _follow(self, running: RemoteCommand) -> str | None:
        noise, has_answered = 0, False
        try:
            for line in running.read_lines():
                if not line.startswith(b"{"):
                    noise += 1
                    if noise > _MOST_NOISE:
                        return "it sends something other than answers"
                    continue
                self._note(status=parse_status(line), problem=None)
                has_answered = True
        except TooMuch:
            return "its answer is too long"
        except NotAStatus as problem:
            return str(problem)
        return None if has_answered and not self._again else explain_end(running)

    def _note(
        self, status: RemoteStatus | None = None, problem: str | None = None, is_done: bool = False
    ) -> None:
        last = self.reading
        heard = last.heard if status is None else time.time()
        self.reading = HostReading(last.host, status or last.status, heard, problem, is_done)


def explain_end(running: RemoteCommand) -> str:
    """Say in one clause why the command ended."""
    code = running.wait()
    if code == _NO_MPSBAR:
        return "mpsbar is not installed there: uv tool install mpsbar"
    return running.complaint or f"the connection ended (exit code {code})"


class Hosts:
    """All of them; `close` leaves no ssh behind."""

    def __init__(
        self, names: Sequence[str], words: Sequence[str], options: str = "", *, again: bool = False
    ) -> None:
        self._hosts = [Host(name, words, options, again=again) for name in dict.fromkeys(names)]

    @property
    def readings(self) -> list[HostReading]:
        return [host.reading for host in self._hosts]

    def wait(self, seconds: float) -> list[HostReading]:
        """What there is after all have ended, or this time is over."""
        deadline = time.monotonic() + seconds
        for host in self._hosts:
            host.wait(max(0.0, deadline - time.monotonic()))
        return self.readings

    def close(self) -> None:
        for host in self._hosts:
            with contextlib.suppress(OSError):
                host.close()


def free_on_host(host: str, words: list[str], options: str, seconds: float) -> list[Freed] | str:
    """Run `mpsbar free` there, with that host's own checks: the outcomes, or why there are none."""
    running = RemoteCommand(build_command(host, words, options))
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        running.end()

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        for line in running.read_lines():
            if line.startswith(b"{"):
                return parse_freed(line)
        return f"nothing within {seconds:g} seconds" if is_late.is_set() else explain_end(running)
    except TooMuch:
        return "its answer is too long"
    except NotAStatus as problem:
        return str(problem)
    finally:
        timer.cancel()
        running.end()
