"""Whether now is a good moment: a busy GPU is asked about, critical memory refused."""

import re

from mpsbar.core.findings import Reason
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.preconditions import find_objections, judge_preconditions, say_objection


def judge_with(pressure="normal", *shares):
    processes = tuple(
        Process(pid, 0.0, f"p{pid}", ("torch",), gpu_percent=share)
        for pid, share in enumerate(shares, 1)
    )
    return judge_preconditions(
        Snapshot(0.0, machine=Machine(pressure=pressure), processes=processes)
    )


def test_nothing_speaks_against_it():
    assert judge_with("normal", 5.0, None, 0.0) == judge_with("warning") == judge_with(None) == ()
    assert judge_preconditions(Snapshot(0.0, processes=None)) == ()


def test_a_busy_gpu_is_to_be_asked_about():
    (reason,) = judge_with("normal", 6.0, 43.0, None)
    assert (reason.code, reason.level, reason.pid, reason.values) == (
        "probe_gpu_busy",
        "warning",
        2,
        {"percent": 43.0},
    )


def test_critical_memory_is_to_be_refused():
    assert [(reason.code, reason.level) for reason in judge_with("critical", 43.0)] == [
        ("probe_pressure", "critical"), ("probe_gpu_busy", "warning"),
    ]  # fmt: skip


def test_in_words_the_worst_first_and_only_critical_memory_is_refused():
    busy = Process(1, 0.0, "train.py", ("torch",), gpu_percent=43.0)
    both = find_objections(Snapshot(0.0, machine=Machine(pressure="critical"), processes=(busy,)))
    assert [(re.split("[,:]", objection.text)[0], objection.is_refusal) for objection in both] == [
        ("memory pressure is critical", True),
        ("train.py is using 43% of the GPU", False),
    ]
    assert find_objections(Snapshot(0.0, processes=None)) == ()


def test_the_moment():
    busy = Reason("probe_gpu_busy", "warning", {"percent": 43.4}, 7)
    assert say_objection(busy, "train.py") == (
        "train.py is using 43% of the GPU: it and the probe would slow each other down"
    )
    assert "memory pressure is critical" in say_objection(
        Reason("probe_pressure", "critical"), None
    )
