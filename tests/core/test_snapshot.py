"""What the numbers mean, and that unknown is never 0."""

import pytest
from samples import make_backend, make_worker

from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Backend, Family, Snapshot, Worker


def test_from_torch_2_13_on_everything_is_known():
    mps = make_backend(allocated=60, reserved=100, driver=130)
    assert (mps.held, mps.cached, mps.cached_is_bound, mps.other) == (130, 40, False, 30)


def test_before_2_13_the_cache_is_only_bounded():
    mps = make_backend(allocated=60, driver=130)
    assert (mps.held, mps.cached, mps.cached_is_bound, mps.other) == (130, 70, True, None)


@pytest.mark.parametrize(
    ("counters", "held"),
    [({}, None), ({"allocated": 5}, 5), ({"allocated": 5, "reserved": 9}, 9), ({"driver": 0}, 0)],
)
def test_held_is_driver_else_reserved_else_allocated(counters, held):
    assert make_backend(**counters).held == held


def test_nothing_known_is_unknown_not_zero():
    cpu = make_backend("cpu")
    assert cpu.held is cpu.cached is cpu.other is None
    assert make_worker(backends=[cpu]).held is None
    assert Snapshot(0.0, (make_worker(backends=[cpu]),)).held is None
    assert Snapshot(0.0).held is None


def test_sums_are_over_what_is_known_and_in_use():
    idle = Backend("cuda", "torch", "not initialised", allocated=7)
    mps, mlx = make_backend(allocated=1, reserved=3), make_backend("mlx", allocated=10, reserved=20)
    both = make_worker(backends=[mps, mlx, idle])
    assert (both.held, both.cached) == (23, 12)
    assert Snapshot(0.0, (both, make_worker(device="cpu"), both)).held == 46


def test_a_counter_read_a_moment_later_cannot_make_a_negative_cache():
    assert make_backend(allocated=10, reserved=9).cached == 0


def test_the_main_backend_is_the_first_that_counts_something():
    cpu, mlx = make_backend("cpu"), make_backend("mlx", allocated=1)
    assert make_worker(backends=[cpu, mlx]).main_backend is mlx
    assert make_worker(backends=[cpu]).main_backend is cpu
    assert make_worker(backends=()).main_backend is None


def make_member(kind, pid, parent):
    if kind == "w":
        return Worker(pid, str(pid), "live", 0.0, parent=parent)
    return Process(pid, 1.0, str(pid), ("torch",), parent=parent)


def families(*entries):
    found = [make_member(*entry) for entry in entries]
    snapshot = Snapshot(
        0.0,
        tuple(w for w in found if isinstance(w, Worker)),
        processes=tuple(p for p in found if isinstance(p, Process)),
    )
    return [
        (f.root.pid, [w.pid for w in f.workers], [p.pid for p in f.others])
        for f in snapshot.families
    ]


def test_children_are_with_their_parent_each_once():
    assert families(("w", 1, 0), ("w", 2, 9), ("w", 3, 1), ("w", 4, 3), ("w", 5, 2)) == [
        (1, [3, 4], []),
        (2, [5], []),
    ]


def test_loaders_are_with_their_worker_and_ranks_with_their_launcher():
    assert families(
        ("w", 1, 0), ("p", 11, 1), ("p", 12, 1), ("p", 2, 0), ("w", 21, 2), ("p", 22, 21), ("p", 3, 0)
    ) == [(1, [], [11, 12]), (2, [21], [22]), (3, [], [])]  # fmt: skip


def test_a_lie_about_parents_loses_nobody():
    assert families(("w", 1, 2), ("w", 2, 1), ("p", 3, 3), ("w", 4, 1)) == [
        (1, [], []), (2, [], []), (4, [], []), (3, [], []),
    ]  # fmt: skip


def test_a_chain_of_thousands_is_one_family():
    """Another computer may claim one; to look for each one's head by itself took hours."""
    chain = [("w" if pid < 2000 else "p", pid, pid + 1) for pid in range(1, 4001)]
    ((head, connected, others),) = families(*chain)
    assert (head, len(connected), len(others)) == (4000, 1999, 2000)
    circle = [*chain, ("p", 4001, 1)]
    assert [found[0] for found in families(*circle)] == [*range(1, 4002)]


def test_who_is_connected_is_not_listed_twice():
    process = Process(7, 1.0, "x", ("torch",))
    snapshot = Snapshot(0.0, (Worker(7, "x", "live", 0.0),), processes=(process,))
    assert snapshot.unconnected == ()
    assert Snapshot(0.0, processes=None).unconnected == ()


def named(pid, name, parent):
    return Process(pid, 1.0, name, ("torch",), parent=parent)


@pytest.mark.parametrize(
    ("others", "distinct"),
    [
        ([(2, "train.py", 1), (3, "train.py", 1)], []),  # forked: copies of their parent
        ([(2, "train.py", 1)], [2]),  # one alone needs no sum
        ([(2, "child process", 1), (3, "child process", 1)], []),
        ([(2, "x rank 0 of 2", 1), (3, "x rank 1 of 2", 1)], [2, 3]),
        ([(2, "x rank 0 of 1", 1), (3, "x rank 0 of 1", 2), (4, "x rank 0 of 1", 2)], [2]),
        ([(2, "x rank 0 of 2", 1), (3, "x rank 1 of 2", 1), (4, "x rank 0 of 2", 2)], [2, 3, 4]),
        ([(2, "gunicorn: worker", 1), (3, "gunicorn: worker", 1)], []),  # of each other
        ([(2, "a.py", 1), (3, "a.py", 99), (4, "b.py", 1), (5, "child process", 1)], [2, 3, 4, 5]),
    ],
)
def test_who_of_the_children_a_person_tells_apart(others, distinct):
    family = Family(named(1, "train.py", 0), (), tuple(named(*other) for other in others))
    assert [member.pid for member in family.own_rows] == distinct
    together = [*family.own_rows, *family.copies]
    assert sorted(member.pid for member in together) == [pid for pid, _, _ in others]


def test_a_notebooks_children_are_copies_though_only_its_agent_knows_the_notebook():
    outside = named(1, "notebook kernel", 0)
    kernel = Worker(1, "a.ipynb", "live", 0.0, process=outside)
    loaders = tuple(named(pid, "notebook kernel", 1) for pid in (2, 3))
    assert Family(kernel, (), loaders).copies == loaders
