"""A screen in memory, for programs with windows."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


def why_no_screen() -> str | None:
    return None if shutil.which("Xvfb") else "no Xvfb on this machine"


@contextmanager
def start_screen() -> Iterator[str]:
    """An X server on a free number, for this machine's own processes only; yields its DISPLAY."""
    read, write = os.pipe()
    screen = ["-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"]
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), *screen], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    try:
        with os.fdopen(read) as file:
            number = file.readline().strip()
        assert number, "Xvfb ended at its start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()
