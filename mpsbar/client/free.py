"""Ask one worker to give its caches back, on a connection of its own."""

import os
import selectors
import time
from typing import Any

from mpsbar.agent import places, protocol
from mpsbar.client.connection import Connection, Refused
from mpsbar.client.parse import parse_count, parse_seconds, parse_text, parse_worker
from mpsbar.model.action import Freed
from mpsbar.model.snapshot import Worker

# The agent itself gives up waiting after 5 s; a release that runs is answered when it ends.
FREE_SECONDS = 30.0


def free_worker(pid: int, gpu_client: bool | None = None, seconds: float = FREE_SECONDS) -> Freed:
    """Never raises: whatever happens is an outcome."""
    path = dict(places.list_sockets()).get(pid)
    if path is None:
        return Freed(pid, str(pid), "gone")
    try:
        connection = Connection(path)
    except (Refused, FileNotFoundError):
        return Freed(pid, str(pid), "gone")
    except OSError as problem:
        return Freed(pid, str(pid), "refused", error=parse_text(problem.strerror or problem))
    try:
        return _free(connection, pid, gpu_client, time.monotonic() + seconds)
    except TimeoutError:
        return Freed(pid, str(pid), "silent", seconds=seconds)
    except (OSError, protocol.ProtocolError) as problem:
        return Freed(
            pid, str(pid), "failed" if _is_alive(pid) else "gone", error=parse_text(problem)
        )
    finally:
        connection.close()


def _free(connection: Connection, pid: int, gpu_client: bool | None, deadline: float) -> Freed:
    hint = {} if gpu_client is None else {"gpu_client": gpu_client}
    hello = _ask(connection, "hello", {}, deadline)
    answer = _ask(connection, "free", hint, deadline)
    stats = _ask(connection, "stats", hint, deadline)
    worker = parse_worker(pid, hello, stats, "live", 0.0)
    return parse_freed(worker, answer)


def parse_freed(worker: Worker, answer: Any) -> Freed:
    """The outcome from the agent's answer and the worker as it is afterwards. Pure."""
    if not isinstance(answer, dict):
        return Freed(worker.pid, worker.name, "failed", error="the agent gave no answer")
    reason = answer.get("reason")
    reason = reason if isinstance(reason, dict) else {}
    error = _first_error(answer)
    busy = answer.get("state") == "busy"
    return Freed(
        pid=worker.pid,
        name=worker.name,
        state="busy" if busy else "failed" if error else "done",
        freed=parse_count(answer.get("freed")),
        seconds=parse_seconds(answer.get("seconds")),
        pinned=None if busy or worker.cached_is_bound else worker.cached,
        reason=parse_text(reason["code"]) if "code" in reason else None,
        where=parse_text(reason["where"]) if reason.get("where") else None,
        error=error,
    )


def _first_error(answer: dict[str, Any]) -> str | None:
    backends = answer.get("backends")
    reports = list(backends.values()) if isinstance(backends, dict) else []
    found = [r["error"] for r in [answer, *reports] if isinstance(r, dict) and r.get("error")]
    return parse_text(found[0]) if found else None


def _ask(connection: Connection, method: str, params: dict[str, Any], deadline: float) -> Any:
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


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
