"""Is a reason gone, or only what it is read from? A recovery must not be told for the latter."""

from mpsbar.model.health import FILLING_LEAST, LEAK_SPAN, SWAP_SPAN
from mpsbar.model.history import gpu_memory
from mpsbar.model.reason import Reason
from mpsbar.model.snapshot import Snapshot

# A trend that begins anew cannot be seen for this long, so its absence means nothing until then.
_BLIND = {
    "leak": LEAK_SPAN,
    "swap_growing": SWAP_SPAN,
    "memory_filling": FILLING_LEAST,
    "gpu_filling": FILLING_LEAST,
}
_NOT_JUDGED = ("unknown", "not_judged")


def is_known_absent(reason: Reason, snapshot: Snapshot, resumed: float) -> bool:
    """Of a reason that the snapshot lacks; `resumed`: since when there has been no gap."""
    if any(one.code in _NOT_JUDGED for one in snapshot.health.reasons):
        return False
    if snapshot.time - resumed < _BLIND.get(reason.code, 0.0):
        return False
    if reason.pid is not None:
        return _is_read(snapshot, reason.pid)
    machine = snapshot.machine
    if reason.code == "pressure":
        return machine.pressure is not None
    if reason.code == "swap_growing":
        return machine.swap_used is not None
    if reason.code == "memory_filling":
        return machine.memory_available is not None
    return gpu_memory(snapshot) is not None


def _is_read(snapshot: Snapshot, pid: int) -> bool:
    """A worker that does not answer keeps its last values, and its trends fade."""
    worker = next((one for one in snapshot.workers if one.pid == pid), None)
    if worker is not None:
        return worker.state == "live" and worker.process is not None
    return any(one.pid == pid and one.footprint is not None for one in snapshot.unconnected)
