"""The census: storages counted once, no foreign code, no data touched, a limit of time."""

import gc
import itertools
import signal
import sys
from types import SimpleNamespace

import pytest
from thorough import two_sizes
from worker_kit import NO_MPS, UNPACED, WAIT, wait_for

from mpsbar.agent import tensors

# One process of the test run imports torch, not all of them; in `make quick` none does.
pytestmark = [pytest.mark.xdist_group("torch"), pytest.mark.starts_processes]


@pytest.fixture(autouse=True)
def torch():
    return pytest.importorskip("torch")


on_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

MiB = 1 << 20
START = (
    WAIT
    + """
import gc, queue, signal, sys, threading, time
import torch, mpsbar
counters = torch.ops.softmps.counters
"""
)


def group(report, shape, device="cpu"):
    found = [g for g in report["groups"] if (g["shape"], g["device"]) == (shape, device)]
    assert len(found) <= 1
    return (found[0]["dtype"], found[0]["count"], found[0]["bytes"]) if found else None


def test_views_share_their_storage_and_it_counts_once(torch):
    base = torch.zeros(1013, 17, dtype=torch.float16)
    views = [base[:500], base[500:], base.t(), base.detach()]
    report = tensors.count({})
    size = 1013 * 17 * 2
    shapes = ["1013x17", "500x17", "513x17", "17x1013"]
    groups = [group(report, shape) for shape in shapes]
    assert [g[:2] for g in groups] == [
        ("float16", 2), ("float16", 1), ("float16", 1), ("float16", 1),
    ]  # fmt: skip
    assert sum(g[2] for g in groups) == size
    assert len(views) == 4


def test_equal_tensors_are_one_group(torch):
    kept = [torch.zeros(1019, 3, dtype=torch.int64) for _ in range(5)]
    report = tensors.count({})
    assert group(report, "1019x3") == ("int64", 5, 5 * 1019 * 3 * 8)
    assert len(kept) == 5


def test_no_foreign_code_runs(torch):
    def foreign(*_, **__):
        raise AssertionError("foreign code ran")

    class Lying:
        __class__ = property(foreign)
        __getattribute__ = foreign

    class Meta(type):
        __hash__ = foreign
        __instancecheck__ = __subclasscheck__ = foreign

    class Odd(metaclass=Meta):
        pass

    class Strange(torch.Tensor):
        __torch_function__ = classmethod(foreign)
        device = shape = dtype = untyped_storage = property(foreign)

    plain = torch.zeros(1021)
    strange = torch.Tensor._make_subclass(Strange, plain)
    kept = [Lying(), Odd(), strange, [Odd, Lying]]
    report = tensors.count({})
    assert group(report, "1021") == ("float32", 2, 1021 * 4)
    assert len(kept) == 4


def test_isinstance_would_have_run_it(torch):
    class Lying:
        @property
        def __class__(self):
            raise AssertionError("foreign code ran")

    with pytest.raises(AssertionError):
        isinstance(Lying(), torch.Tensor)


def test_tensors_without_bytes_of_their_own_are_left_out(torch):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(1031)
    meta = torch.empty(1033, device="meta")
    sparse = torch.eye(1039).to_sparse()
    report = tensors.count({})
    assert [group(report, s) for s in ("1031", "1033", "1039x1039")] == [None, None, None]
    assert (len(fake), len(meta), len(sparse)) == (1031, 1033, 1039)


def test_a_scalar_and_an_endless_shape_can_be_told(torch):
    scalar = torch.tensor(1.5, dtype=torch.float64)
    long = torch.zeros([1] * 60)
    report = tensors.count({})
    assert group(report, "scalar") is not None
    assert max(len(g["shape"]) for g in report["groups"]) == 80
    assert scalar.dim() + long.dim() == 60


