"""What scripts share that mpsbar runs in other Pythons: their start, questions to torch, answers.

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

import importlib.util
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
    """Reads what identifies this Python and its system: a probe's result holds for these.

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


def find_torch() -> dict[str, Any]:
    """Finds the file of torch without importing it."""
    spec = importlib.util.find_spec("torch")
    is_found = spec is not None and spec.origin is not None  # a stray folder has no origin
    return {"found": is_found, "file": spec.origin if spec is not None else None}


def import_torch() -> dict[str, Any]:
    import torch

    return {"version": str(torch.__version__)}


def get_nested(value: Any, path: str) -> Any:
    """Returns torch.version.cuda for "version.cuda"; None where a part of the path is missing."""
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def start_device(torch: Any, wanted: str) -> str | None:
    """Starts the wanted device, for "auto" the first there is; returns None if it is not there."""
    available = {
        "cuda": _is_available(torch, "cuda"),
        "mps": _is_available(torch, "backends.mps"),
        "cpu": True,
    }
    device = next(name for name in available if available[name]) if wanted == "auto" else wanted
    if not available.get(device):
        return None
    torch.set_num_threads(1)  # use one core at most, which is also faster for small tensors
    torch.set_warn_always(True)  # otherwise torch warns of the first fallback only
    torch.ones(1, device=device).sum().item()
    return device


def _is_available(torch: Any, place: str) -> bool:
    """Returns False also for an old torch that knows nothing of this kind of device."""
    is_available = get_nested(torch, f"{place}.is_available")
    return is_available is not None and bool(is_available())


def read_device_name(torch: Any, device: str) -> str | None:
    try:
        if device == "mps":
            return str(torch.backends.mps.get_name())
        return str(torch.cuda.get_device_name()) if device == "cuda" else None
    except Exception:  # noqa: BLE001 - only a name
        return None


def read_claimed_dtypes(torch: Any) -> list[str] | None:
    """Reads the dtypes that torch claims to support (2.10 and later, on MPS 2.12); else None."""
    read = get_nested(torch, "accelerator.get_device_capability")
    names = None if read is None else read().get("supported_dtypes")
    return None if names is None else sorted(str(name).replace("torch.", "") for name in names)


def read_gpu_memory(torch: Any, device: str) -> int:
    """Reads the bytes that torch has taken of a GPU's memory for this process."""
    if device == "mps":
        return int(torch.mps.driver_allocated_memory())
    return int(torch.cuda.memory_reserved())


def limit_mps_memory(torch: Any, ceiling: int) -> None:
    """Has torch refuse to take more than `ceiling` bytes of MPS's memory."""
    whole = torch.mps.recommended_max_memory()
    torch.mps.set_per_process_memory_fraction(min(2.0, ceiling / whole))


def _run_script(script: str) -> None:
    """Run a file as Python would have run it."""
    sys.modules["mpsbar.system.child_answers"] = sys.modules["__main__"]
    del sys.argv[0]
    with open(script, "rb") as file:  # noqa: PTH123 - pathlib takes long to import
        code = compile(file.read(), script, "exec", dont_inherit=True)
    exec(code, {"__name__": "__main__", "__file__": script})  # noqa: S102 - our own file


if __name__ == "__main__":
    _run_script(sys.argv[1])
