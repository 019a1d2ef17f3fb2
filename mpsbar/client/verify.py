"""Start an enabled Python once and see whether its agent answers."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from mpsbar.client.connection import Connection, Refused
from mpsbar.client.environment import ASK_SECONDS, Environment

_CODE = """
import sys
if any(hasattr(finder, "watches_for_mpsbar") for finder in sys.meta_path):
    import _mpsbar_start
    _mpsbar_start.Finder(None).start()  # as if torch had been imported
    sys.stdin.read()
"""


def read_answer(environment: Environment, environ: dict[str, str]) -> str | None:
    """The version of the agent that answered, None if none did."""
    folder = Path(tempfile.mkdtemp(prefix="mpsbar-"))
    clean = {k: v for k, v in environ.items() if k not in ("MPSBAR_DISABLE", "PYTHONPATH")}
    process = subprocess.Popen(
        [environment.python, "-B", "-c", _CODE],
        env=clean | {"MPSBAR_RUN_DIR": str(folder / "run")},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return _wait(folder / "run", process, time.monotonic() + ASK_SECONDS)
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(run_dir: Path, process: "subprocess.Popen[bytes]", deadline: float) -> str | None:
    while time.monotonic() < deadline and process.poll() is None:
        for path in run_dir.glob("*.sock"):
            hello = _ask(path, deadline)
            return str(hello["agent"]) if isinstance(hello, dict) and "agent" in hello else None
        time.sleep(0.02)
    return None


def _ask(path: Path, deadline: float) -> Any:
    try:
        connection = Connection(str(path))
    except (OSError, Refused):
        return None
    try:
        connection.ask("hello")
        while time.monotonic() < deadline:
            connection.send()
            if answers := connection.receive():
                return answers[0][1]
            time.sleep(0.01)
    except OSError:
        pass
    finally:
        connection.close()
    return None
