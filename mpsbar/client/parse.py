"""From what an agent said to the model. Pure; it is someone else's process: nothing is trusted."""

from dataclasses import replace
from typing import Any

from mpsbar.model.naming import name_process
from mpsbar.model.snapshot import Backend, Worker, WorkerState
from mpsbar.model.text import printable

_COUNTERS = ("allocated", "reserved", "driver", "peak", "budget")


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
    )


def _parse_frameworks(value: Any) -> dict[str, str]:
    return {parse_text(k): parse_text(v) for k, v in list(_object(value).items())[:10]}


def parse_count(value: Any) -> int | None:
    """A number of bytes, or None: never a negative one, a float, or more than any machine has."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if good else None


def parse_seconds(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if good else None


def parse_text(value: Any) -> str:
    return printable(str(value)).strip()


def _parse_backend(name: Any, value: Any) -> Backend:
    fields = _object(value)
    return Backend(
        name=parse_text(name),
        framework=parse_text(fields.get("framework", "?")),
        state=parse_text(fields.get("state", "?")),
        **{counter: parse_count(fields.get(counter)) for counter in _COUNTERS},
    )


def _optional_text(value: Any) -> str | None:
    return parse_text(value) if isinstance(value, str) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
