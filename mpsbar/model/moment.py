"""Whether now is a good moment for a probe: it must not disturb a run, nor the machine. Pure."""

from mpsbar.model.reason import Reason
from mpsbar.model.snapshot import Snapshot

BUSY_PERCENT = 5.0  # of the GPU, by one process


def judge_moment(snapshot: Snapshot) -> tuple[Reason, ...]:
    """What speaks against it, the worst first: "critical" to be refused, "warning" asked about."""
    reasons = []
    if snapshot.machine.pressure == "critical":
        reasons.append(Reason("probe_pressure", "critical"))
    shares = [
        (process.gpu_percent, process.pid)
        for process in snapshot.processes or ()
        if process.gpu_percent is not None and process.gpu_percent > BUSY_PERCENT
    ]
    reasons += [
        Reason("probe_gpu_busy", "warning", {"percent": percent}, pid)
        for percent, pid in sorted(shares, reverse=True)[:1]
    ]
    return tuple(reasons)
