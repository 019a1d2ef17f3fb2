"""How fast something counts."""

import pytest

from mpsbar.agent.progress.rates import LATE_SECONDS, RateMeter


def follow(looks, started=0.0, began_at=0.0):
    meter = RateMeter(started, began_at)
    for when, done in looks:
        meter.add(when, done)
    return meter


def test_nothing_is_known_before_the_first_count():
    assert follow([(5.0, 0)]).rate(6.0) is None


def test_one_look_gives_the_average_since_the_start():
    assert follow([(10.0, 30)]).rate(10.0) == 3.0


def test_a_resumed_run_counts_from_where_it_began():
    assert follow([(10.0, 1030)], began_at=1000.0).rate(10.0) == 3.0


def test_the_last_minute_counts_not_what_was_before():
    slow = [(float(t), t) for t in range(100)]
    fast = [(100.0 + t, 100 + 10 * t) for t in range(100)]
    assert follow(slow + fast).rate(199.0) == pytest.approx(10.0)


def test_many_looks_within_a_second_do_not_shorten_the_window():
    meter = follow([(t / 100, t) for t in range(6000)])
    assert meter.rate(60.0) == pytest.approx(100.0, rel=0.01)
    assert len(meter._points) <= 62


def test_a_count_that_changes_once_in_ten_minutes_keeps_its_last_two_changes():
    meter = follow([(0.0, 1), (600.0, 2), (1200.0, 3)])
    assert meter.rate(1500.0) == pytest.approx(1 / 600)


def test_a_late_count_is_no_standstill_but_a_stopped_one_is():
    meter = follow([(float(t), t) for t in range(11)])
    assert meter.rate(10.0 + LATE_SECONDS) == 1.0
    assert meter.rate(40.0) == pytest.approx(10 / 40)


def test_a_reset_starts_anew():
    meter = follow([(1.0, 50), (2.0, 100), (3.0, 0), (5.0, 10)])
    assert meter.rate(5.0) == 5.0


def test_a_clock_that_is_set_back_starts_anew():
    meter = follow([(1000.0, 10), (1001.0, 20), (10.0, 30), (12.0, 40)])
    assert meter.rate(12.0) == 5.0


def test_the_same_count_with_an_earlier_time_changes_nothing():
    """tqdm takes the time, prints, and only then stores that time: a look may come in between."""
    meter = follow([(10.0, 10), (20.0, 20), (19.9, 20)])
    assert meter.rate(20.0) == 1.0
    meter.add(30.0, 30)
    assert meter.rate(30.0) == 1.0
