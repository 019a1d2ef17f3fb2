"""The quick core of the suites: each attack once or a few times (make doors, make faults: all)."""

import subprocess
import sys

import pytest

from trust import doors, faults, hosts, soak, surroundings
from trust.figures import Figures, SkippedError

assert subprocess  # these start processes

QUICK_DOORS = (
    doors.planted_sockets,
    doors.anothers_socket_under_a_pid,
    lambda: doors.strangers_call(3),
    lambda: doors.exchanged_between_check_and_connect(40),
    lambda: doors.anothers_home(
        commands=[["enable", "--jupyter"], ["status", "--format", "{held}"]]
    ),
    lambda: doors.anothers_home_kept_by_sudo([["login", "on"], ["disable", "--all"]]),
    lambda: doors.use_of_a_reused_pid("Stop", 3),
    lambda: doors.use_of_a_reused_pid("Free", 4),
    lambda: doors.use_of_a_reused_pid("Limit", 4),
)


@pytest.mark.parametrize("attack", QUICK_DOORS)
def test_doors(private, attack):
    try:
        tried, held = attack()
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert held == tried > 0


QUICK_FAULTS = (
    lambda: faults.killed_workers(20),
    lambda: faults.killed_recorder(2),
    lambda: faults.stopped_workers(2),
    lambda: faults.held_gil(1),
    lambda: faults.forks_amid_answers(20),
    lambda: faults.out_of_descriptors(2),
    lambda: hosts.ends_while_asked(4),
    lambda: hosts.green_hosts(4),
    lambda: hosts.subinterpreters([sys.executable, *hosts.find_pythons()[-1:]], 2),
    lambda: hosts.killed_mlx_workers(4),
    lambda: surroundings.full_disk(1),
    lambda: surroundings.set_clocks(1),
    lambda: surroundings.read_only_home(
        (["status", "--format", "{held}"], ["enable", "--jupyter"])
    ),
)


@pytest.mark.parametrize("attack", QUICK_FAULTS)
def test_faults(private, attack):
    try:
        tried, survived = attack()
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert survived == tried > 0


def test_children_of_a_data_loader_are_below_its_row(private):
    """Not that each tick is whole: beside other tests one may be late."""
    assert hosts.watch_children(8)[2] >= 6


def test_a_short_soak(private):
    # A reading may come too late beside other tests, whose processes are seen too: with these some
    # of the numbers may grow once, with a leak each time. If anything grew: 0.
    assert any(soak.soak(ticks=60) >= (60, 50) for _ in range(3))


@pytest.mark.parametrize(
    ("name", "step"), [("objects", 300), ("descriptors", 1), ("threads", 1), ("RSS in kB", 300)]
)
def test_what_grows_without_end_is_found(name, step):
    level = {"objects": 35_000, "descriptors": 20, "threads": 2, "RSS in kB": 37_000}
    assert soak.find_growth([level] * soak.SAMPLES) == []
    samples = [level | {name: level[name] + number * step} for number in range(soak.SAMPLES)]
    assert soak.find_growth(samples) == [name]


def test_what_is_lost_is_counted_and_fails(capsys):
    figures = Figures("suite")
    figures.run("good", lambda: (3, 3))
    figures.run("bad", lambda: (3, 1))
    figures.run("broken", lambda: (1 // 0, 0))
    assert figures.lost == 3
    assert figures.end() == 1
    assert capsys.readouterr().out.endswith("suite: tried 7, survived 4, lost 3\n")
