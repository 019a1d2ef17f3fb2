"""What is added to the evidence of an end, and what may still be written about it."""

from dataclasses import replace

import pytest
from samples import GB, MAC, make_snapshot

from mpsbar.core.end_evidence import build_evidence, may_be_reported, will_be_reported
from mpsbar.core.endings import (
    CrashReport,
    EndEvidence,
    ExitStatus,
    LastWords,
    RaisedError,
    SystemReports,
)
from mpsbar.core.recent_conditions import RecentConditions

WORDS = LastWords(7, 1.0, 2.0, memory={"held": 5, "peak": 9}, frameworks={"torch": "2.9.0"})


def test_last_words_complete_what_is_known():
    found = build_evidence(EndEvidence(words=WORDS), 100.0)
    assert (found.held, found.peak, found.torch) == (5, 9, "2.9.0")
    found = build_evidence(EndEvidence(words=WORDS, held=3, peak=8, torch="2.8.0"), 100.0)
    assert (found.held, found.peak, found.torch) == (3, 9, "2.9.0")
    found = build_evidence(EndEvidence(held=3, peak=8, torch="2.8.0"), 100.0)
    assert (found.held, found.peak, found.torch) == (3, 8, "2.8.0")


def test_the_last_minute_of_the_machine_is_evidence():
    conditions = RecentConditions()
    for time, pressure, swap in ((50.0, "critical", 0), (99.0, "normal", 2 * GB)):
        machine = replace(MAC, pressure=pressure, swap_used=swap)
        conditions.add(make_snapshot(time=time, machine=machine))
    found = build_evidence(EndEvidence(), 100.0, conditions)
    assert (found.pressure, found.swap_growth, found.gpu_reset) == ("critical", 2 * GB, False)


def on_mac(number, **more):
    return EndEvidence(status=ExitStatus(signal=number), is_mac=True, **more)


@pytest.mark.parametrize(
    ("evidence", "may", "will"),
    [
        (on_mac(11), True, True),
        (on_mac(10), True, True),
        (on_mac(11, reports=SystemReports(crash=CrashReport(11))), True, False),
        (on_mac(3), True, False),  # Ctrl-\\: a person waits
        (on_mac(9), True, False),  # a report of a kill for memory comes late, if at all
        (on_mac(7), True, False),  # SIGEMT
        (replace(on_mac(11), is_mac=False), False, False),
        (EndEvidence(is_mac=True), True, False),
        (EndEvidence(status=ExitStatus(code=1), is_mac=True), False, False),
        (EndEvidence(words=replace(WORDS, error=RaisedError("E", "x")), is_mac=True), False, False),
    ],
)
def test_what_macos_may_still_write(evidence, may, will):
    assert (may_be_reported(evidence), will_be_reported(evidence)) == (may, will)
