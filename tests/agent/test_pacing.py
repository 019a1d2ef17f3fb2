"""How often a host may be made to wait, by a clock of the test's own."""

import time

import pytest

from mpsbar.agent import jobs, pending_free
from mpsbar.agent.gc_pause import CollectorPause
from mpsbar.agent.pacing import PAUSES_AT_ONCE_SECONDS, Allowance, JobPace


def test_what_was_not_spent_adds_up_only_to_its_most():
    start = time.monotonic() + 1
    allowance = Allowance(2.0, 4.0)
    assert allowance.spend(4, start) == start
    assert allowance.spend(1, start) == pytest.approx(start + 0.5)
    assert allowance.spend(4, start + 100) == start + 100
    assert allowance.spend(1, start + 100) > start + 100


def test_a_clock_that_goes_back_gives_nothing_and_takes_nothing():
    start = time.monotonic() + 1
    allowance = Allowance(2.0, 4.0)
    allowance.spend(4, start)
    assert allowance.spend(1, start - 50) == pytest.approx(start - 49.5)


def test_small_jobs_may_be_repeated_some_times():
    pace, now = JobPace(), time.monotonic()
    for _ in range(20):
        assert pace.find_answer(now) is None
        pace.note({"state": "done"}, 0.0, now)


def test_a_long_job_rests_for_twenty_times_its_pause():
    pace, now = JobPace(), time.monotonic() + 1
    assert pace.find_answer(now) is None
    pace.note({"state": "done", "freed": 7}, PAUSES_AT_ONCE_SECONDS, now)
    assert pace.find_answer(now) is None
    pace.note({"state": "done", "freed": 8}, 3.0, now)
    assert pace.find_answer(now + 2) == {"state": "done", "freed": 8, "age": pytest.approx(2)}
    assert pace.find_answer(now + 59) is not None
    assert pace.find_answer(now + 61) is None


def test_a_free_that_may_wait_is_told_during_a_rest_that_it_waits():
    """Only where the last one was busy: one that was done a moment ago leaves nothing to wait for."""
    asked = {"when_possible": True}
    queue = jobs.JobQueue(CollectorPause())
    for state, waits in (("busy", True), ("done", False)):
        last = {"state": state, "reason": None}
        queue._pace.note(last, 60.0, time.monotonic(), ("free", None))
        answer = queue.ask(("free", None), asked, "somebody")
        assert answer["state"] == state
        assert ("kept" in answer, pending_free.find_pending() is not None) == (waits, waits)
    assert queue.is_empty()
    assert "kept" not in queue.ask(("free", None), {}, "somebody else")


IDENTITIES = [("free", None), ("tensors", None), ("limit", None), ("limit", 1 << 40)]


@pytest.mark.parametrize("last", IDENTITIES)
def test_all_jobs_share_one_rest(last):
    """Three methods in turn may cost a host no more than one of them."""
    queue = jobs.JobQueue(CollectorPause())
    queue._pace.note({"state": "done"}, 60.0, time.monotonic(), last)
    for identity in IDENTITIES:
        answer = queue.ask(identity, {}, "somebody")
        if identity == last:
            assert answer["state"] == "done"
            assert answer["age"] >= 0
        else:
            assert answer["reason"]["code"] == "too_often"
    assert queue.is_empty()
