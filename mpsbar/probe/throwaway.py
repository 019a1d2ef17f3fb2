"""One run of the probe's throwaway: started, listened to line by line, ended with its family."""

import contextlib
import importlib.resources
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpsbar.probe.child import MARK

_LONGEST_LINE = 1 << 18
_LONGEST_TAIL = 1 << 12
_TICK = 0.2  # how soon a death is noticed whose pipe somebody else keeps open, and a cancel
_END_SECONDS = 10.0
_SOURCES = importlib.resources.files("mpsbar.probe")

Told = dict[str, Any]


@dataclass(slots=True)
class Throwaway:
    """A running one. `tail` is the end of what it wrote to stderr."""

    process: "subprocess.Popen[bytes]"
    tail: bytes = b""
    code: int | None = None  # once it has ended
    _rest: bytes = b""
    _watch: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def listen(self) -> Iterator[list[Told]]:
        """What it said, again and again, at least every fifth of a second; ends when it is over."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._watch.register(self.process.stdout, selectors.EVENT_READ, self._hear)
        self._watch.register(self.process.stderr, selectors.EVENT_READ, self._hear_error)
        while True:
            # Asked before reading: what a dead one wrote is all in the pipes by then.
            is_dead = self.process.poll() is not None
            told: list[Told] = []
            heard = self._read(told)
            yield told
            if is_dead and not heard:
                return

    def end(self) -> int:
        """With all it started; its exit code. Once: its number may be another's afterwards."""
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

    def _read(self, told: list[Told]) -> bool:
        """Whether something was said."""
        heard = False
        for key, _ in self._watch.select(_TICK):
            chunk = os.read(key.fd, 1 << 16)
            if chunk:
                told += key.data(chunk)
                heard = True
            else:
                self._watch.unregister(key.fileobj)
        return heard

    def _hear(self, chunk: bytes) -> list[Told]:
        """Noise is dropped as it comes, however much; ours starts on a line of its own."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest if len(rest) < _LONGEST_LINE else b""
        told = []
        for line in lines:
            if line.startswith(MARK.encode()):
                with contextlib.suppress(ValueError, RecursionError):
                    told.append(json.loads(line[len(MARK) :]))
        return [one for one in told if isinstance(one, dict)]

    def _hear_error(self, chunk: bytes) -> list[Told]:
        self.tail = (self.tail + chunk)[-_LONGEST_TAIL:]
        return []


@contextlib.contextmanager
def started(python: str, plan: dict[str, Any]) -> Iterator[Throwaway]:
    """OSError or ValueError where there is nothing to start. As a file of its own, also where
    mpsbar itself lies in an archive; -B: nothing is written beside it."""
    with importlib.resources.as_file(_SOURCES / "child.py") as script:
        process = subprocess.Popen(
            [python, "-B", str(script)],
            env=build_environment(os.environ),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd="/", start_new_session=True, bufsize=0,
        )  # fmt: skip
        one = Throwaway(process)
        try:
            # A thread: one that never reads would hold us at a full pipe.
            threading.Thread(target=_hand_over, args=(process, plan), daemon=True).start()
            yield one
        finally:
            one.end()


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what would lead another Python to our own modules, or make it a worker."""
    left_out = {"__PYVENV_LAUNCHER__"}
    if getattr(sys, "frozen", None):  # the app's Python, which its start-up points at the bundle
        left_out |= {"PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE"}
    kept = {name: value for name, value in environ.items() if name not in left_out}
    return kept | {"MPSBAR_DISABLE": "1"}


def _hand_over(process: "subprocess.Popen[bytes]", plan: dict[str, Any]) -> None:
    assert process.stdin is not None
    texts = {
        name: (_SOURCES / f"{name}.py").read_text("utf-8") for name in ("operations", "checks")
    }
    with contextlib.suppress(OSError), process.stdin as pipe:
        pipe.write(json.dumps({**texts, **plan}).encode() + b"\n")
