"""The snapshot as schema 1 for programs: every value may be null, fields are only added. Pure."""

from dataclasses import asdict
from typing import Any

from mpsbar.core.advice import advise
from mpsbar.core.counters import COUNTERS, SENT
from mpsbar.core.findings import NOT_PROBED, DtypeHealth
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.ui.text.alerts import say_reason


def build_status(snapshot: Snapshot, dtypes: DtypeHealth = NOT_PROBED) -> dict[str, Any]:
    connected = {worker.pid for worker in snapshot.workers}
    processes = snapshot.processes
    return {
        "schema": 1,
        "time": snapshot.time,
        "machine": build_machine(snapshot.machine),
        "workers": [_worker(worker) for worker in snapshot.workers],
        "processes": None
        if processes is None
        else [_process(process, process.pid in connected) for process in processes],
        "health": _health(snapshot),
        "advice": [asdict(advice) for advice in advise(snapshot, snapshot.health, dtypes.failed)],
        "dtypes": dtypes.summary,
        "problems": [asdict(problem) for problem in snapshot.problems],
        "gone": [asdict(ended) for ended in snapshot.ended],
    }


def build_machine(machine: Machine) -> dict[str, Any]:
    return asdict(machine) | {"gpu": asdict(machine.gpu)}


def _health(snapshot: Snapshot) -> dict[str, Any]:
    names = snapshot.names
    return {
        "level": snapshot.health.level,
        "reasons": [
            say_reason(reason, names.get(reason.pid or 0)) for reason in snapshot.health.reasons
        ],
        "causes": [asdict(reason) for reason in snapshot.health.reasons],
    }


def _process(process: Process, is_connected: bool) -> dict[str, Any]:
    return asdict(process) | {
        "framework": process.frameworks[0],
        "connected": is_connected,
        "is_starting": process.is_starting and not is_connected,
    }


def _worker(worker: Worker) -> dict[str, Any]:
    backend = worker.main_backend
    framework = backend.framework if backend else next(iter(worker.frameworks), None)
    outside = worker.process
    return {
        "pid": worker.pid,
        "started": outside and outside.started,
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
        **{counter.name: worker.count(counter) for counter in COUNTERS},
        "cached_is_bound": worker.cached_is_bound,
        "footprint": outside and outside.footprint,
        "footprint_kind": outside and outside.footprint_kind,
        "footprint_peak": outside and outside.footprint_peak,
        "gpu_percent": outside and outside.gpu_percent,
        "progress": worker.progress and asdict(worker.progress),
        "settings": outside and outside.settings,
        "backends": [
            {"name": b.name, "framework": b.framework, "state": b.state}
            | {counter.name: counter.read(b) for counter in SENT}
            for b in worker.backends
        ],
    }
