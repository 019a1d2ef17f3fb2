"""Collects the evidence for a verdict on an end, and says whether a system report may still come.

Pure.
"""

from dataclasses import replace

from mpsbar.core.endings import EndEvidence
from mpsbar.core.recent_conditions import RecentConditions
from mpsbar.core.signals import CRASHES, name_signal


def build_evidence(
    known: EndEvidence, ended: float, conditions: RecentConditions | None = None
) -> EndEvidence:
    """Adds to the evidence what the last words say, and the machine's conditions at that time.

    `conditions` is None if nobody watched the machine.
    """
    if known.words is not None:
        memory = known.words.memory
        peaks = [peak for peak in (known.peak, memory.get("peak")) if peak is not None]
        known = replace(
            known,
            held=memory.get("held") if known.held is None else known.held,
            peak=max(peaks, default=None),
            torch=known.words.frameworks.get("torch") or known.torch,
        )
    if conditions is None:
        return known
    return replace(
        known,
        pressure=conditions.find_worst_pressure(ended),
        swap_growth=conditions.find_swap_growth(ended),
        gpu_reset=conditions.was_reset(ended),
    )


def may_be_reported(evidence: EndEvidence) -> bool:
    """Returns whether macOS may yet write something that changes the verdict, in some seconds."""
    status = evidence.status
    if not evidence.is_mac or (status is not None and status.code is not None):
        return False
    return evidence.words is None or evidence.words.error is None


def will_be_reported(evidence: EndEvidence) -> bool:
    """Returns whether macOS writes a crash report that is not there yet, and is worth waiting for.

    After Ctrl-\\ nobody should wait.
    """
    number = None if evidence.status is None else evidence.status.signal
    if not evidence.is_mac or number is None or evidence.reports.crash is not None:
        return False
    name = name_signal(number, evidence.is_mac)
    return name in CRASHES and name != "SIGQUIT"
