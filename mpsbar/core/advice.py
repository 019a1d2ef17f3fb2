"""What to do next, as data, the most useful first. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mpsbar.core.findings import Advice, Health, Value
from mpsbar.core.machine import Process
from mpsbar.core.naming import kind_of
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.torch_releases import CURRENT, parse_release
from mpsbar.core.torch_settings import is_fallback_on
from mpsbar.core.trends import metal_held

MOST = 5
_SHORT_OF_MEMORY = {
    "pressure", "memory_filling", "gpu_filling", "process_memory", "gpu_memory", "swap_growing",
}  # fmt: skip
# Bytes of cache that are worth a pause of the process once memory is short.
_WORTH_FREEING = 256 << 20
# Of all memory: who has less is not whom to ask when memory is short.
_LARGE = 0.2
# Percent: a GPU that waits for nothing.
_BUSY = 90


def advise(
    snapshot: Snapshot, health: Health, failed_dtypes: Mapping[str, int] | None = None
) -> tuple[Advice, ...]:
    """`failed_dtypes`: in how many operations of the probe each dtype failed or was wrong."""
    scene = _Scene(snapshot, health, failed_dtypes or {})
    steps: tuple[Callable[[_Scene], Iterator[Advice]], ...] = (
        _free, _shrink, _float32, _newer_torch, _trace_leak, _fallback, _connect, _other_framework,
        _look_closer,
    )  # fmt: skip
    return tuple(advice for step in steps for advice in step(scene))[:MOST]


@dataclass(frozen=True, slots=True)
class _Scene:
    snapshot: Snapshot
    health: Health
    failed_dtypes: Mapping[str, int]

    @property
    def workers(self) -> tuple[Worker, ...]:
        return tuple(worker for worker in self.snapshot.workers if worker.state != "gone")

    @property
    def is_short(self) -> bool:
        return any(r.code in _SHORT_OF_MEMORY and r.level != "ok" for r in self.health.reasons)

    @property
    def is_mac(self) -> bool:
        return (self.snapshot.machine.os or "").startswith("macOS")

    def accused(self, code: str) -> list[int]:
        return [r.pid for r in self.health.reasons if r.code == code and r.pid is not None]


def _free(scene: _Scene) -> Iterator[Advice]:
    accused = scene.accused("cache")
    worth = [
        (worker.cached, worker.pid)
        for worker in scene.workers
        if worker.cached and (not worker.methods or "free" in worker.methods)
        if worker.pid in accused or (scene.is_short and worker.cached >= _WORTH_FREEING)
    ]
    if len(worth) == 1:
        yield Advice("free_cache", {"cached": worth[0][0]}, worth[0][1])
    elif worth:
        yield Advice("free_all", {"cached": sum(size for size, _ in worth), "number": len(worth)})


def _shrink(scene: _Scene) -> Iterator[Advice]:
    pid = next(iter(scene.accused("process_memory")), None)
    if pid is None and scene.is_short:
        pid = _largest(scene)
    if pid is not None:
        yield Advice("smaller_batch", pid=pid)
        yield Advice("shorter_input", pid=pid)


def _largest(scene: _Scene) -> int | None:
    used = {process.pid: process.footprint or 0 for process in scene.snapshot.unconnected}
    for worker in scene.workers:
        footprint = worker.process.footprint if worker.process else None
        used[worker.pid] = max(footprint or 0, metal_held(worker) or 0)
    pid = max(used, key=lambda pid: used[pid], default=None)
    least = _LARGE * (scene.snapshot.machine.memory_total or 0)
    return pid if pid is not None and used[pid] > least else None


def _float32(scene: _Scene) -> Iterator[Advice]:
    failed = {d: n for d, n in sorted(scene.failed_dtypes.items()) if n and d != "float32"}
    if failed:
        values: dict[str, Value] = {"dtypes": ", ".join(failed), "operations": sum(failed.values())}
        yield Advice("float32", values)


def _newer_torch(scene: _Scene) -> Iterator[Advice]:
    old = [
        (version, worker)
        for worker in scene.workers
        if _may_use_mps(worker) and _takes_good_torch(worker)
        if (version := parse_release(worker.frameworks.get("torch"))) and version < CURRENT
    ]
    macos = scene.snapshot.machine.os_version
    if not old or (macos and macos < (14,)):
        return
    _, worker = min(old, key=lambda pair: (pair[0], pair[1].pid))
    # torch 2.15 installs on macOS 14, but has no MPS there.
    package = "torch" if macos and macos >= (15,) else "torch>=2.13,<2.15"
    values: dict[str, Value] = {
        "version": worker.frameworks["torch"], "python": worker.executable, "package": package,
    }  # fmt: skip
    yield Advice("newer_torch", values, worker.pid)


def _takes_good_torch(worker: Worker) -> bool:
    """torch 2.9 and later have no wheels for Python 3.9."""
    python = parse_release(worker.python)
    return python is None or python >= (3, 10)


def _may_use_mps(worker: Worker) -> bool:
    return any(b.name == "mps" and b.state in ("in use", "not known") for b in worker.backends)


def _trace_leak(scene: _Scene) -> Iterator[Advice]:
    for pid in scene.accused("leak")[:1]:
        if scene.is_mac:
            yield Advice("instruments", {"why": "leak"}, pid)
            yield Advice("activity_monitor", {"why": "leak"}, pid)
        yield Advice("torch_profiler", {"why": "leak"}, pid)


def _fallback(scene: _Scene) -> Iterator[Advice]:
    for process in _mps_processes(scene):
        if is_fallback_on(process.settings):
            yield Advice("fallback_on", pid=process.pid)
            return


def _mps_processes(scene: _Scene) -> Iterator[Process]:
    for worker in scene.workers:
        if worker.process is not None and _may_use_mps(worker):
            yield worker.process
    for process in scene.snapshot.unconnected:
        if process.gpu_client and "torch" in process.frameworks:
            yield process


def _connect(scene: _Scene) -> Iterator[Advice]:
    """Children of a worker come with it; without a Python there is no place for an agent."""
    workers = {worker.pid for worker in scene.workers}
    strangers = [p for p in scene.snapshot.unconnected if p.python and p.parent not in workers]
    if strangers:
        process = max(strangers, key=lambda p: (p.footprint or 0, -p.pid))
        kind = kind_of(process.name)
        values: dict[str, Value] = {
            "python": process.python, "kind": kind, "number": len(strangers),
        }  # fmt: skip
        yield Advice("connect", values, process.pid)


def _other_framework(scene: _Scene) -> Iterator[Advice]:
    for process in _mps_processes(scene):
        if kind_of(process.name) == "server":
            yield Advice("core_ml_or_mlx", pid=process.pid)
            return


def _look_closer(scene: _Scene) -> Iterator[Advice]:
    """Nothing is wrong, and yet it may be slow: where the time goes."""
    busy = scene.snapshot.machine.gpu.utilization
    if scene.health.level != "ok" or busy is None or busy < _BUSY:
        return
    everyone = sorted(_mps_processes(scene), key=lambda p: -(p.gpu_percent or 0))
    for process in everyone[:1]:
        yield Advice("torch_profiler", {"why": "speed"}, process.pid)
        if scene.is_mac:
            yield Advice("activity_monitor", {"why": "speed"}, process.pid)
            yield Advice("instruments", {"why": "speed"}, process.pid)
