"""Alerts: each problem once, at once if it is worse, resolved only when it is; no floods."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_process, make_worker

from mpsbar.core.actions import WatchEnd
from mpsbar.core.alerts import CAUSES, MAX_PER_MINUTE, SINGLE_EVENTS, Alerts
from mpsbar.core.events import ALERT_CAUSES, COOL_DOWN
from mpsbar.core.findings import Health, Reason
from mpsbar.core.gpu import Gpu
from mpsbar.core.health import _ORDER, LEVELS, judge
from mpsbar.core.machine import Machine
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import Trends

MB, GB = 1 << 20, 1 << 30
KNOWN = Machine(
    memory_total=64 * GB, memory_available=30 * GB, swap_used=0, pressure="normal",
    gpu=Gpu(memory_in_use=5 * GB, memory_budget=48 * GB),
)  # fmt: skip


def process(pid=7, started=100.0, footprint=2 * GB, peak=3 * GB):
    return make_process(
        pid, f"train{pid}.py", started=started, footprint=footprint, footprint_peak=peak
    )


def worker(pid=7, started=100.0, state="live", held=GB):
    seen = process(pid, started)
    return make_worker(pid, f"train{pid}.py", state=state, driver=held, allocated=0, process=seen)


def snap(time, *reasons, workers=(worker(),), processes=(process(),), machine=KNOWN):
    level = max((reason.level for reason in reasons), key=LEVELS.index, default="ok")
    return Snapshot(time, workers, machine, processes, Health(level, reasons))


def because(code, level="warning", pid=None):
    return Reason(code, level, {}, pid)


class Engine(Alerts):
    """The alerts with a tracker in front, as in the monitor."""

    def __init__(self, causes=ALERT_CAUSES, cool_down=COOL_DOWN):
        super().__init__()
        self.causes, self.cool_down = frozenset(causes), cool_down
        self.tracker = ProcessTracker()

    def update(self, snapshot):
        ended = self.tracker.update(snapshot)
        return self.consider(snapshot, self.tracker, ended)


PRESSURE, CRITICAL = because("pressure"), because("pressure", "critical")
LEAK = because("leak", pid=7)


def play(alerts, times, *reasons, **more):
    """The alerts while the same reasons hold, as (time, kind, key)."""
    alerted = []
    for time in times:
        found = alerts.update(snap(time, *reasons, **more))
        alerted += [(time, alert.kind, alert.key) for alert in found]
    return alerted


def test_an_alert_is_raised_once_and_resolved_once_the_reason_stays_absent():
    alerts = Engine()
    assert play(alerts, range(0, 3600, 2), PRESSURE) == [(0, "raised", "pressure")]
    assert play(alerts, range(3600, 5000, 2)) == [(3630, "recovered", "pressure")]


def test_the_alert_carries_whom_it_is_about():
    (alert,) = Engine().update(snap(0, LEAK))
    assert (alert.code, alert.level, alert.pid, alert.started) == ("leak", "warning", 7, 100.0)
    assert (alert.kind, alert.key, alert.name) == ("raised", "leak-7-100", "train7.py")
    assert alert.reason is LEAK


@pytest.mark.parametrize("code", sorted(CAUSES))
def test_every_code_has_a_cause_that_can_be_switched_off(code):
    assert play(Engine(), [0], because(code))
    others = [cause for cause in ALERT_CAUSES if cause != CAUSES[code]]
    assert play(Engine(others), range(0, 60, 2), because(code)) == []


def test_every_cause_that_can_be_switched_off_has_a_code():
    assert {*CAUSES.values(), *SINGLE_EVENTS.values()} == set(ALERT_CAUSES)


def test_health_has_no_code_that_was_forgotten_here():
    # Swap in use may last for days: it is shown, but interrupts nobody.
    assert set(_ORDER) - {"unknown", "pressure_unknown", "swap_used"} == set(CAUSES)


def test_what_is_only_worth_knowing_is_no_alert():
    assert play(Engine(), range(0, 60, 2), because("cache", "ok", 7)) == []


def test_what_is_not_judged_yet_is_no_alert():
    alerts = Engine()
    assert play(alerts, [0], because("not_judged", "ok"), processes=None, workers=()) == []
    assert play(alerts, [1], because("unknown", "ok"), machine=Machine()) == []


def test_rising_to_critical_alerts_at_once():
    alerts = Engine()
    assert play(alerts, [0, 2], PRESSURE) == [(0, "raised", "pressure")]
    assert play(alerts, [4, 6], CRITICAL) == [(4, "worse", "pressure")]
    assert play(alerts, range(8, 300, 2), PRESSURE) == []
    assert play(alerts, [300], CRITICAL) == []  # it was alerted less than ten minutes ago
    assert play(alerts, range(302, 700, 2), PRESSURE) == []
    assert play(alerts, [700], CRITICAL) == [(700, "worse", "pressure")]


def test_a_cool_down_before_the_same_is_raised_again():
    alerts = Engine(cool_down=100)
    assert play(alerts, [0, 2], PRESSURE) == [(0, "raised", "pressure")]
    assert play(alerts, range(4, 40, 2)) == [(34, "recovered", "pressure")]
    assert play(alerts, range(40, 120, 2), PRESSURE) == [(100, "raised", "pressure")]


def test_a_worse_level_does_not_wait_for_the_cool_down():
    alerts = Engine()
    play(alerts, [0], PRESSURE)
    assert play(alerts, range(2, 40, 2)) == [(32, "recovered", "pressure")]
    assert play(alerts, [40], CRITICAL) == [(40, "worse", "pressure")]


def test_flapping_gives_neither_a_storm_nor_a_false_recovery():
    alerts, alerted = Engine(), []
    for time in range(0, 3000, 2):
        reasons = [PRESSURE] if time // 20 % 2 == 0 else []
        alerted += play(alerts, [time], *reasons)
    assert alerted == [(0, "raised", "pressure")]


def test_two_workers_and_two_causes_are_four_things():
    alerts = Engine()
    pair = (worker(7), worker(8))
    both = (process(7), process(8))
    reasons = [because(code, pid=pid) for code in ("leak", "cache") for pid in (7, 8)]
    alerted = play(alerts, [0, 2], *reasons, workers=pair, processes=both)
    assert [key for _, _, key in alerted] == [
        "leak-7-100",
        "leak-8-100",
        "cache-7-100",
        "cache-8-100",
    ]


def test_several_codes_of_one_cause_share_an_alert():
    alerts = Engine()
    alerted = play(alerts, [0], because("memory_filling"), because("gpu_memory"))
    assert alerted == [(0, "raised", "memory")]
    assert play(alerts, range(2, 300, 2), because("gpu_memory")) == []


def test_a_worker_that_ends_did_not_recover():
    alerts = Engine()
    play(alerts, [0], LEAK)
    assert play(alerts, range(2, 1000, 2), workers=(), processes=()) == []
    assert alerts._states == {}


def test_the_same_pid_of_another_process_is_another_thing():
    alerts = Engine()
    assert play(alerts, [0], LEAK) == [(0, "raised", "leak-7-100")]
    new = {"workers": (worker(7, 200.0),), "processes": (process(7, 200.0),)}
    assert play(alerts, range(2, 60, 2), LEAK, **new) == [(2, "raised", "leak-7-200")]


def test_a_start_that_is_not_known_for_a_while_is_no_other_process():
    alerts = Engine()
    blind = {"workers": (replace(worker(), process=None),), "processes": None}
    assert play(alerts, [0, 2], LEAK, **blind) == [(0, "raised", "leak-7")]
    assert play(alerts, [4, 6], LEAK) == []
    assert play(alerts, [8, 10], LEAK, **blind) == []


@pytest.mark.parametrize(
    ("reason", "blind"),
    [
        (PRESSURE, {"machine": Machine(swap_used=1)}),
        (because("swap_growing"), {"machine": Machine(pressure="normal")}),
        (because("memory_filling"), {"machine": Machine(pressure="normal")}),
        (because("gpu_memory"), {"machine": Machine(pressure="normal"), "workers": ()}),
        (LEAK, {"workers": (worker(state="busy"),)}),
        (LEAK, {"workers": (replace(worker(), process=None),), "processes": None}),
        (because("process_memory", pid=7), {"workers": (), "processes": None}),
        (because("process_memory", pid=7), {"workers": (), "processes": (process(footprint=None),)}),
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_not_recovered(reason, blind):
    alerts = Engine()
    play(alerts, range(0, 400, 2), reason)
    assert play(alerts, range(400, 800, 2), **blind) == []
    alerted = play(alerts, range(800, 900, 2))
    assert [(time, kind) for time, kind, _ in alerted] == [(830, "recovered")]


def test_a_verdict_that_failed_is_no_recovery():
    alerts = Engine()
    play(alerts, [0], PRESSURE)
    assert play(alerts, range(2, 100, 2), because("not_judged", "ok")) == []


def test_sleep_gives_neither_a_burst_nor_a_false_recovery():
    alerts = Engine()
    play(alerts, range(0, 400, 2), PRESSURE, LEAK)
    wake = 30_000
    # The trend of a leak begins anew after a gap: for five minutes nobody can tell.
    assert play(alerts, range(wake, wake + 300, 2), PRESSURE) == []
    alerted = play(alerts, range(wake + 300, wake + 400, 2), PRESSURE)
    assert alerted == [(wake + 330, "recovered", "leak-7-100")]


def test_what_begins_around_a_wake_up_waits_ten_seconds():
    alerts = Engine()
    play(alerts, [0, 2])
    assert play(alerts, range(5000, 5020, 2), PRESSURE) == [(5010, "raised", "pressure")]


def test_a_reason_that_comes_and_goes_while_it_is_quiet_is_not_away():
    alerts = Engine()
    play(alerts, [0], PRESSURE)
    play(alerts, [5000])
    play(alerts, [5002], PRESSURE)
    assert play(alerts, range(5004, 5040, 2)) == [(5034, "recovered", "pressure")]


def test_a_clock_set_back_neither_repeats_nor_silences_for_ever():
    alerts = Engine()
    assert play(alerts, [100_000], PRESSURE) == [(100_000, "raised", "pressure")]
    assert play(alerts, range(1000, 1040, 2), PRESSURE) == []
    assert play(alerts, range(1040, 1080, 2)) == [(1070, "recovered", "pressure")]
    assert play(alerts, range(1080, 1800, 2), PRESSURE) == [(1600, "raised", "pressure")]


def test_many_at_once_are_alerted_over_time_the_worst_first():
    alerts = Engine()
    many = [worker(pid) for pid in range(1, 41)]
    reasons = [
        because("leak", "critical" if pid > 38 else "warning", pid) for pid in range(40, 0, -1)
    ]
    at = {"workers": tuple(many), "processes": tuple(each.process for each in many)}
    alerted = play(alerts, range(0, 58, 2), *reasons, **at)
    assert [key for _, _, key in alerted] == [f"leak-{pid}-100" for pid in range(40, 34, -1)]
    assert len(play(alerts, range(58, 62, 2), *reasons, **at)) == MAX_PER_MINUTE


def test_a_cause_switched_off_meanwhile_is_not_resolved():
    alerts = Engine()
    play(alerts, [0], PRESSURE)
    alerts.causes = frozenset({"leak"})
    assert play(alerts, range(2, 200, 2)) == []


def test_memory_is_bounded():
    alerts = Engine(cool_down=1e9)
    for step in range(3000):
        leaking = worker(step + 1)
        alerts.update(
            snap(
                step * 50,
                because("leak", pid=leaking.pid),
                workers=(leaking,),
                processes=(leaking.process,),
            )
        )
        alerts.watch_end(WatchEnd(step, 1.0, "x", on=True))
    assert len(alerts._states) <= 500
    assert len(alerts._watched) <= 200


def test_an_end_is_alerted_once_with_the_last_known_values():
    alerts = Engine(())
    alerts.watch_end(WatchEnd(7, 100.0, "train7.py", on=True))
    assert play(alerts, range(200, 210, 2)) == []
    assert play(alerts, [210], workers=(), processes=()) == []
    (alert,) = alerts.update(snap(212, workers=(), processes=()))
    assert (alert.kind, alert.pid, alert.name) == ("ended", 7, "train7.py")
    # It started at 100 and was last seen at 208.
    assert alert.reason.values == {"held": GB, "peak": 3 * GB, "ran": 108.0}
    assert alerts._watched == {}
    assert play(alerts, [214, 216], workers=(), processes=()) == []


def test_failed_scans_are_no_end():
    alerts = Engine(())
    alerts.watch_end(WatchEnd(7, 100.0, "train7.py", on=True))
    blind, empty = {"workers": (), "processes": None}, {"workers": (), "processes": ()}
    assert play(alerts, range(0, 100, 2), **blind) == []
    assert play(alerts, [100], **empty) == []
    assert play(alerts, [102]) == []
    assert play(alerts, [104], **empty) == []
    assert play(alerts, [106], **blind) == []
    assert play(alerts, [108], **empty) == [(108, "ended", "ended-7-100")]


@pytest.mark.parametrize("state", ["live", "busy"])
def test_a_worker_without_torch_is_there_as_long_as_its_agent_is(state):
    alerts = Engine(())
    alerts.watch_end(WatchEnd(7, None, "prepare.py", on=True))
    there = replace(worker(state=state), process=None)
    assert play(alerts, range(0, 20, 2), workers=(there,), processes=()) == []
    gone = replace(there, state="gone")
    assert play(alerts, [20, 22], workers=(gone,), processes=()) == [(22, "ended", "ended-7")]


def test_an_agent_that_left_a_process_that_runs_is_no_end():
    alerts = Engine(())
    alerts.watch_end(WatchEnd(7, 100.0, "train7.py", on=True))
    assert play(alerts, range(0, 20, 2), workers=(worker(state="gone"),)) == []


def test_a_pid_of_another_process_is_an_end_at_once():
    alerts = Engine(())
    alerts.watch_end(WatchEnd(7, 100.0, "train7.py", on=True))
    alerted = play(alerts, [0], workers=(), processes=(process(7, 200.0),))
    assert alerted == [(0, "ended", "ended-7-100")]


def test_ends_wait_for_the_quiet_after_a_wake_up_and_can_be_called_off():
    alerts = Engine(())
    alerts.watch_end(WatchEnd(7, 100.0, "train7.py", on=True))
    alerts.watch_end(WatchEnd(8, 100.0, "other.py", on=True))
    play(alerts, [0], processes=(process(7), process(8)))
    alerts.watch_end(WatchEnd(8, 100.0, "train.py", on=False))
    alerts.watch_end(WatchEnd(9, 1.0, "train.py", on=False))
    alerted = play(alerts, range(9000, 9030, 2), workers=(), processes=())
    assert alerted == [(9010, "ended", "ended-7-100")]


# Looks that are 1 to 40 s apart, now and then a sleep or a clock set back, of any reasons.
_STEPS = st.one_of(st.integers(1, 40), st.sampled_from([61, 5000, -3, -10_000]))
_SIGHT = st.sampled_from(["warning", "critical", "ok", None])
_SCANS = st.lists(st.tuples(_STEPS, _SIGHT, _SIGHT, st.booleans()), max_size=150)


@settings(max_examples=300, deadline=None)
@given(_SCANS, st.sampled_from([60.0, 600.0]))
def test_no_sequence_of_snapshots_alerts_too_often(scans, cool_down):
    alerts, now, calm = Engine(cool_down=cool_down), 1e6, 1e6
    last: dict[str, tuple[float, int]] = {}
    is_open: dict[str, bool] = {}
    alerts.update(snap(now))
    for step, pressure, leak, sees in scans:
        if not 0 <= step <= 60:
            calm = now + step + 10
            cooling = {
                key: last_alert
                for key, last_alert in last.items()
                if now - last_alert[0] < cool_down
            }
            last = {key: (min(at, now + step), level) for key, (at, level) in cooling.items()}
        now += step
        reasons = [because("pressure", pressure)] if pressure else []
        reasons += [because("leak", leak, 7)] if leak else []
        found = alerts.update(snap(now, *reasons, processes=(process(),) if sees else None))
        assert len({alert.key for alert in found}) == len(found) <= 2
        assert not found or now >= calm
        for alert in found:
            if alert.kind == "recovered":
                assert is_open.pop(alert.key)
                continue
            level = LEVELS.index(alert.level)
            assert level > 0
            at, before = last.get(alert.key, (float("-inf"), 0))
            assert now - at >= cool_down or (level > before and alert.kind == "worse")
            last[alert.key], is_open[alert.key] = (now, level), True


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["there", "blind", "missing"]), max_size=40))
def test_an_end_is_alerted_once_and_never_after_a_single_scan(scans):
    alerts, missed, alerted = Engine(()), 0, 0
    alerts.watch_end(WatchEnd(7, 100.0, "train7.py", on=True))
    for number, scan in enumerate(scans):
        processes = {"there": (process(),), "blind": None, "missing": ()}[scan]
        found = alerts.update(snap(number * 2, workers=(), processes=processes))
        missed = {"there": 0, "blind": missed, "missing": missed + 1}[scan]
        assert len(found) == (missed >= 2 and not alerted)
        alerted += len(found)


def test_the_real_verdicts_of_a_leaking_run_lead_to_one_alert():
    """health.judge and its history in front, as in the monitor."""
    history, health, alerts, alerted = Trends(), Health(), Engine(), []
    for time in range(0, 2400, 2):
        grown = 2 * GB + min(time, 1200) * MB
        leaking = replace(worker(), process=process(footprint=grown))
        seen = Snapshot(float(time), (leaking,), KNOWN, (leaking.process,))
        history.add(seen)
        health = judge(seen, history, health)
        alerted += [a.kind for a in alerts.update(replace(seen, health=health))]
    assert alerted == ["raised", "recovered"]
