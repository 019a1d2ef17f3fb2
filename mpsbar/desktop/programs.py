"""Programs of the desktop, run beside all else: with a time-out, never through a shell."""

import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import IO

SECONDS = 20.0  # a desktop that is just waking up; nobody waits for it
_MOST_WAITING = 20


class Commands:
    """One after the other, on a thread of their own."""

    def __init__(self, log: Callable[[str], None], seconds: float = SECONDS) -> None:
        self._log = log
        self._seconds = seconds
        self._waiting: queue.Queue[Sequence[bytes]] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._last_problem = ""

    def start(self, command: Sequence[bytes]) -> None:
        """Returns at once. How it went is nobody's business, only that it failed is logged."""
        try:
            self._waiting.put_nowait(command)
        except queue.Full:
            self._complain(f"{_name(command)}: too many are waiting; one was skipped")
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="mpsbar-desktop", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            command = self._waiting.get()
            problem = run_command(command, seconds=self._seconds)
            if problem is not None:
                self._complain(problem)

    def _complain(self, problem: str) -> None:
        """A program that is broken is so each time."""
        if problem != self._last_problem:
            self._last_problem = problem
            self._log(problem)


def run_command(
    command: Sequence[bytes], stdin: bytes | None = None, seconds: float = SECONDS
) -> str | None:
    """None when it went well, else one sentence."""
    # Not a pipe: what a program leaves running (xclip does) would hold it open, and us with it.
    with tempfile.TemporaryFile() as errors:
        problem = _run(command, stdin, seconds, errors)
        errors.seek(0)
        words = errors.read(500).decode("utf-8", "replace").strip()
    return problem and f"{problem} {words}".strip()


def _run(
    command: Sequence[bytes], stdin: bytes | None, seconds: float, errors: IO[bytes]
) -> str | None:
    try:
        done = subprocess.run(
            command,
            input=stdin or b"",
            stdout=subprocess.DEVNULL,
            stderr=errors,
            timeout=seconds,
            check=False,
            start_new_session=True,  # Ctrl-C in our terminal is not meant for it
        )
    except (OSError, ValueError) as error:
        return f"{_name(command)}: {error}"
    except subprocess.TimeoutExpired:
        return f"{_name(command)}: no answer within {seconds:.0f} s"
    return f"{_name(command)}: exit {done.returncode}" if done.returncode else None


def _name(command: Sequence[bytes]) -> str:
    return command[0].decode("utf-8", "replace")
