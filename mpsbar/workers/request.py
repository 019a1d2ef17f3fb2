"""One worker asked some things on a connection of its own; whatever happens is an answer."""

import selectors
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mpsbar.agent import places, protocol
from mpsbar.core.actions import FreeState, TensorGroup, Tensors
from mpsbar.workers.connection import Connection, Refused
from mpsbar.workers.parse import parse_count, parse_text

# The agent itself gives up waiting after 5 s; a release that runs is answered when it ends.
ASK_SECONDS = 30.0
_MOST_GROUPS = 50
_NAMES = ("device", "dtype", "shape")


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
        import psutil  # here: most answers come, and it takes a tenth of what `mpsbar status` does

        state: FreeState = "failed" if psutil.pid_exists(pid) else "gone"
        return NoAnswer(state, error=parse_text(problem))
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


def find_tensors(pid: int, gpu_client: bool | None = None, seconds: float = ASK_SECONDS) -> Tensors:
    """Never raises: whatever happens is an outcome."""
    told = ask_worker(pid, ("tensors",), gpu_client, seconds)
    if isinstance(told, NoAnswer):
        return Tensors(pid, told.state, error=told.error)
    return parse_tensors(pid, told[0])


def parse_tensors(pid: int, answer: Any) -> Tensors:
    """Nothing an agent says is trusted. Pure."""
    if not isinstance(answer, dict):
        return Tensors(pid, "failed", error="the agent gave no answer")
    if answer.get("state") != "done":
        return _parse_refusal(pid, answer)
    groups = answer.get("groups")
    others = answer.get("others")
    unseen = answer.get("not_visible")
    unseen = list(unseen.items())[:10] if isinstance(unseen, dict) else []
    return Tensors(
        pid,
        "done",
        groups=tuple(_parse_groups(groups if isinstance(groups, list) else [])),
        others=parse_count(others.get("bytes")) if isinstance(others, dict) else None,
        not_visible={
            parse_text(name): size
            for name, told in unseen
            if (size := parse_count(told)) is not None
        },
        cut_short=answer.get("cut_short") is True,
    )


def _parse_refusal(pid: int, answer: dict[str, Any]) -> Tensors:
    reason = answer.get("reason")
    reason = reason if isinstance(reason, dict) else {}
    return Tensors(
        pid,
        "busy" if answer.get("state") == "busy" else "failed",
        reason=parse_text(reason["code"]) if "code" in reason else None,
        where=parse_text(reason["where"]) if reason.get("where") else None,
        error=parse_text(answer["error"]) if answer.get("error") else None,
    )


def _parse_groups(told: list[Any]) -> Iterator[TensorGroup]:
    for group in told[:_MOST_GROUPS]:
        if not isinstance(group, dict):
            continue
        count, size = parse_count(group.get("count")), parse_count(group.get("bytes"))
        if count is not None and size is not None:
            device, dtype, shape = (parse_text(group.get(k, "?")) for k in _NAMES)
            yield TensorGroup(device, dtype, shape, count, size)
