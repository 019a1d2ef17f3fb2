"""The accelerators by the command ioreg: for when IOKit cannot be used in-process."""

import os
import plistlib
import selectors
import subprocess
import time
from contextlib import suppress
from typing import IO, Any

from mpsbar.system.macos.accelerator import Properties

# The node and its children, with all properties, as a property list.
ARGUMENTS = ("-a", "-l", "-r", "-d", "2", "-w", "0", "-c", "IOAccelerator")
INTERVAL = 30.0
SECONDS = 5.0
_MOST = 16 << 20


def read_accelerators(ioreg: str, seconds: float) -> list[Properties]:
    """Raises OSError."""
    command = [ioreg, *ARGUMENTS]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LC_ALL": "C"},
    )
    assert child.stdout is not None
    deadline = time.monotonic() + seconds
    try:
        output = _read_all(child.stdout, deadline)
        with suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, deadline - time.monotonic()))
    finally:
        child.kill()
        child.stdout.close()
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
    if not output and (child.returncode or 0) > 0:
        raise OSError(f"ioreg: exit code {child.returncode}")
    return parse_accelerators(output)


def parse_accelerators(output: bytes) -> list[Properties]:
    """Nothing at all is what it prints where there is no accelerator."""
    if not output.strip():
        return []
    try:
        tree: Any = plistlib.loads(output)
    except Exception as error:  # noqa: BLE001 - plistlib fails in many ways on what is no list
        raise OSError(f"ioreg: {type(error).__name__}: {error}") from None
    if not isinstance(tree, list):
        raise OSError(f"ioreg: a {type(tree).__name__} instead of a list")
    return [entry for entry in tree if isinstance(entry, dict)]


def _read_all(pipe: IO[bytes], deadline: float) -> bytes:
    parts: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while sum(map(len, parts)) <= _MOST:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError("ioreg does not answer")
            part = os.read(pipe.fileno(), 1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
    raise OSError("ioreg does not end")
