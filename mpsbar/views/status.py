"""`mpsbar status`: the snapshot as a table for people, or as schema 1 for programs. Pure."""

from typing import Any

from mpsbar.model.snapshot import Snapshot, Worker
from mpsbar.views import wording

_HEAD = ("PID", "NAME", "DEVICE", "HELD", "ALLOCATED", "CACHED", "PEAK", "NOTE")
_RIGHT = {"PID", "HELD", "ALLOCATED", "CACHED", "PEAK"}


def render_status(snapshot: Snapshot) -> str:
    if not snapshot.workers:
        return wording.workers_connected(0) + ". To see one: mpsbar run python train.py"
    table = [_HEAD, *(_cells(*member) for member in snapshot.families)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(_line(cells, widths) for cells in table)


def build_status(snapshot: Snapshot) -> dict[str, Any]:
    """Schema 1; every value may be null, fields are only added."""
    return {
        "schema": 1,
        "time": snapshot.time,
        "workers": [_worker(worker) for worker in snapshot.workers],
    }


def _cells(worker: Worker, is_child: bool) -> tuple[str, ...]:
    bound = "≤ " if worker.cached_is_bound else ""
    return (
        str(worker.pid),
        ("└ " if is_child else "") + wording.shorten(worker.name, 40),
        wording.device(worker),
        wording.size(worker.held),
        wording.size(worker.total(lambda backend: backend.allocated)),
        bound + wording.size(worker.cached),
        wording.size(worker.total(lambda backend: backend.peak)),
        wording.state(worker),
    )


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = [
        cell.rjust(width) if head in _RIGHT else cell.ljust(width)
        for cell, width, head in zip(cells, widths, _HEAD, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _worker(worker: Worker) -> dict[str, Any]:
    backend = worker.main_backend
    framework = backend.framework if backend else next(iter(worker.frameworks), None)
    return {
        "pid": worker.pid,
        "parent": worker.parent,
        "name": worker.name,
        "command": list(worker.command),
        "python": worker.executable,
        "python_version": worker.python,
        "framework": framework,
        "framework_version": worker.frameworks.get(framework or ""),
        "device": backend.name if backend else None,
        "state": worker.state,
        "age_s": None if worker.age is None else round(worker.age, 3),
        "agent": worker.agent,
        "allocated": worker.total(lambda b: b.allocated),
        "cached": worker.cached,
        "cached_is_bound": worker.cached_is_bound,
        "other": worker.total(lambda b: b.other),
        "reserved": worker.total(lambda b: b.reserved),
        "driver": worker.total(lambda b: b.driver),
        "peak": worker.total(lambda b: b.peak),
        "held": worker.held,
        "budget": worker.total(lambda b: b.budget),
        "backends": [
            {
                "name": b.name, "framework": b.framework, "state": b.state,
                "allocated": b.allocated, "reserved": b.reserved, "driver": b.driver,
                "peak": b.peak, "budget": b.budget,
            }
            for b in worker.backends
        ],
    }  # fmt: skip
