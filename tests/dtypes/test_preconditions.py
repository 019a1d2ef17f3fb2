"""Whether now is a good moment: a busy GPU is asked about, critical memory refused."""

from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.preconditions import Objection, find_objections

PRESSURE = Objection(
    "memory pressure is critical, and a probe could make the system end a process", is_refusal=True
)
BUSY = Objection(
    "train.py is using 43% of the GPU: it and the probe would slow each other down",
    is_refusal=False,
)


def find_with(pressure, *shares):
    processes = tuple(
        Process(pid, 0.0, name, ("torch",), gpu_percent=share)
        for pid, (name, share) in enumerate(zip(("train.py", "p2", "p3"), shares, strict=False), 1)
    )
    return find_objections(Snapshot(0.0, machine=Machine(pressure=pressure), processes=processes))


def test_nothing_speaks_against_it():
    assert find_with("normal", 5.0, None, 0.0) == find_with("warning") == find_with(None) == ()
    assert find_objections(Snapshot(0.0, processes=None)) == ()


def test_the_busiest_is_asked_about():
    assert find_with("normal", 43.4, 6.0, None) == (BUSY,)


def test_critical_memory_is_refused_and_the_worst():
    assert find_with("critical", 43.4) == (PRESSURE, BUSY)
