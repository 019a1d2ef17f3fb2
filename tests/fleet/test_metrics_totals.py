"""Counters that only grow, whatever order the events come in and however often they are read."""

from dataclasses import replace

from samples import MB, make_snapshot

from mpsbar.core.actions import Freed
from mpsbar.core.events import Alert, EndedProcess, EventLog
from mpsbar.core.findings import Reason
from mpsbar.fleet.metrics import Totals


def alert(code, kind="raised"):
    return Alert(code, "warning", None, None, Reason(code, "warning"), kind, code)


def test_every_event_counts_once():
    log, totals = EventLog(), Totals()
    log.add(1.0, Freed(1, "a", "done", 5 * MB))
    log.add(1.0, Freed(2, "b", "busy"))
    log.add(2.0, alert("gpu_memory"))
    log.add(2.0, alert("gpu_memory", "recovered"))
    snapshot = replace(make_snapshot(), events=log.recent)
    totals.add(snapshot)
    totals.add(snapshot)
    log.add(3.0, EndedProcess(1, None, "a", 3.0, how="pressure"))
    totals.add(replace(snapshot, events=log.recent))
    assert (totals.frees["done"], totals.frees["busy"], totals.freed_bytes) == (1, 1, 5 * MB)
    assert (totals.alerts["memory"], totals.alerts["leak"]) == (1, 0)
    assert (totals.ends["pressure"], totals.ends["unknown"]) == (1, 0)


def test_new_words_are_bounded():
    log, totals = EventLog(), Totals()
    for number in range(500):
        log.add(1.0, EndedProcess(number, None, "a", 1.0, how=f"way {number}\x1b[2J"))
        totals.add(replace(make_snapshot(), events=log.recent))
    assert sum(totals.ends.values()) == 500
    assert len(totals.ends) <= 51
    assert all(word.isprintable() for word in totals.ends)
