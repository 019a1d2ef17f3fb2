"""Children of the benchmarks: started with code, ended by pid."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN_DIR = "MPSBAR_RUN_DIR"
# Else the agent would answer most of many Frees with its last result.
UNPACED = "import mpsbar.agent.pacing as p; p.PAUSES_AT_ONCE_SECONDS = 1e9\n"


@contextmanager
def running(code: str, number: int = 1, **extra: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """`number` processes with this code, all attached."""
    started = [
        subprocess.Popen([sys.executable, "-c", UNPACED + code], env=os.environ | extra)
        for _ in range(number)
    ]
    try:
        run_dir = Path(os.environ[RUN_DIR])
        while not all((run_dir / f"{child.pid}.sock").exists() for child in started):
            if any(child.poll() is not None for child in started):
                raise SystemExit("bench: a child ended before it attached")
            time.sleep(0.05)
        yield started
    finally:
        for child in started:
            child.kill()
        for child in started:
            child.wait()
