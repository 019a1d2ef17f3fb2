"""Whether this Mac runs on a battery, from psutil."""

import psutil

# It only slows the refresh down. psutil 7.2 keeps Python's lock while the power daemon answers, so
# it is asked seldom.
INTERVAL = 30.0


def read_on_battery() -> bool:
    """A UPS counts as a battery. Raises RuntimeError where the sources of power cannot be read."""
    battery = psutil.sensors_battery()
    return battery is not None and not battery.power_plugged  # None: a Mac without a battery
