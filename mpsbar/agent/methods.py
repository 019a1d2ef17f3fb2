"""The methods a monitor may call: hello, stats, and the jobs: free, tensors and limit."""

import ctypes
import os
import sys
from typing import Any, Optional

from . import __version__, last_words, protocol
from .backends import IN_USE, loaded
from .conventions import WHEN_POSSIBLE_SECONDS
from .frameworks import FRAMEWORKS
from .free import FreeJob, read_last_free, remember
from .gc_pause import CollectorPause
from .import_backends import BACKENDS
from .limit import LimitJob, parse_limit
from .notebook import find_name
from .pending_free import MAX_SECONDS, PendingFree, describe_pending, start_pending
from .progress.optimizer_steps import count_steps
from .progress.reader import ProgressReader
from .protocol import Message
from .tensors import TensorCensus

JOBS = ("free", "tensors", "limit")
JobIdentity = tuple[str, Optional[int]]  # the method, and for a limit the bytes


def _read_command() -> "list[str]":
    """Reads how this Python was started, also before 3.10: sys.argv lacks options and -m."""
    if sys.version_info >= (3, 10):
        return sys.orig_argv
    count, arguments = ctypes.c_int(), ctypes.POINTER(ctypes.c_wchar_p)()
    ctypes.pythonapi.Py_GetArgcArgv(ctypes.byref(count), ctypes.byref(arguments))
    return [arguments[index] or "" for index in range(count.value)]


_COMMAND = _read_command()
_progress = ProgressReader()


def start_job(method: str, params: Message, pause: CollectorPause) -> Any:
    """Returns a job to step until it answers. ProtocolError: such a job cannot be asked for."""
    gpu_client = _gpu_client(params)
    if method == "free":
        return FreeJob(gpu_client, _seconds(params, FreeJob.SECONDS), pause)
    if method == "limit":
        seconds = _seconds(params, LimitJob.SECONDS)
        return LimitJob(gpu_client, identify_job(method, params)[1], seconds, pause)
    return TensorCensus(gpu_client, pause)


def identify_job(method: str, params: Message) -> JobIdentity:
    """Returns what is equal for requests that share a job: those for another limit do not."""
    if method != "limit":
        return method, None
    try:
        return method, parse_limit(params)
    except ValueError as problem:
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, str(problem)) from None


def start_pending_free(params: Message) -> PendingFree:
    """Keeps a Free until a safe moment comes."""
    return start_pending(_gpu_client(params), _seconds(params, WHEN_POSSIBLE_SECONDS, MAX_SECONDS))


def start_attempt(pending: PendingFree, seconds: float, pause: CollectorPause) -> FreeJob:
    job = FreeJob(pending.gpu_client, seconds, pause)
    job.is_attempt = True
    return job


def remember_expired(seconds: float) -> int:
    """Stores the answer for a pending Free that has found no safe moment in its time."""
    return remember("busy", 0, seconds, was_pending=True)


def remember_never(answer: Message) -> int:
    """Stores the answer for a pending Free that can never run."""
    code = answer["reason"]["code"]
    return remember("busy", answer["freed"], answer["seconds"], was_pending=True, reason=code)


def hello() -> Message:
    """Says who this process is."""
    return {
        "protocol": protocol.PROTOCOL,
        "agent": __version__,
        "methods": ["hello", "stats", *JOBS],
        "pid": os.getpid(),
        "parent": os.getppid(),
        "executable": sys.executable,
        "python": ".".join(map(str, sys.version_info[:3])),
        "argv": [argument[:300] for argument in _COMMAND[:20]],
        "frameworks": _versions(),
        "notebook": find_name(),
        "last_words": last_words.is_on(),
    }


def stats(params: Message) -> Message:
    """Returns all that the allocators say, in microseconds; touches no device not in use."""
    gpu_client = _gpu_client(params)
    backends = {}
    for backend in BACKENDS:
        state = backend.state(gpu_client)
        if state is not None:
            backends[backend.NAME] = {"framework": backend.FRAMEWORK, "state": state}
            if state == IN_USE:
                backends[backend.NAME].update(backend.stats())
    count_steps(is_early=False)
    return {
        "frameworks": _versions(),
        "backends": backends,
        "last_free": read_last_free(),
        "progress": _progress.read(),
        "kept_free": describe_pending(),
        "fallbacks": _count_fallbacks(),
    }


def _count_fallbacks() -> "Optional[int]":
    """Counts with `mpsbar run --explain`; without it that module is not imported."""
    fallbacks = sys.modules.get(f"{__package__}.fallbacks")
    return None if fallbacks is None else fallbacks.read_total()


def _versions() -> "dict[str, str]":
    versions = {}
    for framework in FRAMEWORKS:
        version = getattr(loaded(framework.module), "__version__", None)
        if version is not None:
            versions[framework.name] = str(version)[:40]
    return versions


def _seconds(params: Message, usual: float, most: float = 60.0) -> float:
    """Returns how long a Free may wait for a safe moment."""
    value = params.get("seconds")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        return usual
    return float(value)


def _gpu_client(params: Message) -> Optional[bool]:
    value = params.get("gpu_client")
    return value if isinstance(value, bool) else None
