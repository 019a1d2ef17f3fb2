"""Asks several hosts at once: each has its own ssh and thread, so that none waits for another."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from mpsbar.core.errors import reason_of
from mpsbar.core.host_readings import HostProblem, HostReading, RemoteStatus
from mpsbar.fleet.parse_status import NotFromMpsbarError, UnusableAnswerError, parse_status
from mpsbar.fleet.ssh import OutputTooLongError, RemoteCommand, build_command
from mpsbar.language import _
from mpsbar.system.waiting import wait_for_result

_T = TypeVar("_T")
# Seconds between two attempts; the pause doubles each time, until the host answers again.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
# A host counts as silent after this many seconds without a line, plus three intervals.
_LATE = 10.0
# The most lines that a login script may print before the answer.
_MAX_NOISE = 200
# Exit codes: of ssh itself, of sh if there is no such command, of mpsbar for wrong arguments.
_SSH_FAILED, _NO_MPSBAR, _WRONG_ARGUMENTS = 255, 127, 2
# What an older mpsbar prints, in English, about a command or option that it lacks.
_OLDER = (
    "unrecognized arguments", "invalid choice", "invalid int value", "unknown command",
    "there is no verb",  # of earlier versions
)  # fmt: skip
# What ssh prints if it would have to ask, but may not (BatchMode).
_WANTS_PERSON = ("Host key verification failed", "Permission denied")


class Host:
    """Asks one host until it is closed. Any thread may read `reading`, which is replaced whole."""

    def __init__(self, host: str, command: list[str], again: float | None) -> None:
        self.reading = HostReading(host)
        self._command = command
        self._again = again is not None
        # An ssh may stay connected without output: its mpsbar hangs, or the computer swaps.
        self._longest = None if again is None else _LATE + 3 * again
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
            before = self.reading.answered_at
            problem = self._ask()
            if self._closed.is_set():
                return
            self._note(problem=problem, is_done=not self._again)
            if not self._again:
                return
            pause = (
                _FIRST_PAUSE
                if self.reading.answered_at != before
                else min(2 * pause, _LONGEST_PAUSE)
            )
            self._closed.wait(pause)

    def _ask(self) -> HostProblem | None:
        """Runs the command to its end. Returns why it did not answer, or None."""
        try:
            running = self._running = RemoteCommand(self._command)
        except OSError as problem:
            return HostProblem(reason_of(problem))
        try:
            # `close` may have come before there was an ssh to end.
            return None if self._closed.is_set() else self._read_statuses(running)
        finally:
            running.end()

    def _read_statuses(self, running: RemoteCommand) -> HostProblem | None:
        """Reads statuses until the output ends. Returns why there was no usable answer, or None.

        Other lines are skipped: a login script may print something that looks like JSON.
        """
        noise, has_answered = 0, False
        wrong: HostProblem | None = None
        try:
            for line in running.read_lines(self._longest, self._note_silence):
                try:
                    self._note(status=parse_status(line), problem=None)
                    noise, has_answered, wrong = 0, True, None
                    continue
                except NotFromMpsbarError:
                    pass
                except UnusableAnswerError as problem:
                    wrong = HostProblem(str(problem))
                    self._note(problem=wrong)
                noise += 1
                if noise > _MAX_NOISE:
                    return wrong or HostProblem(_("unexpected output"))
        except OutputTooLongError:
            return HostProblem(_("its output is too long"))
        if has_answered and not self._again:
            return None
        return wrong or explain_end(running)

    def _note_silence(self) -> None:
        """Marks the reading as out of date; the next line that arrives clears this."""
        if self.reading.problem is None:
            text = _("silent for {seconds:g} seconds").format(seconds=self._longest)
            self._note(problem=HostProblem(text))

    def _note(
        self,
        status: RemoteStatus | None = None,
        problem: HostProblem | None = None,
        is_done: bool = False,
    ) -> None:
        last = self.reading
        answered_at = last.answered_at if status is None else time.time()
        self.reading = HostReading(
            last.host,
            status or last.status,
            answered_at,
            None if problem is None else problem.text,
            is_done,
            problem is not None and problem.needs_person,
        )


def explain_end(running: RemoteCommand) -> HostProblem:
    """Says in one clause why the command ended without an answer."""
    code, complaint = running.wait(), running.complaint
    if code == _NO_MPSBAR:
        return HostProblem(
            _(
                "mpsbar is not installed there: "
                "uv tool install '.[terminal]' in a checkout of mpsbar"
            )
        )
    if code == _WRONG_ARGUMENTS and any(words in complaint for words in _OLDER):
        return HostProblem(
            _(
                "its mpsbar is older and can't do this: "
                "uv tool install --reinstall '.[terminal]' in a newer checkout of mpsbar"
            )
        )
    needs_person = code == _SSH_FAILED and any(words in complaint for words in _WANTS_PERSON)
    return HostProblem(
        complaint or _("the connection ended (exit code {code})").format(code=code), needs_person
    )


class Hosts:
    """Asks all hosts; `close` ends every ssh."""

    def __init__(
        self,
        names: Sequence[str],
        arguments: Sequence[str],
        options: str = "",
        again: float | None = None,
    ) -> None:
        """`again`: seconds after which each command prints the next line; None: there is one."""
        self._arguments, self._options, self._again = list(arguments), options, again
        self._hosts = {name: self._start(name) for name in dict.fromkeys(names)}

    @property
    def readings(self) -> list[HostReading]:
        return [host.reading for host in self._hosts.values()]

    def restart(self, name: str, socket: Path | None) -> None:
        """Asks this host again at once, over the open connection of this socket."""
        self._hosts[name].close()
        self._hosts[name] = self._start(name, socket)

    def wait(self, seconds: float) -> list[HostReading]:
        """Returns the readings once all hosts have ended or `seconds` have passed."""
        deadline = time.monotonic() + seconds
        for host in self._hosts.values():
            host.wait(max(0.0, deadline - time.monotonic()))
        return self.readings

    def close(self) -> None:
        for host in self._hosts.values():
            with contextlib.suppress(OSError):
                host.close()

    def _start(self, name: str, socket: Path | None = None) -> Host:
        command = build_command(name, self._arguments, self._options, socket)
        return Host(name, command, self._again)


def ask_hosts(
    commands: dict[str, list[str]], parse: Callable[[bytes], _T], seconds: float
) -> dict[str, _T | HostProblem]:
    """Runs a command on all hosts at once. Returns what each answered, or why it did not."""
    # After Ctrl-C every ssh is ended before the pool waits for its threads: each ssh has a session
    # of its own and would go on.
    with (
        ThreadPoolExecutor(max(len(commands), 1)) as pool,  # a slow host delays none of the others
        contextlib.closing(_Running()) as running,
    ):
        asked = {
            host: pool.submit(_ask_host, command, parse, seconds, running)
            for host, command in commands.items()
        }
        return {host: wait_for_result(answer) for host, answer in asked.items()}


class _Running:
    """The commands that are running; after `close` no further one starts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commands: list[RemoteCommand] | None = []

    def start(self, command: list[str]) -> RemoteCommand | None:
        with self._lock:
            if self._commands is None:
                return None
            self._commands.append(RemoteCommand(command))
            return self._commands[-1]

    def close(self) -> None:
        with self._lock:
            commands, self._commands = self._commands or [], None
        for command in commands:
            command.end()


def _ask_host(
    command: list[str], parse: Callable[[bytes], _T], seconds: float, all_running: _Running
) -> _T | HostProblem:
    """Runs a command on one host and returns the first line that is an answer, parsed."""
    try:
        running = all_running.start(command)
    except OSError as problem:
        return HostProblem(reason_of(problem))
    if running is None:
        return HostProblem(_("not contacted"))
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        running.end()

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    noise = 0
    wrong: HostProblem | None = None
    try:
        for line in running.read_lines():
            try:
                return parse(line)
            except NotFromMpsbarError:
                pass
            except UnusableAnswerError as problem:
                wrong = HostProblem(str(problem))
            noise += 1
            if noise > _MAX_NOISE:
                return wrong or HostProblem(_("unexpected output"))
        if is_late.is_set():
            return HostProblem(_("silent for {seconds:g} seconds").format(seconds=seconds))
        return wrong or explain_end(running)
    except OutputTooLongError:
        return HostProblem(_("its output is too long"))
    finally:
        timer.cancel()
        running.end()
