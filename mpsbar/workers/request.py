"""Asks one worker to free its caches, list its tensors or keep a limit, on its own connection.

Nothing here raises: whatever happens is an outcome.
"""

import selectors
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mpsbar.agent import protocol, user_folders
from mpsbar.agent.conventions import ASK_SECONDS
from mpsbar.core.actions import Freed, Limited, Tensors
from mpsbar.core.errors import reason_of
from mpsbar.language import _
from mpsbar.workers.connection import NotListeningError, WorkerConnection
from mpsbar.workers.parse import (
    parse_freed,
    parse_limited,
    parse_tensors,
    parse_text,
    parse_worker,
)

_AGAIN_SECONDS = 0.05
# An agent stops at the start of its process's exit, which may take this long.
ENDING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why a worker did not answer."""

    state: Literal["gone", "ended", "silent", "refused", "failed"]
    seconds: float | None = None
    error: str | None = None


def _anybody() -> bool:
    return True


def free_worker(
    pid: int,
    gpu_client: bool | None = None,
    seconds: float = ASK_SECONDS,
    is_same: Callable[[], bool] = _anybody,
    moment_seconds: float | None = None,
    *,
    when_possible: bool = False,
) -> Freed:
    """Asks a worker to give its caches back; for `is_same` see ask_worker.

    `moment_seconds`: how long it looks for a safe moment; `when_possible`: now, or at the first
    one later.
    """
    params: dict[str, Any] = {"when_possible": True} if when_possible else {}
    if moment_seconds is not None:
        params["seconds"] = moment_seconds
    answers = ask_worker(pid, ("hello", "free", "stats"), gpu_client, seconds, is_same, params)
    if isinstance(answers, NoAnswer):
        return Freed(pid, str(pid), answers.state, seconds=answers.seconds, error=answers.error)
    hello, answer, stats = answers
    return parse_freed(parse_worker(pid, hello, stats, "live", 0.0), answer)


def cancel_free(pid: int, is_same: Callable[[], bool] = _anybody) -> Freed:
    """Ends a Free that waits. Where none does, an older agent is asked nothing: it would free."""
    answers = ask_worker(pid, ("hello", "stats"), None, ASK_SECONDS, is_same)
    if not isinstance(answers, NoAnswer):
        hello, stats = answers
        worker = parse_worker(pid, hello, stats, "live", 0.0)
        if worker.pending_free is None:
            return Freed(
                pid,
                worker.name,
                "failed",
                error=_("nothing is waiting to be freed in this process"),
            )
        answers = ask_worker(pid, ("free",), None, ASK_SECONDS, is_same, {"cancel": True})
    if isinstance(answers, NoAnswer):
        return Freed(pid, str(pid), answers.state, seconds=answers.seconds, error=answers.error)
    return Freed(pid, worker.name, "cancelled")


def limit_worker(
    pid: int,
    limit: int | None,
    gpu_client: bool | None = None,
    is_same: Callable[[], bool] = _anybody,
) -> Limited:
    """Asks a worker to keep its memory below a limit, or with None no longer to."""
    params = {"bytes": limit}
    answers = ask_worker(pid, ("hello", "limit"), gpu_client, ASK_SECONDS, is_same, params)
    if isinstance(answers, NoAnswer):
        state, error = answers.state, answers.error
        return Limited(pid, str(pid), state, limit, error=error, seconds=answers.seconds)
    hello, answer = answers
    return parse_limited(parse_worker(pid, hello, None, "live", 0.0), limit, answer)


def find_tensors(
    pid: int, gpu_client: bool | None = None, is_same: Callable[[], bool] = _anybody
) -> Tensors:
    """Asks a worker for its live tensors; for `is_same` see ask_worker."""
    answers = ask_worker(pid, ("tensors",), gpu_client, ASK_SECONDS, is_same)
    if isinstance(answers, NoAnswer):
        return Tensors(pid, answers.state, error=answers.error)
    return parse_tensors(pid, answers[0])


def ask_worker(
    pid: int,
    methods: Sequence[str],
    gpu_client: bool | None,
    seconds: float,
    is_same: Callable[[], bool] = _anybody,
    params: dict[str, Any] | None = None,
) -> list[Any] | NoAnswer:
    """Returns the answers to several methods, one after another.

    `gpu_client` is for agents that cannot find out whether their process uses the GPU. `is_same`
    tells whether the pid still belongs to the process that is meant. It is called while connected,
    and the kernel names the pid of the other end: only that process can be there.
    """
    path = dict(user_folders.list_sockets()).get(pid)
    if path is None:
        return NoAnswer("gone")
    deadline = time.monotonic() + seconds
    try:
        connection = _connect(pid, path, deadline)
    except TimeoutError:
        return NoAnswer("silent", seconds=seconds)
    except (NotListeningError, FileNotFoundError):
        return NoAnswer("gone")
    except OSError as problem:
        return NoAnswer("refused", error=parse_text(reason_of(problem)))
    hint = dict(params or {})
    if gpu_client is not None:
        hint["gpu_client"] = gpu_client
    try:
        if not is_same():
            return NoAnswer("gone")
        return [_ask(connection, method, hint, deadline) for method in methods]
    except TimeoutError:
        return NoAnswer("silent", seconds=seconds)
    except (OSError, protocol.ProtocolError) as problem:
        if has_ended(pid):
            return NoAnswer("ended")
        return NoAnswer("failed", error=parse_text(reason_of(problem)))
    finally:
        connection.close()


def _connect(pid: int, path: str, deadline: float) -> WorkerConnection:
    """Connects to a worker; raises NotListeningError if its process has ended.

    macOS also refuses while the queue of a living process is full: then this tries again.
    """
    while True:
        try:
            return WorkerConnection(path, pid)
        except NotListeningError:
            if sys.platform != "darwin" or has_ended(pid, 0.0):
                raise
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(_AGAIN_SECONDS)


def has_ended(pid: int, seconds: float = ENDING_SECONDS) -> bool:
    """Returns whether a process that closed its connection is gone or a zombie, or is so a moment
    later.
    """
    import psutil  # here: importing it takes a tenth of the time of `mpsbar status`

    deadline = time.monotonic() + seconds
    while True:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except (psutil.NoSuchProcess, FileNotFoundError):  # the latter: its pid is in use again
            return True
        except psutil.Error:
            return False
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)


def _ask(connection: WorkerConnection, method: str, params: dict[str, Any], deadline: float) -> Any:
    connection.ask(method, params)
    with selectors.DefaultSelector() as selector:
        selector.register(connection.socket, selectors.EVENT_READ)
        while True:
            connection.send()
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise TimeoutError
            for answered, result in connection.receive():
                if answered == method:
                    return result
