"""From what an agent said to the model. Pure; it is someone else's process: nothing is trusted."""

from dataclasses import replace
from typing import Any

from mpsbar.core.counters import SENT, Backend
from mpsbar.core.naming import name_process, printable
from mpsbar.core.snapshot import LastFree, Worker, WorkerState

_FREE_STATES = ("done", "busy", "failed")


def parse_worker(pid: int, hello: Any, stats: Any, state: WorkerState, age: float | None) -> Worker:
    return parse_stats(parse_hello(pid, hello), stats, state, age)


def parse_hello(pid: int, hello: Any) -> Worker:
    """Who it is; asked once for each connection."""
    hello = _object(hello)
    argv = hello.get("argv")
    command = tuple(map(parse_text, argv[:20])) if isinstance(argv, list) else ()
    methods = hello.get("methods")
    notebook = _optional_text(hello.get("notebook"))
    return Worker(
        pid=pid,
        name=name_process(command, notebook) if command else f"process {pid}",
        state="busy",
        age=None,
        command=command,
        python=_optional_text(hello.get("python")),
        executable=_optional_text(hello.get("executable")),
        parent=parse_count(hello.get("parent")),
        agent=_optional_text(hello.get("agent")),
        methods=frozenset(map(parse_text, methods[:20] if isinstance(methods, list) else ())),
        frameworks=_parse_frameworks(hello.get("frameworks")),
    )


def parse_stats(worker: Worker, stats: Any, state: WorkerState, age: float | None) -> Worker:
    """The same with what it holds; asked at every look."""
    stats = _object(stats)
    return replace(
        worker,
        state=state,
        age=age,
        frameworks=_parse_frameworks(stats.get("frameworks")) or worker.frameworks,
        backends=tuple(
            _parse_backend(name, value)
            for name, value in list(_object(stats.get("backends")).items())[:10]
        ),
        last_free=_parse_last_free(stats.get("last_free")),
    )


def _parse_last_free(value: Any) -> LastFree | None:
    fields = _object(value)
    number, when = parse_count(fields.get("number")), parse_time(fields.get("time"))
    state = fields.get("state")
    if number is None or when is None or state not in _FREE_STATES:
        return None
    freed, seconds = parse_count(fields.get("freed")), parse_seconds(fields.get("seconds"))
    return LastFree(number, when, state, freed, seconds)


def _parse_frameworks(value: Any) -> dict[str, str]:
    return {parse_text(k): parse_text(v) for k, v in list(_object(value).items())[:10]}


def parse_count(value: Any) -> int | None:
    """A number of bytes, or None: never a negative one, a float, or more than any machine has."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if good else None


def parse_seconds(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if good else None


def parse_time(value: Any) -> float | None:
    """Seconds since the epoch, until the year 5138."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11
    return float(value) if good else None


def parse_text(value: Any) -> str:
    return printable(str(value)).strip()


def _parse_backend(name: Any, value: Any) -> Backend:
    fields = _object(value)
    return Backend(
        name=parse_text(name),
        framework=parse_text(fields.get("framework", "?")),
        state=parse_text(fields.get("state", "?")),
        **{counter.name: parse_count(fields.get(counter.name)) for counter in SENT},
    )


def _optional_text(value: Any) -> str | None:
    return parse_text(value) if isinstance(value, str) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
