"""The last minutes: bounded, without gaps, without what is gone, and where they are heading."""

import math
import tracemalloc
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import make_process, make_worker
from thorough import two_sizes

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine
from mpsbar.core.sleep_gap import GAP
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import (
    MAX_POINTS,
    SPACING,
    WINDOW,
    Point,
    Spread,
    Trends,
    gpu_memory,
    measure,
    recent,
)

process = partial(make_process, footprint=5)


def worker(pid=1, held=3, allocated=2, started=None, **fields):
    seen = None if started is None else process(pid, started=started)
    return make_worker(pid, driver=held, allocated=allocated, process=seen, **fields)


def snapshot(time, *, available=None, swap=None, gpu=None, workers=(), processes=()):
    machine = Machine(memory_available=available, swap_used=swap, gpu=Gpu(memory_in_use=gpu))
    return Snapshot(time, tuple(workers), machine, None if processes is None else tuple(processes))


def filled(*snapshots):
    history = Trends()
    for snapshot in snapshots:
        history.add(snapshot)
    return history


def values(series):
    return [point.value for point in series]


def test_machine_and_processes_are_remembered_with_their_times():
    history = filled(
        snapshot(10.0, available=1, swap=2, gpu=3, workers=[worker()], processes=[process()]),
        snapshot(12.0, available=4, swap=5, gpu=6, workers=[worker(held=9)], processes=[process()]),
    )
    assert list(history.machine.memory_available) == [Point(10.0, 1), Point(12.0, 4)]
    assert values(history.machine.swap_used) == [2, 5]
    assert values(history.machine.gpu_memory) == [3, 6]
    track = history.of(1)
    assert (values(track.footprint), values(track.held)) == ([5, 5], [3, 9])
    assert values(track.allocated) == [2, 2]


def test_unknown_is_skipped_and_never_a_zero():
    history = filled(
        snapshot(10.0, available=7, processes=[process(footprint=None)]),
        snapshot(12.0),
        snapshot(14.0, available=0),
    )
    assert list(history.machine.memory_available) == [Point(10.0, 7), Point(14.0, 0)]
    assert not history.machine.swap_used
    unread = filled(snapshot(1.0, processes=[process(footprint=None)]))
    assert list(unread.of(1).footprint) == []


def test_a_busy_workers_repeated_counters_are_no_new_ones():
    busy = worker(held=3, state="busy")
    history = filled(
        snapshot(10.0, workers=[worker()], processes=[process()]),
        snapshot(12.0, workers=[busy], processes=[process(footprint=6)]),
    )
    assert (values(history.of(1).held), values(history.of(1).footprint)) == ([3], [5, 6])


@pytest.mark.parametrize("seconds", [0.1, 1.0, 2.0, 5.0, 30.0])
def test_at_every_pace_it_is_bounded_and_long_enough_for_a_leak(seconds):
    history = Trends()
    for n in range(int(1200 / seconds)):
        history.add(snapshot(n * seconds, available=n))
    series = history.machine.memory_available
    span = series[-1].time - series[0].time
    assert len(series) <= MAX_POINTS
    assert 300 < span <= WINDOW


@pytest.mark.parametrize(
    ("step", "length"),
    [(SPACING - 0.01, 1), (SPACING, 2), (GAP, 2), (GAP + 0.01, 1), (-0.01, 1), (-1e6, 1), (0, 1)],
)
def test_gaps_and_clocks_set_back_start_anew(step, length):
    history = filled(snapshot(1e6, available=1), snapshot(1e6 + step, available=2))
    series = history.machine.memory_available
    assert len(series) == length
    if not 0 <= step <= GAP:
        assert values(series) == [2]


def test_a_value_missing_for_a_minute_starts_its_own_series_anew():
    history = filled(
        *(snapshot(t * 2.0, available=1, swap=None if 5 < t < 40 else t) for t in range(45))
    )
    assert len(history.machine.memory_available) == 45
    assert values(history.machine.swap_used) == [40, 41, 42, 43, 44]


def test_who_is_gone_is_forgotten():
    history = filled(
        snapshot(10.0, processes=[process(1), process(2)], workers=[worker(3)]),
        snapshot(12.0, processes=[process(2)], workers=[worker(3, state="gone", started=100.0)]),
    )
    assert history.of(1) is None
    assert history.of(2) is not None
    assert history.of(3) is None


def test_a_failed_scan_forgets_no_process_a_minute_of_them_does():
    history = filled(snapshot(10.0, processes=[process()]), snapshot(12.0, processes=None))
    assert history.of(1) is not None
    history.add(snapshot(10.0 + GAP, processes=None))
    assert history.of(1) is not None
    history.add(snapshot(10.1 + GAP, processes=None))
    assert history.of(1) is None


def test_a_pid_used_again_is_another_process():
    history = filled(
        snapshot(10.0, processes=[process(started=100.0, footprint=1)]),
        snapshot(12.0, processes=[process(started=300.0, footprint=2)]),
    )
    assert values(history.of(1).footprint) == [2]


def test_a_start_that_becomes_known_is_the_same_process():
    history = filled(
        snapshot(10.0, workers=[worker(held=1)]),
        snapshot(12.0, workers=[worker(held=2, started=100.0)]),
        snapshot(14.0, workers=[worker(held=3)], processes=None),
        snapshot(16.0, workers=[worker(held=4, started=100.0)]),
    )
    assert values(history.of(1).held) == [1, 2, 3, 4]
    assert history.of(1).started == 100.0
    assert values(history.of(1).footprint) == [5, 5]
    history.add(snapshot(18.0, workers=[worker(held=9, started=999.0)]))
    assert values(history.of(1).held) == [9]