def test_the_fifty_biggest_groups_and_the_others(torch):
    kept = [torch.zeros(n + 200_000, dtype=torch.uint8) for n in range(60)]
    report = tensors.count({"cpu": 10**9, "mps": None})
    assert len(report["groups"]) == 50
    sizes = [g["bytes"] for g in report["groups"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] >= 200_059
    assert report["others"]["count"] >= 10
    seen = sum(sizes) + report["others"]["bytes"]
    assert report["not_visible"] == {"cpu": 10**9 - seen}
    assert len(kept) == 60


def test_the_scan_is_boxed_in_time_and_says_so(monkeypatch):
    torch = pytest.importorskip("torch")
    clock = iter(range(10**6))
    monkeypatch.setattr(tensors, "time", SimpleNamespace(monotonic=lambda: next(clock) / 10))
    monkeypatch.setattr(gc, "get_objects", lambda _: [torch.ones(1)] * 10_000)
    report = tensors.count({})
    assert report["cut_short"] is True
    assert report["list_seconds"] == pytest.approx(0.1)
    assert report["seconds"] == pytest.approx(0.5)


def test_a_whole_scan_says_how_long_the_list_took_and_asks_for_it_once(monkeypatch):
    asked = []
    real = gc.get_objects
    clock = itertools.count()  # a millisecond for each look at it

    def slow_list(generation):
        asked.append(1)
        for _ in range(300):  # longer than the box of the scan, which begins after it
            next(clock)
        return real()[:2000]

    monkeypatch.setattr(gc, "get_objects", slow_list)
    monkeypatch.setattr(tensors, "time", SimpleNamespace(monotonic=lambda: next(clock) / 1000))
    report = tensors.count({})
    assert report["cut_short"] is False
    assert report["list_seconds"] >= 0.3 > tensors.SCAN_SECONDS
    assert report["seconds"] > report["list_seconds"]
    assert asked == [1]


def test_mlx_arrays_are_counted():
    mx = pytest.importorskip("mlx.core")
    kept = mx.zeros((1049, 2))
    report = tensors.count({"mlx": 10**6})
    assert group(report, "1049x2", "mlx") == ("float32", 1, 1049 * 2 * 4)
    assert report["not_visible"]["mlx"] <= 10**6 - kept.nbytes


# What torch itself brought along is not listed then: on busy cores that alone takes too long.
QUICKLY = "gc.freeze()\n"


def count_all(worker):
    """A count that was not cut short: beside a waiting main it has 0.2 s, on whatever machine."""
    report = worker.count_tensors()
    return None if report["cut_short"] else report


@on_mps
def test_mps_tensors_are_told_without_an_op_a_synchronize_or_a_change(workers):
    worker = workers.start_mps(START + QUICKLY + """
big = torch.ones(1 << 20, device="mps")
views = [big[:10], big.view(1024, 1024)]
torch.ops.softmps.reset_counters()
assert mpsbar.attach()
wait()
c = counters()
print("calls", c["ops"], c["synchronize"], c["empties"], c["is_available"], big.sum().item())
""")  # fmt: skip
    report = wait_for(lambda: count_all(worker), "a whole count")
    mps = {g["shape"]: (g["dtype"], g["count"]) for g in report["groups"] if g["device"] == "mps"}
    assert mps == {
        "1048576": ("float32", 1), "10": ("float32", 1), "1024x1024": ("float32", 1),
    }  # fmt: skip
    assert sum(g["bytes"] for g in report["groups"] if g["device"] == "mps") == 4 * MiB
    assert report["not_visible"]["mps"] == 0
    assert 0 < report["list_seconds"] < report["seconds"]
    worker.process.send_signal(signal.SIGUSR1)
    assert worker.wait_line("calls") == "calls 0 0 0 0 1048576.0"


@on_mps
def test_what_only_autograd_holds_is_not_visible(workers):
    worker = workers.start_mps(START + QUICKLY + """
weight = torch.ones(1 << 20, device="mps", requires_grad=True)
loss = (weight * 2).exp().sum()
assert mpsbar.attach()
wait()
""")  # fmt: skip
    report = wait_for(lambda: count_all(worker), "a whole count")
    # exp keeps its result for backward; the scalar's block is larger than the scalar.
    assert report["not_visible"]["mps"] == 4 * MiB + 256 - 4


@on_mps
def test_on_mps_the_census_follows_the_rule_of_free(workers):
    worker = workers.start_mps(START + """
x = torch.ones(8, device="mps")
def compute():
    while True: torch.ops.softmps.busy_(x, 0.01)
threading.Thread(target=compute, daemon=True).start()
from mpsbar.agent import tensors
tensors.DEADLINE_SECONDS = 0.5
assert mpsbar.attach()
while True: time.time()
""")  # fmt: skip
    answer = worker.ask_until_refused("thread_computing", "tensors")
    assert answer["state"] == "busy"


@on_mps
def test_a_census_during_training_is_taken_between_its_steps(workers):
    worker = workers.start_mps(START + QUICKLY + """
model = torch.nn.Linear(64, 64).to("mps")
assert mpsbar.attach()
while True:
    model(torch.ones(8, 64, device="mps")).sum().backward()
""")  # fmt: skip
    report = wait_for(lambda: count_all(worker), "a whole count")
    assert group(report, "64x64", "mps")[0] == "float32"


def test_it_leaves_nothing_behind(torch):
    kept = torch.zeros(1061)
    before = sys.getrefcount(kept)
    tensors.count({})
    assert sys.getrefcount(kept) == before


@pytest.mark.parametrize("main", ["while True: time.time()", "queue.Queue().get()"])
@two_sizes("counts", small=[4], whole=[8])
def test_a_tuple_that_another_thread_fills_meanwhile_can_still_grow(workers, main, counts):
    """Python refuses to resize a tuple that has a second reference, as in a list of all objects."""
    worker = workers.start(f"""{UNPACED}
import queue, threading, time, torch, mpsbar
many = [[number] for number in range({25_000 * counts})]
found = []
def fill():
    while True:
        try: tuple([number] for number in range(40))
        except SystemError as error: found.append(repr(error))
def tell():
    while True:
        time.sleep(0.1)
        print("errors", found, flush=True)
for target in (fill, fill, tell): threading.Thread(target=target, daemon=True).start()
assert mpsbar.attach()
{main}
""")
    for _ in range(counts):
        worker.count_tensors()
    for _ in range(3):
        assert worker.wait_line("errors") == "errors []"
