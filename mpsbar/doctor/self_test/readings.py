"""What this computer answers when mpsbar reads it, in one file to attach to an issue.

Without names, arguments and paths of processes; `mpsbar doctor --self-test --share` shows all of it
before anybody pastes it.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from mpsbar import __version__
from mpsbar.doctor.self_test.worker_trial import try_worker
from mpsbar.system import paths, this_computer
from mpsbar.system.files import replace_own_file
from mpsbar.system.platform import Computer

_T = TypeVar("_T")
_IOREG_SECONDS = 10.0


def write_readings(python: str | None = None) -> Path:
    """Read everything once and write it down. Raises OSError.

    `python` has torch; what a worker in it held and freed is written down too.
    """
    file = paths.readings_file()
    text = json.dumps(collect_readings(this_computer(), python), indent=1, default=str)
    replace_own_file(file, text.encode("utf-8", "replace"))
    return file


def collect_readings(computer: Computer, python: str | None = None) -> dict[str, Any]:
    seconds: dict[str, float] = {}

    def timed(name: str, read: Callable[[], _T]) -> _T | str:
        began = time.monotonic()
        value = _attempt(read)
        seconds[name] = round(time.monotonic() - began, 6)
        return value

    machine = timed("machine", computer.read_machine)
    pids = timed("processes", computer.list_processes)
    clients = timed("gpu clients", computer.read_gpu_clients)
    listed = pids if isinstance(pids, dict) else {}
    libraries = timed("libraries", lambda: _count_frameworks(computer, list(listed)))
    return {
        "schema": 1,
        "mpsbar": __version__,
        "python": sys.version,
        "machine": machine if isinstance(machine, str) else asdict(machine),
        "problems": [asdict(problem) for problem in computer.problems],
        "processes": len(listed) if isinstance(pids, dict) else pids,
        "frameworks": libraries,
        "gpu_clients": _describe_clients(clients),
        "worker": None if python is None else _attempt(lambda: asdict(try_worker(python))),
        "ioreg": timed("ioreg", _read_ioreg) if sys.platform == "darwin" else None,
        "kernel": timed("kernel", _read_kernel) if sys.platform == "darwin" else None,
        "seconds": seconds,
    }


def _attempt(read: Callable[[], _T]) -> _T | str:
    """Returns what was read, or why it could not be, which is what we want to know."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


def _count_frameworks(computer: Computer, pids: list[int]) -> dict[str, int]:
    """Counts the processes with each framework loaded, and those that could not be read."""
    counts: dict[str, int] = {}
    for pid in pids:
        try:
            names = list(computer.read_libraries(pid))
        except OSError as error:
            names = [type(error).__name__]
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _describe_clients(clients: Any) -> Any:
    if not isinstance(clients, dict):
        return clients
    return [[client.nanoseconds, client.has_worked] for client in clients.values()]


def _read_ioreg() -> Any:
    from mpsbar.system.macos.gpu import read_accelerators

    return hide_names(read_accelerators("/usr/sbin/ioreg", _IOREG_SECONDS))


def _read_kernel() -> Any:
    from mpsbar.system.macos.raw import read_raw

    return read_raw()


def hide_names(value: Any) -> Any:
    """The same tree without the names of the processes that use the GPU."""
    from mpsbar.system.macos.iokit_values import CREATOR  # with the rest of macOS, not on Linux

    if isinstance(value, Mapping):
        return {
            key: str(item).partition(",")[0] + ", …" if key == CREATOR else hide_names(item)
            for key, item in value.items()
        }
    return [hide_names(item) for item in value] if isinstance(value, list) else value
