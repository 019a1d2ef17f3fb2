"""Runs a script in another Python: starts it, reads its answers, ends it with its children.

The doctor and the dtype probe run their scripts here. A crash or a hang is an answer too.
"""

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mpsbar.core.untrusted import parse_object
from mpsbar.system.ownership import NotTrustedError
from mpsbar.system.paths import is_in_app
from mpsbar.system.start_python import end_with_children, start_python

if TYPE_CHECKING:
    from importlib.abc import Traversable

_LONGEST_LINE = 1 << 18
_LONGEST_TAIL = 1 << 12
_TICK = 0.2  # how soon a cancel is noticed, and an end while somebody else keeps the pipe open

ChildAnswer = dict[str, Any]
# It may not be run because somebody else can change it; there is none; it cannot be run.
StartFailure = Literal["unsafe", "no_python", "not_python"]


@dataclass(slots=True)
class ChildProcess:
    """A running script. Its answers are lines of JSON that begin with `mark`."""

    process: "subprocess.Popen[bytes]"
    mark: bytes
    tail: bytes = b""  # the end of what it wrote to stderr
    code: int | None = None  # once it has ended
    has_hung: bool = False  # it took longer than it was allowed to
    _deadline: float = float("inf")
    _rest: bytes = b""
    _watch: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def allow(self, seconds: float) -> None:
        """Allows it to run so much longer from now on; what it was allowed before is forgotten."""
        self._deadline = time.monotonic() + seconds

    def read_answers(self) -> Iterator[list[ChildAnswer]]:
        """Yields new answers at least every fifth of a second, perhaps none, until it ends or
        hangs, which is to run longer than it was allowed to.
        """
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._watch.register(self.process.stdout, selectors.EVENT_READ, self._parse_lines)
        self._watch.register(self.process.stderr, selectors.EVENT_READ, self._keep_tail)
        while True:
            # Checked before reading: all that an ended process wrote is in the pipes by then.
            has_ended = self.process.poll() is not None
            answers: list[ChildAnswer] = []
            has_read = self._read(answers)
            yield answers
            if has_ended and not has_read:
                return
            if time.monotonic() > self._deadline:
                self.has_hung = True
                return

    def end(self) -> int:
        """Kills it with all it started, once (its pid may be used again); returns its exit code."""
        if self.code is None:
            self._watch.close()
            self.code = end_with_children(self.process)
        return self.code

    def _read(self, answers: list[ChildAnswer]) -> bool:
        """Reads what is in the pipes; returns whether that was anything."""
        if not self._watch.get_map():  # it closed its pipes and is about to end
            time.sleep(_TICK / 10)
            return False
        has_read = False
        for key, _ in self._watch.select(_TICK):
            chunk = os.read(key.fd, 1 << 16)
            if chunk:
                answers += key.data(chunk)
                has_read = True
            else:
                self._watch.unregister(key.fileobj)
        return has_read

    def _parse_lines(self, chunk: bytes) -> list[ChildAnswer]:
        """The answers in a chunk; other output is dropped as it comes, however much it is."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest if len(rest) < _LONGEST_LINE else b""
        return [
            answer
            for line in lines
            if line.startswith(self.mark) and len(line) < _LONGEST_LINE
            if (answer := parse_object(line[len(self.mark) :])) is not None
        ]

    def _keep_tail(self, chunk: bytes) -> list[ChildAnswer]:
        self.tail = (self.tail + chunk)[-_LONGEST_TAIL:]
        return []


@contextlib.contextmanager
def start_script(
    python: str, script: "Traversable", mark: str, stdin: bytes | None = None
) -> Iterator[ChildProcess]:
    """Starts a script of mpsbar that answers by means of child_answers.py."""
    from importlib import resources  # takes milliseconds, and `mpsbar status` needs no script

    # Both must be files, also where mpsbar itself is in an archive.
    with (
        resources.as_file(resources.files("mpsbar.system") / "child_answers.py") as entry,
        resources.as_file(script) as file,
        start_child(python, [str(entry), str(file)], mark, stdin) as child,
    ):
        yield child


@contextlib.contextmanager
def start_child(
    python: str, arguments: Sequence[str], mark: str, stdin: bytes | None = None
) -> Iterator[ChildProcess]:
    """Starts a Python.

    Raises NotTrustedError if it may not be started, another OSError or ValueError if it cannot.
    """
    process = start_python(
        python, arguments, build_environment(os.environ),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
    )  # fmt: skip
    child = ChildProcess(process, mark.encode())
    try:
        if stdin is not None:
            # A thread: a script that never reads would block us at a full pipe.
            threading.Thread(target=_write_stdin, args=(process, stdin), daemon=True).start()
        yield child
    finally:
        child.end()


def classify_start(error: OSError | ValueError) -> StartFailure:
    """Why a Python could not be started, by what starting it raised."""
    if isinstance(error, NotTrustedError):
        return "unsafe"
    is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    return "no_python" if is_missing else "not_python"


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Our environment, without what leads another Python to our modules or makes it a worker."""
    left_out = {"__PYVENV_LAUNCHER__"}
    if is_in_app():  # its start-up points Python at the bundle
        left_out |= {"PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE"}
    remaining = {name: value for name, value in environ.items() if name not in left_out}
    return remaining | {"MPSBAR_DISABLE": "1"}


def _write_stdin(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin as pipe:
        pipe.write(data)
