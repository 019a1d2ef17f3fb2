"""Runs the doctor's throwaway in somebody's Python, and makes a Device of what it said."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from mpsbar.model.device import Device
from mpsbar.probe.device import MARK
from mpsbar.probe.parse import parse_device, parse_text
from mpsbar.probe.throwaway import build_environment

# A cold torch from a slow disk, on a busy machine.
LOOK_SECONDS = 60.0
_SCRIPT = Path(__file__).with_name("device.py")
_LONGEST_LINE = 1 << 18
_LONGEST_TAIL = 1 << 12
_MOST_LINES = 32
_TICK = 0.2  # how soon a death is noticed whose pipe somebody else keeps open, and a stop


@dataclass(slots=True)
class _Told:
    """What it said until now: marked lines of stdout, the end of stderr."""

    lines: list[bytes] = field(default_factory=list)
    rest: bytes = b""
    tail: bytes = b""

    def hear(self, chunk: bytes) -> None:
        """Noise is dropped as it comes, however much; ours starts on a line of its own."""
        *lines, rest = (self.rest + chunk).split(b"\n")
        mark = MARK.encode()
        ours = [line for line in lines if line.startswith(mark)]
        self.lines += ours[: _MOST_LINES - len(self.lines)]
        self.rest = rest if len(rest) < _LONGEST_LINE else b""

    def hear_error(self, chunk: bytes) -> None:
        self.tail = (self.tail + chunk)[-_LONGEST_TAIL:]


def look_at(
    python: str, seconds: float = LOOK_SECONDS, stop: threading.Event | None = None
) -> Device:
    """Never raises: no such file, a crash and a hang are answers."""
    try:
        process = subprocess.Popen(
            [python, "-B", str(_SCRIPT)],
            env=build_environment(os.environ),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd="/", start_new_session=True, bufsize=0,
        )  # fmt: skip
    except (FileNotFoundError, NotADirectoryError):
        return Device(python, "no_python")
    except (OSError, ValueError) as error:
        return Device(python, "not_python", error=parse_text(error))
    told = _Told()
    try:
        is_over = _listen(process, told, time.monotonic() + seconds, stop)
    finally:
        code = _end(process)
    if stop is not None and stop.is_set():
        return Device(python, "stopped")
    return parse_device(python, told.lines, told.tail, code if is_over else None)


def _listen(
    process: "subprocess.Popen[bytes]",
    told: _Told,
    deadline: float,
    stop: threading.Event | None,
) -> bool:
    """Until it is over; False: it was not by the deadline."""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as watch:
        watch.register(process.stdout, selectors.EVENT_READ, told.hear)
        watch.register(process.stderr, selectors.EVENT_READ, told.hear_error)
        while time.monotonic() < deadline and not (stop is not None and stop.is_set()):
            # Asked before reading: what a dead one wrote is all in the pipes by then.
            is_dead = process.poll() is not None
            heard = watch.get_map() and _hear(watch)
            if is_dead and not heard:
                return True
            if not watch.get_map():  # it closed its pipes and lives on
                time.sleep(_TICK / 10)
    return False


def _hear(watch: selectors.BaseSelector) -> bool:
    """Whether something was said."""
    heard = False
    for key, _ in watch.select(_TICK):
        chunk = os.read(key.fd, 1 << 16)
        if chunk:
            key.data(chunk)
            heard = True
        else:
            watch.unregister(key.fileobj)
    return heard


def _end(process: "subprocess.Popen[bytes]") -> int:
    """With all it started; its exit code."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all gone; macOS: a zombie
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return code
