"""Whether a Mac runs on a battery, as psutil says."""

import pytest
from system.fakemac.psutil_double import Battery

from mpsbar.system.macos import sysctl

FULL, HALF = Battery(100.0, -2, power_plugged=True), Battery(50.0, 7200, power_plugged=False)
FAILED = RuntimeError("No battery capacity information in power sources info")


@pytest.mark.parametrize(
    ("battery", "on_battery"), [(FULL, False), (HALF, True), (None, False), (FAILED, None)]
)
def test_power(mac, computer, battery, on_battery):
    """A Mac without a battery is on mains."""
    mac.psutil.battery = battery
    assert computer.read_machine().on_battery is on_battery


def test_it_is_asked_seldom(mac, computer, clock):
    mac.psutil.battery = FULL
    assert computer.read_machine().on_battery is False
    mac.psutil.battery = HALF
    clock.now += sysctl.BATTERY_INTERVAL - 1
    assert computer.read_machine().on_battery is False
    clock.now += 1
    assert computer.read_machine().on_battery is True
