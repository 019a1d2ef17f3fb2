"""A run that becomes slower is noticed, with what coincided; phases, ends and noise are not."""

import random
from dataclasses import replace

import pytest
from samples import GB, MAC, make_process, make_snapshot, make_training

from mpsbar.core.alerts import Alerts
from mpsbar.core.findings import Health, Reason
from mpsbar.core.health import judge
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.core.slow_down import UNDETECTABLE, SpeedWatch
from mpsbar.core.snapshot import LastFree
from mpsbar.core.trends import Trends
from mpsbar.ui.text.alerts import say_reason

START = 1_000_000.0


def run(rate, *, name="Epoch 3", fraction=0.5, left=9000.0):
    outer = RunBar("", fraction * 100, 100, "epoch", None, left)
    return RunProgress(outer, RunBar(name, 5, 10, "it", rate))


def watch(rates, *, step=5.0, machine=lambda at: MAC, worker=lambda at: {}, others=lambda at: ()):
    """The slow-down after each reading; `rates` are speeds, or whole RunProgress."""
    speeds, found = SpeedWatch(), []
    for number, rate in enumerate(rates):
        at = number * step
        progress = rate if isinstance(rate, RunProgress) else run(rate)
        training = make_training(progress=progress, **worker(at))
        snapshot = make_snapshot(
            training, time=START + at, machine=machine(at), processes=others(at)
        )
        speeds.add(snapshot)
        found.append(speeds.find(training.pid))
    return found


STEADY, SLOW = [3.1] * 60, [0.9] * 30


def test_half_the_speed_for_some_minutes():
    found = watch(STEADY + SLOW)
    first = next(index for index, slow in enumerate(found) if slow)
    assert first == 60 + 24 - 1  # not before it has lasted
    slow = found[first]
    assert (slow.before, slow.now, slow.unit, slow.cause) == (3.1, 0.9, "it", None)
    assert slow.since == START + 60 * 5.0


@pytest.mark.parametrize(
    "rates",
    [
        [3.1] * 12 + SLOW + [0.9] * 60,  # only its warm-up was faster
        STEADY + [3.1 * 0.6] * 60,  # not by half
        STEADY + [0.9] * 20 + [3.1] * 60,  # not for long
        STEADY + [0.0] * 60,  # stands still: it evaluates, or saves
        [*STEADY, *[run(0.9, name="Validation")] * 60],  # another phase
        [*STEADY, *[run(0.9, fraction=0.99)] * 60],  # the last stretch
        [*STEADY, *[run(0.9, left=30.0)] * 60],
    ],
)
def test_what_is_no_slow_down(rates):
    assert not any(watch(rates))


def test_a_speed_that_was_never_steady_has_no_half():
    dice = random.Random(1)
    rates = [dice.choice((0.5, 1.0, 5.0, 8.0)) for _ in range(100)]
    assert not any(watch(rates + [0.4] * 60))


def test_epochs_are_one_phase_and_validation_between_them_does_not_disturb():
    rates = []
    for epoch in range(8):
        rates += [run(3.0 if epoch < 5 else 1.0, name=f"Epoch {epoch}")] * 15
        rates += [run(40.0, name="Validation")] * 5
    assert watch(rates)[-1].before == 3.0


def test_hysteresis_and_recovery():
    found = watch(STEADY + SLOW + [1.9] * 30 + [2.9] * 13)
    assert found[-14].now == 1.9  # better, not well
    assert found[-1] is None


def test_ticks_that_come_faster_change_nothing():
    rates = [rate for rate in STEADY + SLOW for _ in range(5)]
    assert watch(rates, step=1.0)[-1].before == 3.1


def test_sleep_starts_over():
    speeds = SpeedWatch()
    for number, rate in enumerate(STEADY + SLOW):
        at = START + number * 5.0 + (4000 if number >= 60 else 0)
        speeds.add(make_snapshot(make_training(progress=run(rate)), time=at))
    assert speeds.find(4711) is None


def test_another_process_with_the_same_pid_starts_over():
    def worker(at):
        return {"process": make_process(4711, started=100.0 if at < 300 else 200.0)}

    assert not any(watch(STEADY + SLOW, worker=worker))


@pytest.mark.parametrize("failed", [150.0, 500.0])  # before, and after the slow-down was found
def test_a_failed_scan_does_not_start_over(failed):
    def worker(at):
        process = make_process(4711, started=100.0)
        return {"process": None if at == failed else process}

    assert watch(STEADY + SLOW + [0.9] * 20, worker=worker)[-1] is not None


def test_another_process_after_failed_scans_starts_over():
    def worker(at):
        if 290 <= at < 310:
            return {"process": None}
        return {"process": make_process(4711, started=100.0 if at < 300 else 200.0)}

    assert not any(watch(STEADY + SLOW, worker=worker))


