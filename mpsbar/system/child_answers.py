"""What the scripts share that mpsbar runs in other Pythons: how they start, and how they answer.

`python child_answers.py SCRIPT` runs a script in any Python (3.8 and newer), which has no mpsbar.
This file puts itself among its modules under its full name, so that the script can import it. An
answer is one line of JSON after a mark; whatever else is on stdout is no answer.
"""

# ruff: noqa: E402 - sys.path is changed before anything else is imported
from __future__ import annotations

import os
import sys

# This folder is first on the path of a script; its file names must not hide other modules.
_HERE = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 - before any import
if __name__ == "__main__":
    sys.path[:] = [p for p in sys.path if os.path.realpath(p or os.curdir) != _HERE]

import json
import platform
import re
import signal
from typing import Any, Callable  # noqa: UP035 - collections.abc.Callable[…] needs 3.9.2

# What torch says: in a warning, when the CPU does it; in an error.
FALLBACK = re.compile(r"fall(ing|s)? ?back.*CPU", re.IGNORECASE | re.DOTALL)
NO_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


def take_stdout(instead: int | None = None) -> int:
    """Keep stdout for answers; what others print goes to `instead`, or is discarded."""
    wire = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY) if instead is None else instead, 1)
    return wire


def send(wire: int, mark: str, stage: str, answer: dict[str, Any]) -> None:
    """Write one line, past any replaced or buffered sys.stdout."""
    line = f"\n{mark}{json.dumps(dict(answer, stage=stage))}\n".encode()
    while line:
        line = line[os.write(wire, line) :]


def guard(ask: Callable[[], dict[str, Any]], failed: str) -> dict[str, Any]:
    """The answer of `ask`; where it raises, an answer of the state `failed` with the reason."""
    try:
        return ask()
    except BaseException as error:  # noqa: BLE001 - a SystemExit is an answer, too
        return {"state": failed, "text": describe(error)}


def describe(error: BaseException, longest: int = 600) -> str:
    """The kind of an exception and its text, on one line."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - its __str__ may fail
        text = "?"
    return " ".join(f"{type(error).__name__}: {text}".split())[:longest]


def lower_priority(last_resort_seconds: int) -> None:
    """Do not slow down a training run here; end after so many seconds if nobody else ends us.

    SIGALRM does: torch may hang, and the process that started us may have been killed.
    """
    try:
        os.nice(19)
        signal.alarm(last_resort_seconds)
    except (AttributeError, OSError, ValueError):
        pass


def read_python() -> dict[str, Any]:
    """What the results of a probe hold for.

    agent/user_folders.py names the files of results by the same values.
    """
    return {
        "python": sys.executable,
        "prefix": os.path.realpath(sys.prefix),
        "version": ".".join(map(str, sys.version_info[:3])),
        "system": platform.mac_ver()[0] or platform.release(),
        "os": "macOS" if platform.mac_ver()[0] else platform.system(),
        "fallback": os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK"),
    }


def import_torch() -> dict[str, Any]:
    import torch

    return {"version": str(torch.__version__)}


def _run_script(script: str) -> None:
    """Run a file as Python would have run it."""
    sys.modules["mpsbar.system.child_answers"] = sys.modules["__main__"]
    del sys.argv[0]
    with open(script, "rb") as file:  # noqa: PTH123 - pathlib takes long to import
        code = compile(file.read(), script, "exec", dont_inherit=True)
    exec(code, {"__name__": "__main__", "__file__": script})  # noqa: S102 - our own file


if __name__ == "__main__":
    _run_script(sys.argv[1])
