"""Completes what is known of an end before it is judged, and says what may yet be known. Pure."""

from dataclasses import replace

from mpsbar.core.endings import EndEvidence
from mpsbar.core.recent_conditions import RecentConditions
from mpsbar.core.signals import CRASHES, name_signal


def build_evidence(
    known: EndEvidence, ended: float, conditions: RecentConditions | None = None
) -> EndEvidence:
    """What is known of the end itself, with what its last words say, and with the conditions of the
    machine at that time; None: nobody watched the machine."""
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
    """Returns whether macOS writes a crash report that is not there yet: worth waiting for, which
    nobody should after Ctrl-\\."""
    number = None if evidence.status is None else evidence.status.signal
    if not evidence.is_mac or number is None or evidence.reports.crash is not None:
        return False
    name = name_signal(number, evidence.is_mac)
    return name in CRASHES and name != "SIGQUIT"
