"""Changes settings of the host's Python for a moment during a Free, and restores them.

Each is given back only where it still is what we set: a value that the host sets meanwhile stays.
"""

import sys
from typing import Optional

# While the switch interval is this long, a thread that wants the GIL cannot take it from us.
KEEP_SECONDS = 0.25
# So many frames more than the host allows itself: our code may be called at the very limit.
EXTRA_FRAMES = 64


class _OriginalSettings:
    """Settings of the host that we changed for a moment, as they were."""

    interval: Optional[float] = None
    recursion: Optional[int] = None


def lengthen_interval() -> float:
    """Makes the switch interval KEEP_SECONDS, until `restore_interval`; returns the host's."""
    old = _OriginalSettings.interval = sys.getswitchinterval()
    sys.setswitchinterval(KEEP_SECONDS)
    return old


def allow_extra_frames() -> None:
    """Makes room for our own call on main, wherever the host stands; until
    `restore_recursion_limit`.
    """
    if _OriginalSettings.recursion is None:
        _OriginalSettings.recursion = sys.getrecursionlimit()
        sys.setrecursionlimit(_OriginalSettings.recursion + EXTRA_FRAMES)


def restore_interval() -> None:
    if _OriginalSettings.interval is not None and sys.getswitchinterval() == KEEP_SECONDS:
        # Half a microsecond more: Python cuts it to whole ones, and made 99 of 100.
        sys.setswitchinterval(_OriginalSettings.interval + 0.5e-6)
    _OriginalSettings.interval = None


def recursion_limit_of_host() -> Optional[int]:
    """Returns the host's limit, while ours is in force, else None."""
    return _OriginalSettings.recursion


def restore_recursion_limit() -> None:
    limit, _OriginalSettings.recursion = _OriginalSettings.recursion, None
    if limit is not None and sys.getrecursionlimit() == limit + EXTRA_FRAMES:
        try:
            sys.setrecursionlimit(limit)
        except RecursionError:  # on a thread that is itself that deep: a forked child's
            pass


def restore_settings() -> None:
    """Gives the host all its settings back; harmless when there is nothing to give."""
    restore_interval()
    restore_recursion_limit()
