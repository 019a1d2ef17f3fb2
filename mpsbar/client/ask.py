"""One worker asked some things on a connection of its own; whatever happens is an answer."""

import os
import selectors
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpsbar.agent import places, protocol
from mpsbar.client.connection import Connection, Refused
from mpsbar.client.parse import parse_text
from mpsbar.model.action import FreeState

# The agent itself gives up waiting after 5 s; a release that runs is answered when it ends.
ASK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class NoAnswer:
    state: FreeState
    seconds: float | None = None
    error: str | None = None


def ask_worker(
    pid: int, methods: Sequence[str], gpu_client: bool | None, seconds: float
) -> list[Any] | NoAnswer:
    """What it answers to each, one after the other. Never raises.

    `gpu_client` is for agents that cannot tell by themselves whether their process uses the GPU.
    """
    path = dict(places.list_sockets()).get(pid)
    if path is None:
        return NoAnswer("gone")
    try:
        connection = Connection(path)
    except (Refused, FileNotFoundError):
        return NoAnswer("gone")
    except OSError as problem:
        return NoAnswer("refused", error=parse_text(problem.strerror or problem))
    hint = {} if gpu_client is None else {"gpu_client": gpu_client}
    deadline = time.monotonic() + seconds
    try:
        return [_ask(connection, method, hint, deadline) for method in methods]
    except TimeoutError:
        return NoAnswer("silent", seconds=seconds)
    except (OSError, protocol.ProtocolError) as problem:
        return NoAnswer("failed" if _is_alive(pid) else "gone", error=parse_text(problem))
    finally:
        connection.close()


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
