"""A clock for time spans that count while the computer sleeps, and that nobody can set.

The history and the reader of kernel messages need the same one.
"""

import time

# On macOS the monotonic clock runs on during sleep; on Linux it stands still, and this one runs.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def read_uptime() -> float:
    """Returns seconds since some fixed moment, on Linux since the computer was started."""
    return time.clock_gettime(_CLOCK)
