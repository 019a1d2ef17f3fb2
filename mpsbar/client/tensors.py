"""Ask one worker which live tensors it has."""

from collections.abc import Iterator
from typing import Any

from mpsbar.client.ask import ASK_SECONDS, NoAnswer, ask_worker
from mpsbar.client.parse import parse_count, parse_text
from mpsbar.model.action import TensorGroup, Tensors

_MOST_GROUPS = 50
_NAMES = ("device", "dtype", "shape")


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
