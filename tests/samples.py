"""Workers, processes and snapshots made by hand: each test names only what it is about."""

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Backend, Snapshot, Worker

GB, MB = 1 << 30, 1 << 20
METHODS = frozenset(["hello", "stats", "free", "tensors"])
COUNTERS = ("allocated", "reserved", "driver", "peak", "budget")
MAC = Machine(
    chip="Apple M3 Max", memory_total=36 * GB, memory_available=12 * GB, swap_used=0,
    pressure="normal", gpu=Gpu("Apple M3 Max", 30, 43.0, int(9.8 * GB), 27 * GB),
)  # fmt: skip


def make_process(pid=1, name="train.py", *, started=100.0, frameworks=("torch",), **fields):
    return Process(pid, started, name, frameworks, **fields)


def make_backend(name="mps", *, state="in use", **counters):
    return Backend(name, "mlx" if name == "mlx" else "torch", state, **counters)


def make_worker(pid=1, name="train.py", *, device="mps", backends=None, **fields):
    """Live, with one allocator that has the given counters, or with the given `backends`."""
    counters = {key: fields.pop(key) for key in COUNTERS if key in fields}
    if backends is None:
        backends = (make_backend(device, **counters),)
    given = {"state": "live", "age": 0.0} | fields
    return Worker(pid, name, backends=tuple(backends), **given)


def make_training(pid=4711, name="train.py", held=6 * GB, cached=3 * GB, **fields):
    """A connected worker as on a Mac, seen from the outside too."""
    process = make_process(pid, name, footprint=held + GB, python="/v/bin/python")
    counters = {"allocated": held - cached, "reserved": held, "driver": held}
    return make_worker(pid, name, **({"process": process, "methods": METHODS} | counters | fields))


def make_snapshot(*workers, processes=(), **fields):
    """Of a Mac; the workers' own processes are among those that were found."""
    known = tuple(worker.process for worker in workers if worker.process is not None)
    given = {"time": 1000.0, "machine": MAC} | fields
    return Snapshot(workers=workers, processes=(*known, *processes), **given)


# A server that is not connected.
SERVE = make_process(4720, "serve.py", started=7.0, footprint=2 * GB, python="/v/bin/python")
