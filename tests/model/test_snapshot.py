"""What the numbers mean, and that unknown is never 0."""

import pytest

from mpsbar.model.snapshot import Backend, Snapshot, Worker


def backend(name="mps", **counters):
    return Backend(name, "torch", "in use", **counters)


def worker(*backends, **fields):
    return Worker(1, "train.py", "live", 0.0, backends=backends, **fields)


def test_from_torch_2_13_on_everything_is_known():
    mps = backend(allocated=60, reserved=100, driver=130)
    assert (mps.held, mps.cached, mps.cached_is_bound, mps.other) == (130, 40, False, 30)


def test_before_2_13_the_cache_is_only_bounded():
    mps = backend(allocated=60, driver=130)
    assert (mps.held, mps.cached, mps.cached_is_bound, mps.other) == (130, 70, True, None)


@pytest.mark.parametrize(
    ("counters", "held"),
    [({}, None), ({"allocated": 5}, 5), ({"allocated": 5, "reserved": 9}, 9), ({"driver": 0}, 0)],
)
def test_held_is_driver_else_reserved_else_allocated(counters, held):
    assert backend(**counters).held == held


def test_nothing_known_is_unknown_not_zero():
    cpu = backend("cpu")
    assert cpu.held is cpu.cached is cpu.other is None
    assert worker(cpu).held is None
    assert Snapshot(0.0, (worker(cpu),)).held is None
    assert Snapshot(0.0).held is None


def test_sums_are_over_what_is_known_and_in_use():
    idle = Backend("cuda", "torch", "not initialised", allocated=7)
    both = worker(backend(allocated=1, reserved=3), backend("mlx", allocated=10, reserved=20), idle)
    assert (both.held, both.cached) == (23, 12)
    assert Snapshot(0.0, (both, worker(backend("cpu")), both)).held == 46


def test_a_counter_read_a_moment_later_cannot_make_a_negative_cache():
    assert backend(allocated=10, reserved=9).cached == 0


def test_the_main_backend_is_the_first_that_counts_something():
    cpu, mlx = backend("cpu"), backend("mlx", allocated=1)
    assert worker(cpu, mlx).main_backend is mlx
    assert worker(cpu).main_backend is cpu
    assert worker().main_backend is None


def family(*pairs):
    workers = tuple(Worker(pid, str(pid), "live", 0.0, parent=parent) for pid, parent in pairs)
    return [(worker.pid, is_child) for worker, is_child in Snapshot(0.0, workers).families]


def test_children_follow_their_parent_each_once():
    assert family((1, 0), (2, 9), (3, 1), (4, 3), (5, 2)) == [
        (1, False), (3, True), (4, True), (2, False), (5, True),
    ]  # fmt: skip


def test_a_lie_about_parents_loses_nobody():
    assert sorted(family((1, 2), (2, 1), (3, 3), (4, 1))) == [
        (1, False), (2, False), (3, False), (4, False),
    ]  # fmt: skip
