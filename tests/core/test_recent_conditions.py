"""What the machine did in the minute before an end."""

from dataclasses import replace

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine
from mpsbar.core.recent_conditions import RecentConditions
from mpsbar.core.snapshot import Snapshot

MACHINE = Machine(pressure="normal", swap_used=1000)


def add(conditions, *readings):
    for time, changes in readings:
        conditions.add(Snapshot(time, machine=replace(MACHINE, **changes)))


def test_only_the_minute_before_an_end_counts_and_what_comes_just_after():
    conditions = RecentConditions()
    add(
        conditions,
        (100.0, {"pressure": "critical", "swap_used": 0}),  # too early
        (141.0, {}),
        (190.0, {"pressure": "warning", "swap_used": 1500}),
        (204.0, {"swap_used": 1700}),
        (206.0, {"pressure": "critical", "swap_used": 9000}),  # another process, by then
    )
    assert conditions.find_worst_pressure(200.0) == "warning"
    assert conditions.find_swap_growth(200.0) == 700


def test_what_was_never_read_is_not_known():
    conditions = RecentConditions()
    add(conditions, (199.0, {"pressure": None, "swap_used": None}))
    assert conditions.find_worst_pressure(200.0) is None
    assert conditions.find_swap_growth(200.0) is None


def test_a_reset_is_a_count_that_rose():
    conditions = RecentConditions()
    rose = [
        conditions.note_reset(Snapshot(time, machine=Machine(gpu=Gpu(recoveries=count))))
        for time, count in ((1.0, 3), (2.0, None), (3.0, 3), (4.0, 4))
    ]
    assert rose == [False, False, False, True]
    assert [conditions.was_reset(ended) for ended in (-2.0, -1.0, 9.0, 9.1)] == [
        False, True, True, False,
    ]  # fmt: skip
