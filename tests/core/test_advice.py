"""The next steps: each when it applies and not otherwise, the most useful first, never many."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GB, MB, make_backend, make_process, make_worker

from mpsbar.core.advice import MAX_ADVICE, advise
from mpsbar.core.findings import Advice, Health, Reason
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Backend, LastFree, Snapshot, Worker

FINE = Health()
MAC = Machine(os="macOS 26.3.2", os_version=(26, 3, 2), memory_total=100 * GB)
LINUX = Machine(os="Linux 6.8", memory_total=100 * GB)


process = partial(make_process, python="/env/bin/python")


def worker(pid=1, *, torch="2.15.0", **fields):
    return make_worker(pid, frameworks={"torch": torch}, **fields)


def unused(state):
    """The allocators of a worker whose torch has not used its GPU."""
    return {"backends": (make_backend(state=state),)}


def scene(*workers, processes=(), machine=MAC):
    return Snapshot(0.0, tuple(workers), machine, tuple(processes))


def verdict(*reasons):
    order = ("ok", "warning", "critical")
    return Health(max((r.level for r in reasons), key=order.index, default="ok"), reasons)


def because(code, level="warning", pid=None):
    return verdict(Reason(code, level, {}, pid))


def codes(*arguments):
    return [advice.code for advice in advise(*arguments)]


def test_where_all_is_well_there_is_nothing_to_do():
    assert advise(scene(), FINE) == ()
    assert advise(scene(worker(driver=GB, allocated=GB)), FINE) == ()


SHORT = [
    "pressure",
    "memory_filling",
    "gpu_filling",
    "gpu_memory",
    "process_memory",
    "swap_growing",
]


@pytest.mark.parametrize("code", SHORT)
def test_a_cache_is_freed_when_memory_is_short(code):
    small = worker(2, allocated=0, reserved=256 * MB - 1)
    health = because(code)
    caching = scene(worker(1, allocated=0, reserved=256 * MB), small)
    assert advise(caching, health)[0] == Advice("free_cache", {"cached": 256 * MB}, 1)
    assert "free_cache" not in codes(scene(small), health)
    assert "free_cache" not in codes(caching, FINE)


def test_a_cache_is_freed_when_it_is_a_reason_itself():
    shown = scene(worker(1, allocated=0, reserved=9), worker(2, allocated=0, reserved=5))
    assert advise(shown, because("cache", "ok", 2)) == (Advice("free_cache", {"cached": 5}, 2),)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("main_computing", ["free_when_possible"]),
        (None, ["free_when_possible"]),  # an older agent does not tell
        ("free_threaded", []),
    ],
)
def test_a_busy_one_is_to_be_freed_later_where_that_can_be(reason, expected):
    last = LastFree(1, 0.0, "busy", reason=reason)
    shown = scene(worker(2, allocated=0, reserved=5, last_free=last))
    assert codes(shown, because("cache", "ok", 2)) == expected


def test_several_caches_are_one_step():
    shown = scene(worker(1, allocated=0, reserved=9), worker(2, allocated=0, reserved=5))
    health = verdict(Reason("cache", "ok", {}, 1), Reason("cache", "ok", {}, 2))
    assert advise(shown, health) == (Advice("free_all", {"cached": 14, "number": 2}),)


@pytest.mark.parametrize(
    "cannot",
    [{"state": "gone"}, {"methods": frozenset(["stats"])}, {"reserved": None}],
)
def test_who_cannot_free_is_not_asked_to(cannot):
    shown = scene(worker(1, **{"allocated": 0, "reserved": GB, **cannot}))
    assert advise(shown, because("cache", "warning", 1)) == ()


def test_a_worker_near_the_budget_gets_less_to_do():
    health = because("process_memory", "critical", 2)
    shown = scene(worker(1, driver=90 * GB), worker(2, driver=25 * GB))
    assert advise(shown, health) == (
        Advice("smaller_batch", pid=2), Advice("shorter_input", pid=2),
    )  # fmt: skip


@pytest.mark.parametrize("code", ["pressure", "memory_filling", "gpu_filling", "gpu_memory"])
@pytest.mark.parametrize("level", ["warning", "critical"])
def test_when_the_machine_fills_up_the_largest_shrinks(code, level):
    shown = scene(
        worker(1, driver=21 * GB), worker(2, driver=1, process=process(2, footprint=22 * GB)),
        processes=[process(3, footprint=19 * GB, python=None)],
    )  # fmt: skip
    assert advise(shown, because(code, level))[0] == Advice("smaller_batch", pid=2)


@pytest.mark.parametrize(("gigabytes", "is_asked"), [(20, False), (21, True)])
def test_who_has_less_than_a_fifth_is_not_to_blame(gigabytes, is_asked):
    shown = scene(worker(1, driver=gigabytes * GB))
    assert ("smaller_batch" in codes(shown, because("pressure"))) is is_asked


@pytest.mark.parametrize("failed", [None, {}, {"float16": 0}, {"float32": 3}])
def test_nothing_failed(failed):
    assert advise(scene(), FINE, failed) == ()


def test_float32_where_the_probe_failed():
    failed = {"float16": 2, "bfloat16": 1, "float32": 1}
    values = {"dtypes": "bfloat16, float16", "operations": 3}
    assert advise(scene(), FINE, failed) == (Advice("float32", values),)


def macos(*version):
    return replace(MAC, os_version=version or None)


@pytest.mark.parametrize(
    ("version", "machine", "package"),
    [
        ("2.12.1", macos(26, 3), "torch"), ("2.9.0", macos(15, 0), "torch"),
        # 2.15 installs on macOS 14, but MPS asks for 15 there.
        ("2.9.0", macos(14, 7), "torch>=2.13,<2.15"), ("1.13.1", macos(), "torch>=2.13,<2.15"),
        ("2.12.0a0+git1", macos(26), "torch"),
        ("2.9.0", macos(13, 6), None),  # 2.12 and later ask for macOS 14
        ("2.13.0", macos(26), None), ("2.13.0+cpu", macos(26), None), ("2.15.0", macos(26), None),
        ("3.0", macos(26), None), ("", macos(26), None), ("new", macos(26), None),
        ("99999999999.1", macos(26), None),
    ],
)  # fmt: skip
def test_newer_torch(version, machine, package):
    old = worker(1, torch=version, executable="/env/bin/python", python="3.12.4")
    found = advise(scene(old, machine=machine), FINE)
    values = {"version": version, "python": "/env/bin/python", "package": package}
    assert found == ((Advice("newer_torch", values, 1),) if package else ())


@pytest.mark.parametrize(
    ("fields", "is_told"),
    [({"device": "cpu"}, False), ({"device": "mlx"}, False), (unused("not initialised"), False),
     (unused("not known"), True), ({"python": "3.9.6"}, False), ({"python": None}, True),
     ({"state": "gone"}, False)],
)  # fmt: skip
def test_newer_torch_is_for_mps_and_for_pythons_that_can_have_it(fields, is_told):
    assert codes(scene(worker(1, torch="2.8.0", **fields)), FINE) == ["newer_torch"] * is_told


def test_the_oldest_torch_is_named():
    shown = scene(worker(1, torch="2.12.0"), worker(2, torch="2.8.0"), worker(3, torch="2.10.0"))
    (advice,) = advise(shown, FINE)
    assert (advice.pid, advice.values["version"]) == (2, "2.8.0")


def test_a_leak_is_looked_into():
    shown, leak = scene(worker(1)), because("leak", pid=1)
    why = {"why": "leak"}
    assert advise(shown, leak) == (
        Advice("instruments", why, 1), Advice("activity_monitor", why, 1),
        Advice("torch_profiler", why, 1),
    )  # fmt: skip
    assert advise(replace(shown, machine=LINUX), leak) == (Advice("torch_profiler", why, 1),)


FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


@pytest.mark.parametrize(
    ("value", "is_on"), [("1", True), ("yes", False), ("", False), ("0", False), ("00", False)]
)
def test_the_fallback_to_the_cpu(value, is_on):
    seen = process(1, settings={FALLBACK: value})
    assert codes(scene(worker(1, process=seen), processes=[seen]), FINE) == ["fallback_on"] * is_on


@pytest.mark.parametrize(
    ("gpu_client", "is_told"), [(True, True), (False, False), (None, False)]
)  # on Linux it is None
def test_the_fallback_of_unconnected_processes_is_advised_on_if_they_use_the_gpu(
    gpu_client, is_told
):
    seen = process(1, python=None, settings={FALLBACK: "1"}, gpu_client=gpu_client)
    assert codes(scene(processes=[seen]), FINE) == ["fallback_on"] * is_told


def test_the_largest_unconnected_is_connected_first():
    strangers = [
        process(1, footprint=5), process(2, "notebook kernel", python="/nb/python", footprint=9),
        process(3, footprint=99, python=None),  # no Python, no agent
        process(4, footprint=99, parent=7),  # comes with its parent
    ]  # fmt: skip
    shown = scene(worker(7), processes=[*strangers, process(7)])
    values = {"python": "/nb/python", "kind": "notebook", "number": 2}
    assert advise(shown, FINE) == (Advice("connect", values, 2),)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train.py", "script"),
        ("uvicorn app:app", "server"),
        ("a.ipynb", "notebook"),
    ],
)
def test_how_to_connect_depends_on_what_it_is(name, kind):
    (advice,) = advise(scene(processes=[process(1, name)]), FINE)
    assert advice.values["kind"] == kind


def test_a_server_on_mps_may_use_another_framework():
    server = process(1, "uvicorn app:app")
    shown = scene(worker(1, process=server), processes=[server])
    assert advise(shown, FINE) == (Advice("core_ml_or_mlx", pid=1),)
    on_mlx = scene(worker(1, device="mlx", process=server), processes=[server])
    assert advise(on_mlx, FINE) == ()
    assert advise(scene(worker(1, process=process(1))), FINE) == ()


@pytest.mark.parametrize(
    ("utilization", "health", "is_told"),
    [(90.0, FINE, True), (89.9, FINE, False), (None, FINE, False), (100.0, because("pressure"), False),
     (100.0, because("cache", "ok"), True)],
)  # fmt: skip
def test_a_busy_gpu_where_nothing_is_wrong(utilization, health, is_told):
    busy = replace(MAC, gpu=Gpu(utilization=utilization))
    seen = [process(1, gpu_percent=10.0), process(2, gpu_percent=80.0)]
    shown = scene(*(worker(p.pid, process=p) for p in seen), processes=seen, machine=busy)
    why = {"why": "speed"}
    expected = (
        Advice("torch_profiler", why, 2), Advice("activity_monitor", why, 2),
        Advice("instruments", why, 2),
    )  # fmt: skip
    assert advise(shown, health) == (expected if is_told else ())


def test_a_gpu_that_others_keep_busy_is_not_torchs():
    busy = replace(MAC, gpu=Gpu(utilization=100.0))
    assert advise(scene(machine=busy), FINE) == ()


def test_the_five_most_useful_of_many():
    server = process(1, "uvicorn app:app", settings={FALLBACK: "1"}, footprint=50 * GB)
    shown = scene(
        worker(1, torch="2.8.0", allocated=0, driver=50 * GB, process=server),
        processes=[server, process(2)],
    )
    health = verdict(Reason("pressure", "critical"), Reason("leak", "warning", {}, 1))
    assert codes(shown, health, {"float16": 1}) == [
        "free_cache", "smaller_batch", "shorter_input", "float32", "newer_torch",
    ]  # fmt: skip
    assert codes(shown, FINE) == ["newer_torch", "fallback_on", "connect", "core_ml_or_mlx"]


NUMBER = st.none() | st.integers(0, 2**63)
NAMES = st.sampled_from(["train.py", "uvicorn app:app", "notebook kernel", ""])
PROCESSES = st.builds(
    Process, st.integers(0, 4), st.just(1.0), NAMES, st.sampled_from([(), ("torch",), ("mlx",)]),
    parent=st.none() | st.integers(0, 4), python=st.none() | st.just("/p"), footprint=NUMBER,
    settings=st.dictionaries(st.just(FALLBACK), st.text(max_size=2)),
    gpu_client=st.sampled_from([None, True, False]), gpu_percent=st.none() | st.floats(0, 100),
)  # fmt: skip
BACKENDS = st.builds(
    Backend, st.sampled_from(["mps", "mlx", "cuda", "cpu"]), st.just("torch"),
    st.sampled_from(["in use", "not known"]), NUMBER, NUMBER, NUMBER,
)  # fmt: skip
WORKERS = st.builds(
    Worker, st.integers(0, 4), NAMES, st.sampled_from(["live", "busy", "gone"]), st.none(),
    python=st.none() | st.text(max_size=4), frameworks=st.dictionaries(st.just("torch"), st.text(max_size=5)),
    backends=st.lists(BACKENDS, max_size=2).map(tuple), process=st.none() | PROCESSES,
)  # fmt: skip
MACHINES = st.builds(
    Machine, os=st.sampled_from([None, "macOS 14", "Linux"]), memory_total=NUMBER,
    os_version=st.none() | st.lists(st.integers(0, 30), max_size=3).map(tuple),
    gpu=st.builds(Gpu, utilization=st.none() | st.floats(0, 100)),
)  # fmt: skip
CODES = [*SHORT, "leak", "cache", "unknown"]
REASONS = st.builds(
    Reason, st.sampled_from(CODES), st.sampled_from(["ok", "warning", "critical"]),
    pid=st.none() | st.integers(0, 4),
)  # fmt: skip


@given(
    st.builds(
        Snapshot, st.just(0.0), st.lists(WORKERS, max_size=3).map(tuple), MACHINES,
        st.none() | st.lists(PROCESSES, max_size=3).map(tuple),
    ),
    st.lists(REASONS, max_size=4),
    st.dictionaries(st.sampled_from(["float16", "float32"]), st.integers(0, 9)),
)  # fmt: skip
def test_any_snapshot_gets_few_steps_and_none_twice(snapshot, reasons, failed):
    found = advise(snapshot, verdict(*reasons), failed)
    assert len(found) <= MAX_ADVICE
    assert len({advice.code for advice in found}) == len(found)
    assert found == advise(snapshot, verdict(*reasons), failed)
