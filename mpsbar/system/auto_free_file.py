"""The file and the lock by which all monitors of this user agree on automatic frees.

The menu bar app and `mpsbar top` may run side by side. A choice for one process is kept in a file
that each of them follows; and only the one that holds a lock frees, until it ends.
"""

import math
from typing import Any

from mpsbar.core.actions import AutoFreeRule, SetAutoFree
from mpsbar.core.auto_free import Key
from mpsbar.core.untrusted import is_whole
from mpsbar.system import paths
from mpsbar.system.files import read_json_to_change, read_own_json, read_stamp, write_own_json
from mpsbar.system.ownership import is_running
from mpsbar.system.single_instance import Claim, claim

_LOCK = "auto-free"
_MAX_BYTES = 64 * 1024
_MAX_RULES = 200
_MAX_PID = 2**31
_LARGEST = 2**60

Rules = dict[Key, AutoFreeRule]


class SharedAutoFree:
    """Used on the ticking thread alone."""

    def __init__(self) -> None:
        self._file = paths.auto_free_file()  # kept: it is read at every tick
        self._claim: Claim | None = None
        self._stamp: object = None  # of the file, when it was last read

    def may_free(self) -> bool:
        """Returns whether this monitor is the one that frees; where locks do not work, each is."""
        if self._claim is None:
            self._claim = claim(_LOCK)
        return self._claim is not None

    def write(self, action: SetAutoFree) -> None:
        """Keep one more choice, or drop it; OSError if that cannot be written.

        Its start must be known: after the process has ended, another may have its pid.
        """
        known = read_json_to_change(self._file, _MAX_BYTES, _parse) or {}
        rules = {key: rule for key, rule in known.items() if is_running(key[0])}
        rules.pop((action.pid, action.started), None)
        if action.rule != AutoFreeRule():
            rules[action.pid, action.started] = action.rule
        entries = [
            [pid, started, rule.keep_cache_below, rule.free_when_idle]
            for (pid, started), rule in list(rules.items())[-_MAX_RULES:]
        ]
        write_own_json(self._file, entries)

    def read(self) -> Rules | None:
        """Returns all choices; None if they are those of the last call."""
        stamp = read_stamp(self._file)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return read_own_json(self._file, _MAX_BYTES, _parse) or {}

    def close(self) -> None:
        if self._claim is not None:
            self._claim.close()


def _parse(entries: Any) -> Rules:
    if type(entries) is not list:
        raise TypeError
    rules: Rules = {}
    for pid, started, most, idle in entries[:_MAX_RULES]:
        if not (_is_pid(pid) and _is_time(started) and _is_size(most) and _is_flag(idle)):
            raise ValueError
        rules[pid, started] = AutoFreeRule(most, idle)
    return rules


def _is_pid(value: Any) -> bool:
    return type(value) is int and 1 < value < _MAX_PID


def _is_time(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _is_size(value: Any) -> bool:
    return value is None or is_whole(value, _LARGEST)


def _is_flag(value: Any) -> bool:
    return value is None or type(value) is bool
