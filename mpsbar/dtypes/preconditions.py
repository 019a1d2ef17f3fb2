"""Judges whether a probe may run now: it must not disturb a training run or the machine. Pure."""

from dataclasses import dataclass

from mpsbar.core.findings import Reason
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
    """Every reason against a probe now, the worst first, in words."""
    names = snapshot.names
    return tuple(
        Objection(
            say_objection(reason, None if reason.pid is None else names.get(reason.pid)),
            is_refusal=reason.level == "critical",
        )
        for reason in judge_preconditions(snapshot)
    )


def judge_preconditions(snapshot: Snapshot) -> tuple[Reason, ...]:
    """Reasons against a probe now, the worst first: "critical" refuses it, "warning" asks."""
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


def say_objection(reason: Reason, name: str | None) -> str:
    """Says a reason against a probe; `name` is that of the process it is about."""
    if reason.code == "probe_pressure":
        return _("memory pressure is critical, and a probe could make the system end a process")
    share = reason.values.get("percent")
    return _(
        "{name} is using {percent} of the GPU: it and the probe would slow each other down"
    ).format(
        name=name or _("a process"),
        percent=wording.percent(share if isinstance(share, float) else BUSY_PERCENT),
    )
