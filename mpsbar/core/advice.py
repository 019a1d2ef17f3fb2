"""Advice on what to do next, as data, the most useful first. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mpsbar.core.findings import Advice, Health, Value
from mpsbar.core.machine import Process
from mpsbar.core.naming import kind_of
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.torch_facts import (
    CURRENT,
    RAISES_ON_MPS,
    is_fallback_on,
    package_for,
    parse_release,
)
from mpsbar.core.trends import metal_held
from mpsbar.core.verdicts import END_KINDS, EndVerdict

MAX_ADVICE = 5
_SHORT_OF_MEMORY = {
    "pressure", "memory_filling", "gpu_filling", "process_memory", "gpu_memory", "swap_growing",
    "swap_used",
}  # fmt: skip
# Bytes of cache that are worth a pause of the process once memory is short.
WORTH_FREEING = 256 << 20
# Of all memory: shrinking a process that uses less would not help when memory is short.
_LARGE = 0.2
_BUSY_PERCENT = 90  # of the GPU


def advise(
    snapshot: Snapshot, health: Health, failed_dtypes: Mapping[str, int] | None = None
) -> tuple[Advice, ...]:
    """Returns the next steps, the most useful first.

    `failed_dtypes`: the number of operations in which each dtype failed or was wrong.
    """
    data = _AdviceInput(snapshot, health, failed_dtypes or {})
    steps: tuple[Callable[[_AdviceInput], Iterator[Advice]], ...] = (
        _free, _shrink, _float32, _newer_torch, _trace_leak, _fallback, _connect, _other_framework,
        _profile,
    )  # fmt: skip
    return tuple(advice for step in steps for advice in step(data))[:MAX_ADVICE]


def is_short_of_memory(health: Health) -> bool:
    return any(r.code in _SHORT_OF_MEMORY and r.level != "ok" for r in health.reasons)


@dataclass(frozen=True, slots=True)
class _AdviceInput:
    snapshot: Snapshot
    health: Health
    failed_dtypes: Mapping[str, int]

    @property
    def workers(self) -> tuple[Worker, ...]:
        return tuple(worker for worker in self.snapshot.workers if worker.state != "gone")

    @property
    def is_short(self) -> bool:
        return is_short_of_memory(self.health)

    @property
    def is_mac(self) -> bool:
        return (self.snapshot.machine.os or "").startswith("macOS")

    def blamed_pids(self, code: str) -> list[int]:
        return [r.pid for r in self.health.reasons if r.code == code and r.pid is not None]


def advise_end(verdict: EndVerdict, pid: int | None) -> tuple[Advice, ...]:
    """Returns what to do after a process ended so."""
    values: dict[str, Value] = {"signal": verdict.values.get("signal")}
    codes = (*END_KINDS[verdict.code].advice, *_advise_by_evidence(verdict))
    steps = [Advice(code, values, pid) for code in codes]
    torch = str(verdict.values.get("torch", ""))
    release = parse_release(torch)
    if release is not None and release < RAISES_ON_MPS:
        steps.append(Advice("torch_that_raises", {"version": torch}, pid))
    return tuple(steps[:MAX_ADVICE])


def _advise_by_evidence(verdict: EndVerdict) -> tuple[str, ...]:
    """Returns the advice that follows from more than the code of the verdict."""
    text = str(verdict.values.get("text", ""))
    if verdict.code == "out_of_memory":
        return ("watermark",) if "MPS backend" in text else ()
    if verdict.code == "exception":
        return _advise_exception(text)
    return _advise_crash(verdict) if verdict.code == "crashed" else ()


def _advise_exception(text: str) -> tuple[str, ...]:
    """Returns advice from what torch says of an operation or a dtype that MPS lacks."""
    if "MPS" in text and ("float64" in text or "complex128" in text):
        return ("float32_on_mps",)
    if "implemented for the MPS device" in text:
        return ("fallback_to_cpu", "newer_framework")
    return ()


def _advise_crash(verdict: EndVerdict) -> tuple[str, ...]:
    """Returns advice for Metal's own graphs, which abort on dtypes that they cannot mix."""
    words = f"{verdict.values.get('library', '')} {verdict.values.get('sentence', '')}"
    return ("try_float32",) if "MPS" in words or "MetalPerformanceShaders" in words else ()


def _free(data: _AdviceInput) -> Iterator[Advice]:
    blamed = data.blamed_pids("cache")
    candidates = [
        worker
        for worker in data.workers
        if worker.cached and (not worker.methods or "free" in worker.methods)
        if worker.pending_free is None  # it is asked already
        if worker.pid in blamed or (data.is_short and worker.cached >= WORTH_FREEING)
    ]
    # One that was busy may be busy again: only a request that waits is worth its while.
    was_busy = [
        worker for worker in candidates if worker.last_free and worker.last_free.state == "busy"
    ]
    for worker in was_busy:
        if worker.last_free is None or not worker.last_free.may_come_later:
            continue
        yield Advice("free_when_possible", {"cached": worker.cached}, worker.pid)
    worth = [(worker.cached or 0, worker.pid) for worker in candidates if worker not in was_busy]
    if len(worth) == 1:
        yield Advice("free_cache", {"cached": worth[0][0]}, worth[0][1])
    elif worth:
        yield Advice("free_all", {"cached": sum(size for size, _ in worth), "number": len(worth)})


