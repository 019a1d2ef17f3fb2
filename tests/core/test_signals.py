"""The names of signals are those of the system's own headers, as far as this computer has them."""

import signal
import sys

import pytest

from mpsbar.core.signals import CRASHES, name_exit, name_signal

IS_MAC = sys.platform == "darwin"


def test_every_signal_of_this_system_has_its_name():
    ranges = ("SIGRTMIN", "SIGRTMAX")  # limits of the signals without a name
    expected = {int(each): each.name for each in signal.Signals if each.name not in ranges}
    assert {number: name_signal(number, IS_MAC) for number in range(1, 32)} == expected


def test_without_the_system_only_what_both_number_alike_has_a_name():
    for number in range(70):
        both = {name_signal(number, is_mac) for is_mac in (False, True)}
        assert name_signal(number, None) == (both.pop() if len(both) == 1 else None)


def test_each_system_has_every_crash():
    for is_mac in (False, True):
        assert set(CRASHES) <= {name_signal(number, is_mac) for number in range(32)}


@pytest.mark.parametrize(
    ("code", "platform", "words"),
    [(0, "linux", "exit code 0"), (1, "linux", "exit code 1"), (-11, "linux", "SIGSEGV"), (-10, "darwin", "SIGBUS"),
     (-10, "linux", "SIGUSR1"), (-35, "linux", "signal 35")],
)  # fmt: skip
def test_how_a_child_process_ended(code, platform, words):
    assert name_exit(code, platform) == words
