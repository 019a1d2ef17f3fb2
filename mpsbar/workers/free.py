"""Ask one worker to give its caches back."""

from typing import Any

from mpsbar.core.actions import Freed
from mpsbar.core.snapshot import Worker
from mpsbar.workers.parse import parse_count, parse_seconds, parse_text, parse_worker
from mpsbar.workers.request import ASK_SECONDS, NoAnswer, ask_worker


def free_worker(pid: int, gpu_client: bool | None = None, seconds: float = ASK_SECONDS) -> Freed:
    """Never raises: whatever happens is an outcome."""
    told = ask_worker(pid, ("hello", "free", "stats"), gpu_client, seconds)
    if isinstance(told, NoAnswer):
        return Freed(pid, str(pid), told.state, seconds=told.seconds, error=told.error)
    hello, answer, stats = told
    return parse_freed(parse_worker(pid, hello, stats, "live", 0.0), answer)


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
        collected=collected if isinstance(collected := answer.get("collected"), bool) else None,
        gui_toolkit=parse_text(toolkit) if (toolkit := answer.get("gui_toolkit")) else None,
        not_known=_names(answer.get("not_known")),
        reason=parse_text(reason["code"]) if "code" in reason else None,
        where=parse_text(reason["where"]) if reason.get("where") else None,
        error=error,
        number=parse_count(answer.get("number")),
    )


def _names(value: Any) -> tuple[str, ...]:
    return tuple(map(parse_text, value[:10])) if isinstance(value, list) else ()


def _first_error(answer: dict[str, Any]) -> str | None:
    backends = answer.get("backends")
    reports = list(backends.values()) if isinstance(backends, dict) else []
    found = [r["error"] for r in [answer, *reports] if isinstance(r, dict) and r.get("error")]
    return parse_text(found[0]) if found else None
