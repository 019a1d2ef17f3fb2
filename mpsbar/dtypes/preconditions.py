"""Judges whether a probe may run now: it must not disturb a training run or the machine. Pure."""

from dataclasses import dataclass

from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.text import wording

BUSY_PERCENT = 5.0  # of the GPU, by one process


@dataclass(frozen=True, slots=True)
class Objection:
    """One reason not to probe now."""

    text: str  # a sentence without its full stop
    is_refusal: bool  # otherwise the person decides


def find_objections(snapshot: Snapshot) -> tuple[Objection, ...]:
    """Every reason against a probe now, the worst first."""
    objections = []
    if snapshot.machine.pressure == "critical":
        text = _("memory pressure is critical, and a probe could make the system end a process")
        objections.append(Objection(text, is_refusal=True))
    shares = [
        (process.gpu_percent, process.pid)
        for process in snapshot.processes or ()
        if process.gpu_percent is not None and process.gpu_percent > BUSY_PERCENT
    ]
    if shares:
        percent, pid = max(shares)
        text = _(
            "{name} is using {percent} of the GPU: it and the probe would slow each other down"
        ).format(name=snapshot.names.get(pid) or _("a process"), percent=wording.percent(percent))
        objections.append(Objection(text, is_refusal=False))
    return tuple(objections)
