"""What the agent answers: who this process is, what it holds, and the jobs that take time."""

import os
import sys
from typing import Any, Optional

from . import __version__, protocol
from .backends import IN_USE, every, loaded
from .protocol import Message


def start(method: str, params: Message) -> Any:
    """A job to step until it answers. Loaded only now: most workers are never asked."""
    gpu_client = _gpu_client(params)
    if method == "free":
        from .release import Free

        return Free(gpu_client, _seconds(params, Free.SECONDS))
    from .tensors import Census

    return Census(gpu_client)


def introduce() -> Message:
    return {
        "protocol": protocol.PROTOCOL,
        "agent": __version__,
        "methods": ["hello", "stats", "free", "tensors"],
        "pid": os.getpid(),
        "parent": os.getppid(),
        "executable": sys.executable,
        "python": ".".join(map(str, sys.version_info[:3])),
        "argv": [argument[:300] for argument in getattr(sys, "orig_argv", sys.argv)[:20]],
        "frameworks": _versions(),
        "notebook": _notebook(),
    }


def describe(params: Message) -> Message:
    """Everything the allocators say, in microseconds, touching no device that is not in use."""
    gpu_client = _gpu_client(params)
    backends = {}
    for backend in every():
        state = backend.state(gpu_client)
        if state is not None:
            backends[backend.NAME] = {"framework": backend.FRAMEWORK, "state": state}
            if state == IN_USE:
                backends[backend.NAME].update(backend.stats())
    return {"frameworks": _versions(), "backends": backends}


def _versions() -> "dict[str, str]":
    found = {}
    for framework, module in (("torch", "torch"), ("mlx", "mlx.core")):
        version = getattr(loaded(module), "__version__", None)
        if version is not None:
            found[framework] = str(version)[:40]
    return found


def _notebook() -> Optional[str]:
    if "ipykernel.kernelapp" not in sys.modules:
        return None
    from .notebook import find_name

    return find_name()


def _seconds(params: Message, usual: float) -> float:
    """How long a Free may wait for its turn."""
    value = params.get("seconds")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 60:
        return usual
    return float(value)


def _gpu_client(params: Message) -> Optional[bool]:
    value = params.get("gpu_client")
    return value if isinstance(value, bool) else None