def machine_with(**fields):
    return lambda at: replace(MAC, **fields) if at >= 290 else MAC


@pytest.mark.parametrize(
    ("given", "cause", "words"),
    [
        (
            {"others": lambda at: (make_process(4711, is_napping=at >= 300),), "machine": machine_with(swap_used=6 * GB)},
            "nap", "; macOS has slowed it down since, because its windows are hidden (App Nap)",
        ),
        ({"others": lambda at: (make_process(4711, is_napping=True),)}, None, ""),  # all the time
        ({"others": lambda at: (make_process(9, is_napping=at >= 300),)}, None, ""),  # another one
        ({"machine": machine_with(swap_used=6 * GB)}, "swap", "; at the same time, swap grew by 6.0 GB"),
        ({"machine": machine_with(pressure="warning")}, "pressure", "; at the same time, memory pressure rose"),
        ({"machine": lambda at: replace(MAC, on_battery=at >= 300)}, "battery", "; the computer has been on battery since"),
        (
            {"worker": lambda at: {"last_free": LastFree(1, START + 280, "done", GB) if at > 280 else None}},
            "free", "; its cache was freed shortly before",
        ),
        (
            {"others": lambda at: (make_process(9, "game", gpu_percent=60.0 if at >= 300 else 1.0),)},
            "other", "; game began to use the GPU",
        ),
        (
            {"worker": lambda at: {"fallbacks": int(max(0.0, at - 295) * 2)}},
            "fallback", "; more of its operations have run on the CPU since, because MPS lacks them",
        ),
        ({"worker": lambda at: {"fallbacks": int(at * 3.1 if at < 300 else 930 + (at - 300) * 0.9)}}, None, ""),  # one a step
        ({"worker": lambda at: {"fallbacks": int(at >= 300)}}, None, ""),  # a single one
        ({"machine": lambda at: replace(MAC, swap_used=6 * GB, pressure="warning")}, None, ""),  # all the time
        ({"machine": lambda at: replace(MAC, swap_used=None, pressure=None)}, None, ""),
    ],
)  # fmt: skip
def test_what_coincided_is_told_and_nothing_else(given, cause, words):
    slow = watch(STEADY + SLOW, **given)[-1]
    assert slow.cause == cause
    trends = Trends()
    trends.speeds._runs[4711] = SpeedWatchRun(slow)
    snapshot = make_snapshot(make_training(progress=run(0.9)), time=START)
    (reason,) = (r for r in judge(snapshot, trends, Health()).reasons if r.code == "slowed")
    sentence = say_reason(reason, "train.py")
    assert sentence.startswith("train.py slowed from 3.1 to 0.9 it/s at ")
    assert sentence.endswith(words)


class SpeedWatchRun:
    def __init__(self, slow):
        self.slow = slow


def test_the_words_where_one_takes_many_seconds():
    values = {"before": 0.2, "now": 0.05, "unit": "", "since": START}
    assert "from 5.0 to 20.0 s/it at " in say_reason(Reason("slowed", "warning", values, 1), "a.py")


def alert(rates, causes=("speed",), sleeps_at=10**9):
    """Alerts of a whole course, through health, tracker and engine."""
    engine, trends, tracker, health = Alerts(), Trends(), ProcessTracker(), Health()
    engine.causes = frozenset(causes)
    alerts = []
    for number, rate in enumerate(rates):
        at = number * 5.0 + (4000.0 if number >= sleeps_at else 0.0)
        snapshot = make_snapshot(make_training(progress=run(rate)), time=START + at)
        trends.add(snapshot)
        health = judge(snapshot, trends, health)
        snapshot = replace(snapshot, health=health)
        tracker.update(snapshot)
        alerts += engine.consider(snapshot, tracker)
    return [(alert.code, alert.kind) for alert in alerts]


def test_one_alert_and_its_end():
    assert alert(STEADY + SLOW * 4) == [("slowed", "raised")]
    assert alert(STEADY + SLOW + [3.1] * 80) == [("slowed", "raised"), ("slowed", "recovered")]


def test_it_can_be_switched_off():
    assert alert(STEADY + SLOW * 4, causes=("leak",)) == []


def test_after_sleep_nothing_is_resolved_before_it_could_be_noticed():
    looks = int(UNDETECTABLE / 5.0) - 2
    assert alert(STEADY + SLOW + SLOW * 4, sleeps_at=90)[:1] == [("slowed", "raised")]
    assert alert((STEADY + SLOW + SLOW * 4)[: 90 + looks], sleeps_at=90) == [("slowed", "raised")]
