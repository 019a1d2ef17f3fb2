"""Which caches are freed without being asked, by snapshots that a test writes."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mpsbar.core.actions import AutoFreeRule, Free, Freed, SetAutoFree
from mpsbar.core.auto_free import BETWEEN_SECONDS, IDLE_SECONDS, PAUSE_SECONDS, AutoFree
from mpsbar.core.counters import Backend
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Machine, Process
from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import AutoFreeStatus, LastFree, Snapshot, Worker

GB = 1 << 30
KEEP = Settings(keep_cache_below="1GB")
IDLE = Settings(free_when_idle=True)
PRESSURE = Settings(free_at_critical_pressure=True)
LARGE = Health("ok", (Reason("cache", "ok", {}, 7),))
SHORT = Health("warning", (Reason("pressure", "warning", {}),))
STEP = 2.0


def look(time, cached=4 * GB, activity=0, percent=0.0, **more):
    backend = Backend("mps", "torch", "in use", GB, GB + cached, GB + cached, activity=activity)
    process = Process(7, 100.0, "train.py", ("torch",), gpu_percent=percent)
    worker = Worker(
        7, "train.py", more.pop("state", "live"), 0.0, methods=frozenset({"free"}),
        backends=(backend,), process=process, last_free=more.pop("last_free", None),
        progress=more.pop("progress", None),
    )  # fmt: skip
    machine = Machine(pressure=more.pop("pressure", "normal"))
    return Snapshot(time, (worker,), machine, (process,), **more)


def run(policy, seconds, start=0.0, **more):
    """All that is asked for in that time, with a look every two seconds: [(time, what)]."""
    found, time = [], start
    while time < start + seconds:
        frees, left_alone = policy.consider(look(time, **more))
        found += [(time, each) for each in (*frees, *left_alone)]
        time += STEP
    return found


def make(settings):
    policy = AutoFree()
    policy.apply(settings)
    return policy


def end(policy, time, freed=3 * GB):
    policy.note(Freed(7, "train.py", "done", freed, cause="keep_below"), time)


def test_nothing_is_freed_unless_it_is_switched_on():
    policy = make(Settings())
    assert run(policy, 600, health=LARGE, pressure="critical") == []


def test_a_cache_above_the_chosen_size_is_freed_once_the_process_pauses():
    [(time, free), *_] = run(make(KEEP), 60)
    assert (time, free, free.cause) == (6.0, Free(7), "keep_below")
    assert run(make(KEEP), 600, cached=GB) == []


@pytest.mark.parametrize("busy", ["activity", "share", "silent", "steps", "bar", "inner bar"])
def test_never_while_it_computes(busy):
    policy, time = make(KEEP), 0.0
    while time < 600:
        more = {
            "activity": {"activity": int(time)},
            "share": {"percent": 40.0},
            "silent": {"state": "busy"},
            "steps": {"progress": RunProgress(steps=int(time))},
            "bar": {"progress": RunProgress(RunBar("epoch", time))},
            "inner bar": {"progress": RunProgress(RunBar("epoch", 1), RunBar("batch", time))},
        }[busy]
        assert policy.consider(look(time, **more, pressure="critical")) == ([], [])
        time += STEP


def test_rates_that_change_alone_are_no_work():
    policy, frees = make(KEEP), []
    for number in range(20):
        bar = RunBar("epoch", 7, rate=1.0 / (number + 1), seconds_left=float(number))
        progress = RunProgress(bar, steps=3, steps_per_second=1.0 / (number + 1))
        frees += policy.consider(look(number * STEP, progress=progress))[0]
    assert frees == [Free(7)]


def test_an_idle_process_is_freed_after_a_minute_if_its_cache_is_large_or_memory_short():
    assert run(make(IDLE), 600) == []
    for health in (LARGE, SHORT):
        [(time, free), *_] = run(make(IDLE), 120, health=health)
        assert (time, free.cause) == (IDLE_SECONDS, "idle")
    assert run(make(IDLE), 600, cached=GB // 8, health=SHORT) == []


def test_under_critical_pressure_only_if_that_is_switched_on():
    [(_, free), *_] = run(make(PRESSURE), 60, pressure="critical")
    assert free.cause == "pressure"
    assert run(make(PRESSURE), 60, pressure="warning") == []
    assert run(make(IDLE), 50, pressure="critical") == []


def test_at_most_once_a_minute_whoever_freed_it_last():
    policy = make(KEEP)
    times = [time for time, _ in run(policy, 200)]  # each time it was busy after all
    assert all(b - a >= BETWEEN_SECONDS for a, b in pairwise(times))
    assert len(times) == 4
    last = LastFree(1, 20.0, "done")
    assert [time for time, _ in run(make(KEEP), 90, last_free=last)] == [80.0]
    pending = frozenset({Free(7)})
    assert run(make(KEEP), 200, pending=pending) == []


def test_a_cache_that_refills_at_once_is_left_alone_for_an_hour():
    policy, time, frees = make(KEEP), 0.0, []
    while time < 1000:
        asked, left_alone = policy.consider(look(time))
        for _ in asked:
            frees.append(time)
            end(policy, time)
        if left_alone:
            break
        time += STEP
    assert len(frees) == 3
    [outcome] = left_alone
    assert (outcome.state, outcome.freed, outcome.cause) == ("refilled", 9 * GB, "keep_below")
    status = policy.find_statuses(look(time))
    assert status == {7: AutoFreeStatus(AutoFreeRule(), is_left_alone=True)}
    assert run(policy, 3500, time + STEP) == []
    assert run(policy, 300, time + 3600) != []


def test_who_stays_small_for_long_begins_anew():
    policy, time = make(KEEP), 0.0
    for _ in range(10):
        [(time, _), *_] = run(policy, 100, time)
        end(policy, time)
        time += 400
        run(policy, 10, time - 10, cached=0)
    assert policy.find_statuses(look(time)) == {}


def test_another_choice_ends_being_left_alone():
    policy, time = make(KEEP), 0.0
    while not policy.find_statuses(look(time)):
        for _ in policy.consider(look(time))[0]:
            end(policy, time)
        time += STEP
    policy.apply(replace(KEEP, keep_cache_below="2GB"))
    assert run(policy, 20, time) != []


def test_a_choice_for_one_process_comes_first_and_ends_with_it():
    policy = make(KEEP)
    policy.set_rule(SetAutoFree(7, 100.0, AutoFreeRule(keep_cache_below=0)))
    assert run(policy, 100) == []
    policy.set_rule(SetAutoFree(7, 100.0, AutoFreeRule(keep_cache_below=2 * GB)))
    assert run(policy, 20, 100.0, cached=GB * 3 // 2) == []
    assert run(policy, 20, 120.0) != []
    policy = make(Settings())
    policy.set_rule(SetAutoFree(7, 100.0, AutoFreeRule(free_when_idle=True)))
    assert run(policy, 70, health=LARGE) != []
    policy.consider(Snapshot(200.0, processes=()))
    assert policy.find_statuses(look(202.0)) == {}
    other = look(204.0)
    worker = replace(other.workers[0], process=replace(other.workers[0].process, started=150.0))
    policy.set_rule(SetAutoFree(7, 100.0, AutoFreeRule(free_when_idle=True)))
    assert policy.find_statuses(replace(other, workers=(worker,))) == {}


def fail_scan(snapshot):
    """The same while the processes could not be listed: no start is known."""
    return replace(snapshot, processes=None, workers=(replace(snapshot.workers[0], process=None),))


def test_what_was_chosen_for_a_process_holds_while_scans_fail():
    policy = make(KEEP)
    policy.set_rule(SetAutoFree(7, 100.0, AutoFreeRule(keep_cache_below=0)))
    policy.consider(look(0.0))
    for time in range(2, 60, 2):
        failed = fail_scan(look(float(time)))
        assert policy.consider(failed) == ([], [])
        assert policy.find_statuses(failed) == {7: AutoFreeStatus(AutoFreeRule(keep_cache_below=0))}


def test_a_failed_scan_does_not_make_a_process_look_busy():
    policy = make(KEEP)
    assert run(policy, PAUSE_SECONDS - 1) == []
    frees, _ = policy.consider(fail_scan(look(PAUSE_SECONDS + 1)))
    assert [(free.pid, free.cause) for free in frees] == [(7, "keep_below")]


def test_a_recorded_machine_and_an_agent_without_free_are_not_asked():
    policy = make(KEEP)
    for time in range(0, 100, 2):
        snapshot = look(float(time))
        recorded = replace(snapshot, machine=Machine(recording="a Mac"))
        worker = replace(snapshot.workers[0], methods=frozenset({"stats"}))
        assert policy.consider(recorded) == ([], [])
        assert policy.consider(replace(snapshot, workers=(worker,)))[0] == []


def test_after_sleep_it_must_be_seen_idle_anew():
    policy = make(IDLE)
    run(policy, 58, health=LARGE)
    frees, _ = policy.consider(look(10_000.0, health=LARGE))
    assert frees == []


@given(some.lists(some.tuples(some.sampled_from([0, 0, 0, 1]), some.booleans()), max_size=300))
def test_whatever_happens_never_busy_and_never_twice_in_a_minute(steps):
    """Each step: whether it allocated, and whether a free that is asked for ends well."""
    policy = make(replace(KEEP, free_when_idle=True, free_at_critical_pressure=True))
    activity, last_work, last_free = 0, 0.0, float("-inf")
    for number, (allocated, ends_well) in enumerate(steps):
        time = number * STEP
        if allocated:
            activity, last_work = activity + 1, time
        snapshot = look(time, activity=activity, pressure="critical", health=LARGE)
        for free in policy.consider(snapshot)[0]:
            assert time - last_work >= PAUSE_SECONDS
            assert time - last_free >= BETWEEN_SECONDS
            last_free = time
            if ends_well:
                policy.note(Freed(7, "train.py", "done", GB, cause=free.cause), time)


def test_a_choice_that_is_taken_back_is_the_one_for_all_again():
    policy = make(KEEP)
    policy.set_rule(SetAutoFree(7, 100.0, AutoFreeRule(keep_cache_below=0)))
    policy.set_rule(SetAutoFree(7, 100.0, AutoFreeRule()))
    assert run(policy, 20) != []


def leave_alone(policy):
    """Returns when that was."""
    time = 0.0
    while True:
        asked, left_alone = policy.consider(look(time))
        for _ in asked:
            end(policy, time)
        if left_alone:
            return time
        time += STEP


def test_a_choice_for_a_process_that_is_left_alone_tries_it_again():
    policy = make(KEEP)
    time = leave_alone(policy)
    rule = AutoFreeRule(keep_cache_below=2 * GB)
    policy.set_rule(SetAutoFree(7, 100.0, rule))
    assert policy.find_statuses(look(time)) == {7: AutoFreeStatus(rule)}
    assert run(policy, 20, time + STEP) != []


@pytest.mark.parametrize(
    "outcome",
    [
        Freed(7, "train.py", "done", GB),  # a person asked for it
        Freed(7, "train.py", "busy", cause="keep_below"),
    ],
)
def test_only_automatic_frees_that_were_done_are_counted_as_refills(outcome):
    policy = make(KEEP)
    for number in range(300):
        asked, left_alone = policy.consider(look(number * STEP))
        assert left_alone == []
        for _ in asked:
            policy.note(outcome, number * STEP)


def test_the_large_cache_of_another_process_is_no_reason():
    other = Health("ok", (Reason("cache", "ok", {}, 8), Reason("leak", "ok", {}, 7)))
    assert run(make(IDLE), 120, health=other) == []


def test_a_worker_that_the_scan_has_not_found_keeps_its_choice():
    policy = make(Settings())
    rule = AutoFreeRule(free_when_idle=True)
    policy.set_rule(SetAutoFree(7, 100.0, rule))
    policy.consider(replace(look(0.0), processes=()))
    assert policy.find_statuses(look(2.0)) == {7: AutoFreeStatus(rule)}
