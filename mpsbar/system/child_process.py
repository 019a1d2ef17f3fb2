"""Runs a throwaway Python: starts it, reads what it says line by line, ends it with its children.

The doctor and the dtype probe run their scripts here. A crash or a hang is an answer.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpsbar.system.paths import is_in_app
from mpsbar.system.start_python import start_python

_LONGEST_LINE = 1 << 18
_LONGEST_TAIL = 1 << 12
_TICK = 0.2  # how soon a death is noticed whose pipe somebody else keeps open, and a cancel
_END_SECONDS = 10.0

ChildAnswer = dict[str, Any]


@dataclass(slots=True)
class ChildProcess:
    """A running throwaway. Its answers are lines of JSON that begin with `mark`."""

    process: "subprocess.Popen[bytes]"
    mark: bytes
    tail: bytes = b""  # the end of what it wrote to stderr
    code: int | None = None  # once it has ended
    _rest: bytes = b""
    _watch: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def listen(self) -> Iterator[list[ChildAnswer]]:
        """New answers, again and again, at least every fifth of a second; ends when it is over."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._watch.register(self.process.stdout, selectors.EVENT_READ, self._hear)
        self._watch.register(self.process.stderr, selectors.EVENT_READ, self._hear_error)
        while True:
            # Asked before reading: what a dead one wrote is all in the pipes by then.
            is_dead = self.process.poll() is not None
            answers: list[ChildAnswer] = []
            heard = self._read(answers)
            yield answers
            if is_dead and not heard:
                return

    def end(self) -> int:
        """Kill it with all it started; its exit code. Once: its pid may be another's afterwards."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # gone; macOS: a zombie
                os.killpg(self.process.pid, signal.SIGKILL)
            self.code = self._wait()
            self._watch.close()
            for pipe in (self.process.stdout, self.process.stderr):
                if pipe is not None:
                    pipe.close()
        return self.code

    def _wait(self) -> int:
        try:
            return self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # stuck in the kernel: left to itself
            return -signal.SIGKILL

    def _read(self, answers: list[ChildAnswer]) -> bool:
        """Whether something was said."""
        if not self._watch.get_map():  # it closed its pipes and lives on, most often only just
            time.sleep(_TICK / 10)
            return False
        heard = False
        for key, _ in self._watch.select(_TICK):
            chunk = os.read(key.fd, 1 << 16)
            if chunk:
                answers += key.data(chunk)
                heard = True
            else:
                self._watch.unregister(key.fileobj)
        return heard

    def _hear(self, chunk: bytes) -> list[ChildAnswer]:
        """Noise is dropped as it comes, however much; an answer starts on a line of its own."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest if len(rest) < _LONGEST_LINE else b""
        lines = [
            line for line in lines if len(line) < _LONGEST_LINE
        ]  # also if it came in one piece
        return [
            answer
            for line in lines
            if line.startswith(self.mark)
            if (answer := parse_answer(line[len(self.mark) :])) is not None
        ]

    def _hear_error(self, chunk: bytes) -> list[ChildAnswer]:
        self.tail = (self.tail + chunk)[-_LONGEST_TAIL:]
        return []


@contextlib.contextmanager
def start_child(
    python: str, arguments: Sequence[str], mark: str, stdin: bytes | None = None
) -> Iterator[ChildProcess]:
    """OSError or ValueError where there is nothing to start, NotTrusted where it may not be."""
    process = start_python(
        python, arguments, build_environment(os.environ),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
    )  # fmt: skip
    child = ChildProcess(process, mark.encode())
    try:
        if stdin is not None:
            # A thread: one that never reads would hold us at a full pipe.
            threading.Thread(target=_write_stdin, args=(process, stdin), daemon=True).start()
        yield child
    finally:
        child.end()


def parse_answer(text: bytes) -> ChildAnswer | None:
    """None for anything but one object of JSON: it is somebody's Python, and not trusted."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what would lead another Python to our own modules, or make it a worker."""
    left_out = {"__PYVENV_LAUNCHER__"}
    if is_in_app():  # its start-up points Python at the bundle
        left_out |= {"PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE"}
    kept = {name: value for name, value in environ.items() if name not in left_out}
    return kept | {"MPSBAR_DISABLE": "1"}


def _write_stdin(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin as pipe:
        pipe.write(data)
