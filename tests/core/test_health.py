"""The verdict: every threshold from both sides, leaks and warm-ups, and that nothing rings twice."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GB, MB, make_process, make_worker

from mpsbar.core.findings import Health, Reason
from mpsbar.core.gpu import Gpu
from mpsbar.core.health import LEVELS, judge
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Backend, Snapshot, Worker
from mpsbar.core.trends import Trends

FINE = Health()


def machine(**fields):
    """With normal pressure: where that is not known, that is a reason of its own."""
    fields.setdefault("pressure", "normal")
    gpu = {k: fields.pop(k) for k in ("memory_in_use", "memory_budget") if k in fields}
    return Machine(gpu=Gpu(**gpu), **fields)


process = partial(make_process, gpu_client=True)


def judge_once(the_machine=None, workers=(), processes=(), before=FINE, time=0.0):
    """The health of one snapshot without a past."""
    snapshot = Snapshot(time, tuple(workers), the_machine or Machine(), tuple(processes))
    return judge(snapshot, Trends(), before)


def watch(snapshots, before=FINE):
    """The health of each snapshot, given the one before."""
    history, verdicts = Trends(), []
    for snapshot in snapshots:
        history.add(snapshot)
        before = judge(snapshot, history, before)
        verdicts.append(before)
    return verdicts


def on(code, level="warning", pid=None):
    return Health(level, (Reason(code, level, {}, pid),))


def level_of(health, code, pid=None):
    found = [r.level for r in health.reasons if (r.code, r.pid) == (code, pid)]
    assert len(found) <= 1
    return found[0] if found else None


def flips(verdicts, code, pid=None):
    levels = [level_of(health, code, pid) for health in verdicts]
    return sum(a != b for a, b in pairwise(levels))


# --- nothing, pressure ------------------------------------------------------------------------


def test_nothing_could_be_read():
    assert judge_once() == Health("ok", (Reason("unknown", "ok"),))


@pytest.mark.parametrize(
    "snapshot",
    [
        {"the_machine": machine(pressure=None, memory_available=0)},
        {"the_machine": machine(pressure=None, swap_used=0)},
        {"the_machine": machine(pressure=None, memory_in_use=0)},
    ],
)
def test_one_number_is_enough_not_to_be_ignorant(snapshot):
    assert judge_once(**snapshot) == Health("ok", (Reason("pressure_unknown", "ok"),))


@pytest.mark.parametrize("pressure", ["warning", "critical"])
def test_pressure_is_the_systems_word(pressure):
    reason = Reason("pressure", pressure, {"pressure": pressure})
    assert judge_once(machine(pressure=pressure)) == Health(pressure, (reason,))


# --- budget -----------------------------------------------------------------------------------

# (percent of the budget, level before, level after)
BUDGET = [
    (89, None, None), (90, None, "warning"), (99, None, "warning"), (100, None, "critical"),
    (250, None, "critical"),
    (89, "warning", "warning"), (85, "warning", "warning"), (84, "warning", None),
    (99, "warning", "warning"), (100, "warning", "critical"),
    (97, "critical", "critical"), (96, "critical", "warning"), (85, "critical", "warning"),
    (84, "critical", None),
]  # fmt: skip


@pytest.mark.parametrize(("percent", "before", "after"), BUDGET)
def test_gpu_memory_against_the_budget(percent, before, after):
    used = machine(memory_in_use=percent, memory_budget=100)
    health = judge_once(used, before=on("gpu_memory", before) if before else FINE)
    assert level_of(health, "gpu_memory") == after
    assert health.level == (after or "ok")


@pytest.mark.parametrize(("percent", "before", "after"), BUDGET)
def test_a_process_against_the_budget(percent, before, after):
    past = on("process_memory", before, 7) if before else FINE
    budget = machine(memory_budget=100, memory_in_use=0)
    held = judge_once(budget, [make_worker(7, driver=percent)], before=past)
    charged = judge_once(budget, processes=[process(7, footprint=percent)], before=past)
    assert level_of(held, "process_memory", 7) == after
    assert level_of(charged, "process_memory", 7) == after


def test_without_the_machines_number_the_workers_are_summed():
    both = [make_worker(1, driver=50), make_worker(2, driver=45)]
    health = judge_once(machine(memory_budget=100), both)
    assert health.reasons == (Reason("gpu_memory", "warning", {"used": 95, "budget": 100}),)


def test_a_workers_torch_knows_the_budget_too():
    health = judge_once(
        None, [make_worker(1, driver=95, budget=100), make_worker(2, device="mlx", reserved=1)]
    )
    assert level_of(health, "process_memory", 1) == "warning"
    assert level_of(health, "gpu_memory") == "warning"


@pytest.mark.parametrize(("device", "has_budget"), [("mlx", True), ("cuda", False)])
def test_the_budget_is_what_any_allocator_on_metal_says(device, has_budget):
    worker = make_worker(1, device=device, reserved=95, budget=100)
    codes = [reason.code for reason in judge_once(None, [worker]).reasons]
    assert ("process_memory" in codes) is has_budget


@pytest.mark.parametrize(
    "innocent",
    [
        {"processes": [process(1, footprint=100, gpu_client=False)]},
        {"processes": [process(1, footprint=100, gpu_client=None)]},
        {"processes": [process(1, footprint=100, footprint_kind="rss")]},
        {"processes": [process(1, footprint=None)]},
        {
            "workers": [make_worker(1, driver=10, process=process(1, footprint=100))]
        },  # the rest is not the GPU's
        {
            "workers": [make_worker(1, device="cuda", reserved=100, budget=100)]
        },  # a card's own memory
        {"workers": [make_worker(1, driver=100, state="gone")]},
    ],
)
def test_who_is_not_accused_of_the_gpus_memory(innocent):
    assert not judge_once(machine(memory_budget=100, memory_in_use=0), **innocent).reasons


def test_a_worker_whose_counters_are_unknown_is_measured_by_its_footprint():
    silent = make_worker(1, state="busy", age=None, backends=(), process=process(1, footprint=95))
    health = judge_once(machine(memory_budget=100, memory_in_use=0), [silent])
    assert level_of(health, "process_memory", 1) == "warning"


@pytest.mark.parametrize("budget", [None, 0])
def test_without_a_budget_there_is_no_such_reason(budget):
    used = machine(memory_in_use=10 * GB, memory_budget=budget)
    assert not judge_once(used, [make_worker(1, driver=10 * GB)]).reasons


# --- cache ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percent", "before", "after"),
    [(19, None, None), (20, None, "ok"), (19, "ok", "ok"), (15, "ok", "ok"), (14, "ok", None),
     (15, "warning", "ok"), (14, "warning", None)],
)  # fmt: skip
@pytest.mark.parametrize("whole", ["memory_budget", "memory_total"])
def test_a_large_cache_is_worth_knowing(percent, before, after, whole):
    cached = make_worker(7, allocated=10, reserved=10 + percent)
    health = judge_once(
        machine(memory_in_use=0, **{whole: 100}), [cached],
        before=on("cache", before, 7) if before else FINE,
    )  # fmt: skip
    assert level_of(health, "cache", 7) == after
    assert health.level == "ok"


@pytest.mark.parametrize(
    ("available", "before", "after"),
    [(11, None, "ok"), (10, None, "warning"), (10, "ok", "warning"), (11, "ok", "ok"),
     (11, "warning", "warning"), (15, "warning", "warning"), (16, "warning", "ok")],
)  # fmt: skip
def test_it_is_a_warning_only_while_memory_is_short(available, before, after):
    health = judge_once(
        machine(memory_total=100, memory_available=available),
        [make_worker(7, allocated=0, reserved=50)],
        before=on("cache", before, 7) if before else FINE,
    )
    assert level_of(health, "cache", 7) == after


@pytest.mark.parametrize(
    "short", [{"pressure": "warning"}, {"memory_in_use": 95}, {"memory_in_use": 101}]
)
def test_pressure_and_a_full_gpu_are_short_of_memory(short):
    health = judge_once(
        machine(memory_budget=100, **short), [make_worker(7, allocated=0, reserved=50)]
    )
    assert level_of(health, "cache", 7) == "warning"


def test_a_cards_cache_is_measured_by_the_card_and_never_a_warning():
    card = make_worker(7, device="cuda", allocated=0, reserved=50, budget=100)
    health = judge_once(machine(pressure="critical", memory_total=10**6), [card])
    assert level_of(health, "cache", 7) == "ok"


def test_each_worker_is_named_for_its_cache():
    health = judge_once(
        machine(memory_total=100), [make_worker(n, allocated=0, driver=30) for n in (3, 2)]
    )
    assert [(r.code, r.pid) for r in health.reasons] == [("cache", 2), ("cache", 3)]
    assert health.reasons[0].values == {"cached": 30, "whole": 100}


# --- swap -------------------------------------------------------------------------------------


def swapping(*amounts, step=10.0):
    return [Snapshot(n * step, machine=machine(swap_used=used)) for n, used in enumerate(amounts)]


@pytest.mark.parametrize(
    ("growth", "before", "after"),
    [(512 * MB - 1, None, None), (512 * MB, None, "warning"), (40 * GB, None, "warning"),
     (128 * MB, "warning", "warning"), (128 * MB - 1, "warning", None)],
)  # fmt: skip
def test_swap_that_grows(growth, before, after):
    past = on("swap_growing", before) if before else FINE
    health = watch(swapping(GB, GB + growth), past)[1:]
    history = Trends()
    for snapshot in (shots := swapping(GB, GB + growth)):
        history.add(snapshot)
    assert level_of(judge(shots[-1], history, past), "swap_growing") == after
    if after and not before:
        assert health[0].reasons[0].values == {
            "growth": growth, "seconds": 10.0, "used": GB + growth,
        }  # fmt: skip


def test_the_growth_is_counted_from_its_beginning():
    verdict = watch(swapping(3 * GB, 2 * GB, 2 * GB, 2 * GB, 3 * GB))[-1]
    assert verdict.reasons[0].values == {"growth": GB, "seconds": 10.0, "used": 3 * GB}


def test_swap_that_stays_is_no_reason_and_one_that_grew_is_none_after_five_minutes():
    verdicts = watch(swapping(9 * GB, *[11 * GB] * 40))
    assert level_of(verdicts[1], "swap_growing") == "warning"
    assert level_of(verdicts[30], "swap_growing") == "warning"
    assert level_of(verdicts[31], "swap_growing") is None
    assert flips(verdicts, "swap_growing") == 2


def test_swap_before_sleep_and_after_it_are_not_compared():
    assert not watch(swapping(0, 9 * GB, step=61.0))[-1].reasons


# --- time until full --------------------------------------------------------------------------


def draining(per_second, end, seconds=120, step=2):
    """Available memory that falls to `end`."""
    times = range(0, seconds + 1, step)
    return [
        Snapshot(float(t), machine=machine(memory_available=end + int(per_second * (seconds - t))))
        for t in times
    ]


def filling(per_second, end, budget, seconds=120, step=2):
    times = range(0, seconds + 1, step)
    return [
        Snapshot(
            float(t),
            machine=machine(
                memory_in_use=max(0, end - int(per_second * (seconds - t))), memory_budget=budget
            ),
        )
        for t in times
    ]


TIME_LEFT = [
    (601, None, None), (599, None, "warning"), (121, None, "warning"), (119, None, "critical"),
    (1, None, "critical"),
    (601, "warning", "warning"), (899, "warning", "warning"), (901, "warning", None),
    (179, "critical", "critical"), (181, "critical", "warning"), (899, "critical", "warning"),
    (901, "critical", None),
]  # fmt: skip


@pytest.mark.parametrize(("seconds", "before", "after"), TIME_LEFT)
def test_the_time_until_memory_is_full(seconds, before, after):
    pace = 10 * MB
    history = Trends()
    for snapshot in (shots := draining(pace, pace * seconds)):
        history.add(snapshot)
    past = on("memory_filling", before) if before else FINE
    health = judge(shots[-1], history, past)
    assert level_of(health, "memory_filling") == after
    if after:
        values = health.reasons[0].values
        assert values["seconds"] == pytest.approx(seconds, rel=0.01)
        assert values["available"] == pace * seconds


@pytest.mark.parametrize(("seconds", "before", "after"), TIME_LEFT)
def test_the_time_until_the_gpus_budget_is_used_up(seconds, before, after):
    pace, budget = 10 * MB, 100 * GB
    history = Trends()
    for snapshot in (shots := filling(pace, budget - pace * seconds, budget)):
        history.add(snapshot)
    past = on("gpu_filling", before) if before else FINE
    assert level_of(judge(shots[-1], history, past), "gpu_filling") == after


def test_beyond_the_budget_there_is_no_time_left_to_tell():
    verdict = watch(filling(10 * MB, 30 * GB, 29 * GB))[-1]
    assert [r.code for r in verdict.reasons] == ["gpu_memory"]


@pytest.mark.parametrize(
    ("seconds", "is_reason"), [(58, False), (60, True)], ids=["too short", "a minute"]
)
def test_a_slope_needs_a_minute(seconds, is_reason):
    verdict = watch(draining(100 * MB, GB, seconds))[-1]
    assert (level_of(verdict, "memory_filling") is not None) is is_reason


@pytest.mark.parametrize(("pace", "is_reason"), [(1.5 * MB, False), (1.7 * MB, True)])
def test_what_any_desktop_does_is_no_slope(pace, is_reason):
    verdict = watch(draining(pace, 50 * MB))[-1]
    assert (level_of(verdict, "memory_filling") is not None) is is_reason


def available(*amounts):
    return [Snapshot(n * 2.0, machine=machine(memory_available=a)) for n, a in enumerate(amounts)]


@pytest.mark.parametrize(
    "amounts",
    [
        [20 * GB] * 40 + [2 * GB] * 80,  # a model was loaded at once
        [20 * GB - min(n, 10) * GB for n in range(120)],  # within 20 seconds
        [10 * GB + (n % 2) * 5 * GB for n in range(120)],  # up and down
        [2 * GB + n * 100 * MB for n in range(120)],  # getting better
        [GB] * 120,
        [0] * 120,
    ],
)
def test_what_is_no_consistent_decline(amounts):
    assert not any(health.reasons for health in watch(available(*amounts)))


def test_it_is_over_once_the_decline_is():
    amounts = [20 * GB - n * 100 * MB for n in range(100)] + [10 * GB] * 200
    verdicts = watch(available(*amounts))
    assert level_of(verdicts[99], "memory_filling") == "warning"
    assert level_of(verdicts[-1], "memory_filling") is None
    assert flips(verdicts, "memory_filling") == 2


def test_sleep_makes_no_slope():
    awake = available(*[30 * GB - n * MB for n in range(100)])
    later = [replace(s, time=s.time + 8 * 3600) for s in available(*[2 * GB] * 100)]
    assert not any(health.reasons for health in watch([*awake, *later]))


def test_a_clock_set_back_makes_no_slope():
    shots = available(*[30 * GB] * 100, *[2 * GB] * 100)
    shots[100:] = [replace(s, time=s.time - 5000) for s in shots[100:]]
    assert not any(health.reasons for health in watch(shots))


# --- leak -------------------------------------------------------------------------------------


def running(footprint, held=lambda t: GB, allocated=lambda t: GB, seconds=600, step=2):
    """A worker whose numbers are functions of the time."""
    shots = []
    for t in range(0, seconds + 1, step):
        seen = process(7, footprint=int(footprint(t)))
        counters = {"driver": held(t), "allocated": allocated(t)}
        ready = {k: None if v is None else int(v) for k, v in counters.items()}
        shots.append(
            Snapshot(float(t), (make_worker(7, process=seen, **ready),), processes=(seen,))
        )
    return shots


def test_a_leak_is_found_named_and_measured():
    verdicts = watch(running(lambda t: 2 * GB + t * MB))
    assert level_of(verdicts[149], "leak", 7) is None  # 298 s
    assert {r.code for health in verdicts[:150] for r in health.reasons} == {"unknown"}
    assert level_of(verdicts[-1], "leak", 7) == "warning"
    values = verdicts[-1].reasons[0].values
    assert values["seconds"] == pytest.approx(400)
    assert values["growth"] == pytest.approx(400 * MB, rel=0.02)
    assert flips(verdicts, "leak", 7) == 1


@pytest.mark.parametrize("scatter", [30, 200])
def test_a_leak_under_scatter_is_found(scatter):
    """Steps of training allocate and free all the time; here in a pattern of 7 steps."""
    verdicts = watch(running(lambda t: 2 * GB + t * MB + (t // 2 * 3 % 7) * scatter / 7 * MB))
    assert level_of(verdicts[-1], "leak", 7) == "warning"
    assert flips(verdicts, "leak", 7) == 1


@pytest.mark.parametrize(
    ("mb_per_second", "base", "found"),
    [
        # From the first third's median to the last one's are 400 of 600 seconds.
        (0.66, GB, True), (0.62, GB, False),  # 256 MB
        (1.05, 4000 * MB, True), (0.95, 4000 * MB, False),  # 10% of what it was
    ],
)  # fmt: skip
def test_a_leak_is_at_least_256_mb_and_a_tenth(mb_per_second, base, found):
    growing = running(lambda t: base + t * mb_per_second * MB)
    assert (level_of(watch(growing)[-1], "leak", 7) is not None) is found


@pytest.mark.parametrize(("mb_per_second", "stays"), [(0.34, True), (0.3, False)])
def test_a_leak_is_over_below_128_mb(mb_per_second, stays):
    history = Trends()
    for snapshot in (shots := running(lambda t: GB + t * mb_per_second * MB)):
        history.add(snapshot)
    health = judge(shots[-1], history, on("leak", pid=7))
    assert (level_of(health, "leak", 7) is not None) is stays


WARM = lambda t: GB + min(t, 150) * 20 * MB  # noqa: E731
NO_LEAKS = {
    "a warm-up that is over": running(WARM),
    "a warm-up of four minutes": running(lambda t: GB + min(t, 240) * 10 * MB),
    "growing with what torch holds": running(
        lambda t: 2 * GB + t * MB, lambda t: GB + t * MB, lambda t: GB + t * MB
    ),
    "growing with the driver alone (graphs)": running(
        lambda t: 2 * GB + t * MB, lambda t: GB + t * MB
    ),
    "filling pages that were reserved": running(
        lambda t: 2 * GB + t * MB, lambda t: 9 * GB, lambda t: GB + t * MB
    ),
    "a jump": running(lambda t: GB if t < 300 else 9 * GB),
    "up and down": running(lambda t: GB + (t % 100) * 20 * MB),
    "shrinking": running(lambda t: 9 * GB - t * MB),
    "a cache freed at half time": running(
        lambda t: 6 * GB if t < 300 else 2 * GB, lambda t: 5 * GB if t < 300 else GB
    ),
    "nothing known of torch": running(lambda t: GB + t * MB, lambda t: None, lambda t: None),
    "growing with counters known for half of the time": running(
        lambda t: 2 * GB + t * 3 * MB,
        lambda t: GB + t * 3 * MB if t > 280 else None,
        lambda t: None,
    ),
    "counters known for the last minute only": running(
        lambda t: GB + t * MB, lambda t: GB if t > 540 else None, lambda t: None
    ),
}


@pytest.mark.parametrize("shots", NO_LEAKS.values(), ids=NO_LEAKS)
def test_what_is_no_leak(shots):
    assert not any(level_of(health, "leak", 7) for health in watch(shots))


def test_a_worker_that_stopped_answering_is_not_accused():
    """Its counters repeat while its footprint grows: nobody knows what they would say."""
    shots = running(lambda t: GB + max(0, t - 100) * 4 * MB)
    busy = [
        replace(s, workers=(replace(s.workers[0], state="busy"),)) if s.time > 100 else s
        for s in shots
    ]
    assert not any(level_of(health, "leak", 7) for health in watch(busy))


def test_a_leak_that_stops_is_over_and_comes_once():
    verdicts = watch(running(lambda t: GB + min(t, 600) * 2 * MB, seconds=1500))
    assert level_of(verdicts[300], "leak", 7) == "warning"
    assert level_of(verdicts[475], "leak", 7) is None  # flat from the middle third on
    assert level_of(verdicts[-1], "leak", 7) is None
    assert flips(verdicts, "leak", 7) == 2


def test_another_process_with_the_same_pid_starts_innocent():
    shots = running(lambda t: GB + t * 2 * MB)
    other = process(7, footprint=3 * GB, started=999.0)
    new = Snapshot(602.0, (make_worker(7, process=other, driver=GB),), processes=(other,))
    assert level_of(watch([*shots, new])[-1], "leak", 7) is None


# --- all together -----------------------------------------------------------------------------


def test_worst_first_then_what_ends_soonest():
    full = machine(
        pressure="warning", memory_in_use=120, memory_budget=100,
        memory_total=100, memory_available=50,
    )  # fmt: skip
    health = judge_once(
        full, [make_worker(7, allocated=0, driver=92), make_worker(8, allocated=0, driver=28)]
    )
    assert [(r.level, r.code, r.pid) for r in health.reasons] == [
        ("critical", "gpu_memory", None), ("warning", "pressure", None),
        ("warning", "process_memory", 7), ("warning", "cache", 7), ("warning", "cache", 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "code"),
    [(89, 91, "gpu_memory"), (86, 92, "gpu_memory"), (98, 101, "gpu_memory")],
)
def test_a_value_that_hovers_rings_once(low, high, code):
    shots = [
        Snapshot(n * 2.0, machine=machine(memory_in_use=(low, high)[n % 2], memory_budget=100))
        for n in range(100)
    ]
    assert flips(watch(shots), code) <= 1


def test_a_cache_and_a_swap_that_hover_ring_once():
    cache = [
        Snapshot(n * 2.0, (make_worker(7, allocated=0, driver=(19, 21)[n % 2]),),
                 machine(memory_total=100, memory_available=(9, 11)[n // 2% 2]))
        for n in range(100)
    ]  # fmt: skip
    assert flips(watch(cache), "cache", 7) <= 2  # it comes, and memory is short once
    swap = swapping(GB, *[GB + (500, 530)[n % 2] * MB for n in range(29)])
    assert flips(watch(swap), "swap_growing") == 1


def test_linux_knows_pressure_swap_leaks_and_time_until_full():
    shots = [
        replace(s, machine=machine(
            pressure="warning", memory_total=64 * GB,
            memory_available=20 * GB - int(s.time) * 30 * MB, swap_used=int(s.time) * 10 * MB,
        ))
        for s in running(lambda t: 2 * GB + t * 2 * MB)
    ]  # fmt: skip
    assert {r.code for r in watch(shots)[-1].reasons} == {
        "pressure", "swap_growing", "leak", "memory_filling",
    }  # fmt: skip


NUMBER = st.none() | st.integers(0, 200) | st.integers(0, 2**63) | st.just(10**30)
LEVEL = st.sampled_from([None, "normal", "warning", "critical"])
BACKENDS = st.builds(
    Backend, st.sampled_from(["mps", "mlx", "cuda", "cpu", "?"]), st.just("torch"),
    st.sampled_from(["in use", "not known"]), NUMBER, NUMBER, NUMBER, NUMBER, NUMBER,
)  # fmt: skip
PROCESSES = st.builds(
    Process, st.integers(0, 3), st.sampled_from([1.0, 2.0]), st.just("x"), st.just(("torch",)),
    footprint=NUMBER, gpu_client=st.sampled_from([None, True, False]),
    footprint_kind=st.sampled_from(["footprint", "rss"]),
)  # fmt: skip
WORKERS = st.builds(
    Worker, st.integers(0, 3), st.just("x"), st.sampled_from(["live", "busy", "gone"]),
    st.just(0.0), backends=st.lists(BACKENDS, max_size=2).map(tuple),
    process=st.none() | PROCESSES,
)  # fmt: skip
MACHINES = st.builds(
    Machine, memory_total=NUMBER, memory_available=NUMBER, swap_used=NUMBER, pressure=LEVEL,
    gpu=st.builds(Gpu, memory_in_use=NUMBER, memory_budget=NUMBER),
)  # fmt: skip
SNAPSHOTS = st.builds(
    Snapshot, st.floats(0, 2000),
    st.lists(WORKERS, max_size=3, unique_by=lambda w: w.pid).map(tuple), MACHINES,
    st.none() | st.lists(PROCESSES, max_size=3, unique_by=lambda p: p.pid).map(tuple),
)  # fmt: skip
FULLER = {None: 0, "normal": 0, "warning": 1, "critical": 2}


@given(st.lists(SNAPSHOTS, min_size=1, max_size=12))
def test_any_machine_gets_a_verdict_that_agrees_with_itself(snapshots):
    for verdict in watch(snapshots):
        levels = [LEVELS.index(reason.level) for reason in verdict.reasons]
        assert levels == sorted(levels, reverse=True)
        assert verdict.level == (verdict.reasons[0].level if verdict.reasons else "ok")
        causes = [(reason.code, reason.pid) for reason in verdict.reasons]
        assert len(causes) == len(set(causes))
    assert watch(snapshots) == watch(snapshots)


@given(st.lists(SNAPSHOTS, min_size=1, max_size=6), LEVEL, LEVEL)
def test_more_pressure_never_makes_it_better(snapshots, one, other):
    low, high = sorted((one, other), key=lambda pressure: FULLER[pressure])
    *past, last = snapshots
    history, before = Trends(), (watch(past)[-1] if past else FINE)
    for snapshot in snapshots:
        history.add(snapshot)
    levels = [
        judge(
            replace(last, machine=replace(last.machine, pressure=pressure)), history, before
        ).level
        for pressure in (low, high)
    ]
    assert LEVELS.index(levels[0]) <= LEVELS.index(levels[1])


@given(st.floats(0, 2), st.lists(st.floats(0.851, 0.949), min_size=2, max_size=30))
def test_within_the_band_a_level_changes_at_most_once(start, shares):
    shots = [
        Snapshot(n * 2.0, machine=machine(memory_in_use=int(share * 10**6), memory_budget=10**6))
        for n, share in enumerate([start, *shares])
    ]
    assert flips(watch(shots)[1:], "gpu_memory") <= 1


# --- what is, not only what grows --------------------------------------------------------------


@pytest.mark.parametrize(
    ("swap", "available", "before", "level"),
    [
        (7.6, 1.3, None, "warning"),  # tests/readings/macos-m1-8gb: hours of swapping, no growth
        (4.0, 2.0, None, "warning"),
        (3.9, 2.0, None, None),
        (4.0, 2.1, None, None),  # there is room: what lies in swap is asleep
        (3.3, 2.3, "warning", "warning"),  # it is left later than it is entered
        (3.1, 2.0, "warning", None),
        (4.0, 2.5, "warning", None),
    ],
)
def test_swap_in_use_on_a_computer_of_8_gb(swap, available, before, level):
    past = on("swap_used", before) if before else FINE
    short = machine(
        memory_total=8 * GB, memory_available=int(available * GB), swap_used=int(swap * GB)
    )
    assert level_of(judge_once(short, before=past), "swap_used") == level


@pytest.mark.parametrize("missing", ["memory_total", "memory_available", "swap_used"])
def test_swap_in_use_is_not_judged_by_halves(missing):
    known = {"memory_total": 8 * GB, "memory_available": GB, "swap_used": 8 * GB} | {missing: None}
    assert level_of(judge_once(machine(**known)), "swap_used") is None


def test_unknown_pressure_is_not_well():
    known = machine(memory_total=8 * GB, memory_available=7 * GB, swap_used=0, pressure=None)
    assert [r.code for r in judge_once(known).reasons] == ["pressure_unknown"]
    assert judge_once(replace(known, pressure="normal")).reasons == ()


def test_a_large_cache_does_not_hide_what_is_unknown():
    known = machine(memory_total=8 * GB, memory_available=7 * GB, swap_used=0, pressure=None)
    cache = make_worker(1, driver=3 * GB, reserved=3 * GB, allocated=GB, budget=5 * GB)
    assert [r.code for r in judge_once(known, [cache]).reasons] == ["pressure_unknown", "cache"]
    assert [r.code for r in judge_once(None, [cache]).reasons] == ["unknown", "cache"]
    short = replace(known, memory_available=GB // 2)
    assert [r.code for r in judge_once(short, [cache]).reasons] == ["cache"]  # a warning


def test_a_cache_counts_where_memory_is_short_by_its_swap():
    short = machine(
        memory_total=8 * GB, memory_available=GB, swap_used=7 * GB, memory_budget=5 * GB
    )
    worker = make_worker(1, driver=3 * GB, reserved=2 * GB, allocated=GB)
    assert level_of(judge_once(short, [worker]), "cache", 1) == "warning"
