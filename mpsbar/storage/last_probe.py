"""The probe that holds for what runs now, read again only when something may have changed."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mpsbar.model.snapshot import Snapshot
from mpsbar.storage import paths

if TYPE_CHECKING:
    from mpsbar.model.dtypes import Probe

# Another process may have probed, torch may have been upgraded.
_SECONDS = 30.0


class LastProbe:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: object = None
        self._read_at = float("-inf")
        self._probe: Probe | None = None

    def read(self, snapshot: Snapshot) -> "Probe | None":
        """The very same object while nothing changes."""
        asked = (_pythons(snapshot), snapshot.probing is None, _stamp())
        if asked != self._asked or self._clock() - self._read_at > _SECONDS:
            self._asked, self._read_at = asked, self._clock()
            found = _find(snapshot)
            if found != self._probe:
                self._probe = found
        return self._probe


def _pythons(snapshot: Snapshot) -> frozenset[str | None]:
    workers = {worker.executable for worker in snapshot.workers}
    return frozenset(workers | {process.python for process in snapshot.processes or ()})


def _stamp() -> int | None:
    """When a result came or went."""
    folder = paths.probe_folder()
    try:
        return None if folder is None else folder.stat().st_mtime_ns
    except OSError:
        return None


def _find(snapshot: Snapshot) -> "Probe | None":
    if _stamp() is None:
        return None  # never probed: what would read it need not be imported
    from mpsbar.storage.results import find_result

    return find_result(snapshot)