@two_sizes("count", small=[2_000], whole=[10_000])
def test_any_number_of_snapshots_takes_the_same_memory(count):
    history = Trends()

    def add(first, last):
        for n in range(first, last):
            shown = snapshot(
                n * 2.0, available=n * 10**6, swap=n, gpu=n,
                workers=[worker(n % 7, held=n)], processes=[process(n, footprint=n), process(0)],
            )  # fmt: skip
            history.add(shown)

    tracemalloc.start()
    try:
        add(0, 1000)
        for first in range(1000, 1000 + 3 * count, count):
            before = tracemalloc.get_traced_memory()[0]
            add(first, first + count)
            grown = tracemalloc.get_traced_memory()[0] - before
            if (
                grown < 50_000
            ):  # else another thread of this process may have kept something meanwhile
                break
    finally:
        tracemalloc.stop()
    # 2,000 points would be 200 kB; a table that was resized is a few kilobytes.
    assert grown < 50_000
    assert len(history._processes) <= 3


def test_workers_that_come_and_go_while_nothing_can_be_listed_do_not_pile_up():
    history = Trends()
    for n in range(2000):
        history.add(snapshot(n * 2.0, workers=[worker(n)], processes=None))
    assert len(history._processes) <= GAP / 2.0 + 1


def test_gpu_memory_is_the_machines_else_the_workers_on_metal():
    mine = [worker(1, 5), worker(2, 7), worker(3, 100, device="cuda"), worker(4, 50, state="gone")]
    assert gpu_memory(snapshot(0.0, gpu=99, workers=mine)) == 99
    assert gpu_memory(snapshot(0.0, gpu=0, workers=mine)) == 0
    assert gpu_memory(snapshot(0.0, workers=mine)) == 12
    assert gpu_memory(snapshot(0.0, workers=mine[2:])) is None


def line(*numbers, step=2.0, start=0.0):
    return tuple(Point(start + n * step, number) for n, number in enumerate(numbers))


def test_recent_points_speak_for_now_or_not_at_all():
    points = line(1, 2, 3, 4, 5, step=10.0)
    assert values(recent(points, 40.0, 20.0)) == [3, 4, 5]
    assert values(recent(points, 40.0 + GAP, 2 * GAP)) == [1, 2, 3, 4, 5]
    assert recent(points, 40.1 + GAP, WINDOW) == ()
    assert values(recent(points, 15.0, 100.0)) == [1, 2]  # what a clock set back left in the future
    assert recent(points, math.nan, WINDOW) == recent(points, math.inf, WINDOW) == ()


def test_a_trend_needs_time_and_points():
    assert measure((), 10.0) is None
    assert measure(line(*range(30)), 60.0) is None
    assert measure(line(*range(31)), 60.0) is not None
    assert measure(line(*range(3), step=40.0), 60.0) is None
    lopsided = [*line(*range(30)), Point(600.0, 30)]
    assert measure(lopsided, 60.0) is None


def test_a_straight_line():
    trend = measure(line(*range(0, 310, 10)), 60.0)
    assert (trend.first, trend.middle) == (Spread(0, 45, 90), Spread(100, 145, 190))
    assert (trend.last, trend.end) == (Spread(210, 250, 290), 275)
    assert (trend.growth, trend.growth_seconds) == (205, 41.0)
    assert trend.is_steady


STEADY = {
    "up": (range(0, 600, 10), True),
    "down": (range(600, 0, -10), True),
    "up with scatter": ([10 * n + (-40, 0, 40)[n % 3] for n in range(60)], True),
    "up with one outlier": ([*range(0, 590, 10), 10**9], True),
    "flat": ([5] * 60, False),
    "a jump": ([0] * 30 + [1000] * 30, False),
    "a warm-up": ([min(n, 35) for n in range(60)], False),
    "late, and not for long": ([max(0, n - 45) for n in range(60)], False),
    "up and back": ([min(n, 60 - n) for n in range(60)], False),
    "see-saw": ([100 * (n % 2) for n in range(60)], False),
    "up until just now": ([min(n, 48) for n in range(60)], False),
}


@pytest.mark.parametrize(("numbers", "steady"), STEADY.values(), ids=STEADY)
def test_steady_is_one_direction_until_the_end(numbers, steady):
    assert measure(line(*numbers), 60.0).is_steady is steady


NUMBERS = st.none() | st.integers(0, 2**63)
TIMES = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1000)


@given(st.lists(st.tuples(TIMES, NUMBERS, NUMBERS, st.sampled_from([None, 1.0, 2.0])), max_size=30))
def test_no_clock_and_no_number_breaks_it(entries):
    history = Trends()
    for time, number, other, started in entries:
        people = [worker(1, held=number, allocated=other, started=started)]
        history.add(snapshot(time, available=number, swap=other, gpu=other, workers=people))
        series = history.machine.memory_available
        times = [point.time for point in series]
        assert times == sorted(times) or len(times) == 1
        points = recent(series, time, WINDOW)
        assert set(points) <= set(series)
        measure(points, 60.0)
        history.of(1).trends(time, 60.0)