def _shrink(data: _AdviceInput) -> Iterator[Advice]:
    pid = next(iter(data.blamed_pids("process_memory")), None)
    if pid is None and data.is_short:
        pid = _largest(data)
    if pid is not None:
        yield Advice("smaller_batch", pid=pid)
        yield Advice("shorter_input", pid=pid)


def _largest(data: _AdviceInput) -> int | None:
    used = {process.pid: process.footprint or 0 for process in data.snapshot.unconnected}
    for worker in data.workers:
        footprint = worker.process.footprint if worker.process else None
        used[worker.pid] = max(footprint or 0, metal_held(worker) or 0)
    pid = max(used, key=lambda pid: used[pid], default=None)
    least = _LARGE * (data.snapshot.machine.memory_total or 0)
    return pid if pid is not None and used[pid] > least else None


def _float32(data: _AdviceInput) -> Iterator[Advice]:
    failed = {d: n for d, n in sorted(data.failed_dtypes.items()) if n and d != "float32"}
    if failed:
        values: dict[str, Value] = {"dtypes": ", ".join(failed), "operations": sum(failed.values())}
        yield Advice("float32", values)


def _newer_torch(data: _AdviceInput) -> Iterator[Advice]:
    macos = data.snapshot.machine.os_version
    old = [
        (version, worker.pid, worker, package)
        for worker in data.workers
        if _may_use_mps(worker)
        if (version := parse_release(worker.frameworks.get("torch"))) and version < CURRENT
        if (package := package_for(macos, parse_release(worker.python)))
    ]
    if not old:
        return
    _, _, worker, package = min(old, key=lambda entry: entry[:2])
    values: dict[str, Value] = {
        "version": worker.frameworks["torch"], "python": worker.executable, "package": package,
    }  # fmt: skip
    yield Advice("newer_torch", values, worker.pid)


def _may_use_mps(worker: Worker) -> bool:
    return any(b.name == "mps" and b.state in ("in use", "not known") for b in worker.backends)


def _trace_leak(data: _AdviceInput) -> Iterator[Advice]:
    for pid in data.blamed_pids("leak")[:1]:
        if data.is_mac:
            yield Advice("instruments", {"why": "leak"}, pid)
            yield Advice("activity_monitor", {"why": "leak"}, pid)
        yield Advice("torch_profiler", {"why": "leak"}, pid)


def _fallback(data: _AdviceInput) -> Iterator[Advice]:
    for process in _mps_processes(data):
        if is_fallback_on(process.settings):
            yield Advice("fallback_on", pid=process.pid)
            return


def _mps_processes(data: _AdviceInput) -> Iterator[Process]:
    for worker in data.workers:
        if worker.process is not None and _may_use_mps(worker):
            yield worker.process
    for process in data.snapshot.unconnected:
        if process.gpu_client and "torch" in process.frameworks:
            yield process


def _connect(data: _AdviceInput) -> Iterator[Advice]:
    """Advises to connect the largest process that is not connected.

    Children of a worker are connected with it, and only a Python can run an agent.
    """
    workers = {worker.pid for worker in data.workers}
    unconnected = [
        p
        for p in data.snapshot.unconnected
        if p.python and p.parent not in workers and not p.is_enabled
    ]
    if unconnected:
        process = max(unconnected, key=lambda p: (p.footprint or 0, -p.pid))
        kind = kind_of(process.name)
        values: dict[str, Value] = {
            "python": process.python, "kind": kind, "number": len(unconnected),
        }  # fmt: skip
        yield Advice("connect", values, process.pid)


def _other_framework(data: _AdviceInput) -> Iterator[Advice]:
    for process in _mps_processes(data):
        if kind_of(process.name) == "server":
            yield Advice("core_ml_or_mlx", pid=process.pid)
            return


def _profile(data: _AdviceInput) -> Iterator[Advice]:
    """Names tools that show where the time goes, if nothing is wrong but the GPU is busy."""
    busy = data.snapshot.machine.gpu.utilization
    if data.health.level != "ok" or busy is None or busy < _BUSY_PERCENT:
        return
    processes = sorted(_mps_processes(data), key=lambda p: -(p.gpu_percent or 0))
    for process in processes[:1]:
        yield Advice("torch_profiler", {"why": "speed"}, process.pid)
        if data.is_mac:
            yield Advice("activity_monitor", {"why": "speed"}, process.pid)
            yield Advice("instruments", {"why": "speed"}, process.pid)
