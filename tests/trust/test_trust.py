"""The quick core of the suites: each attack once or a few times (make doors, make faults: all)."""

import subprocess

import pytest

from trust import doors, faults, soak
from trust.figures import Figures, Skipped

assert subprocess  # these start processes

QUICK_DOORS = (
    doors.planted_sockets,
    doors.free_of_a_reused_pid,
    doors.limit_of_a_reused_pid,
    lambda: doors.strangers_call(3),
    lambda: doors.exchanged_between_check_and_connect(40),
    lambda: doors.stop_of_a_reused_pid(3),
)


@pytest.mark.parametrize("attack", QUICK_DOORS)
def test_doors(private, attack):
    try:
        tried, held = attack()
    except Skipped as reason:
        pytest.skip(str(reason))
    assert held == tried > 0


QUICK_FAULTS = (
    lambda: faults.killed_workers(20),
    lambda: faults.killed_recorder(2),
    lambda: faults.stopped_workers(2),
    lambda: faults.held_gil(1),
    lambda: faults.forks_amid_answers(20),
    lambda: faults.out_of_descriptors(2),
)


@pytest.mark.parametrize("attack", QUICK_FAULTS)
def test_faults(private, attack):
    tried, survived = attack()
    assert survived == tried > 0


def test_a_short_soak(private):
    ticks, good = soak.soak(ticks=60)
    assert good == ticks == 60


def test_what_is_lost_is_counted_and_fails(capsys):
    figures = Figures("suite")
    figures.run("good", lambda: (3, 3))
    figures.run("bad", lambda: (3, 1))
    figures.run("broken", lambda: (1 // 0, 0))
    assert figures.lost == 3
    assert figures.end() == 1
    assert capsys.readouterr().out.endswith("suite: tried 7, survived 4, lost 3\n")
