"""Which of the processes someone wants to know the end of have ended. Pure.

Watched from any thread, looked through by the ticking one alone.
"""

from dataclasses import dataclass
from typing import Literal

from mpsbar.model.snapshot import Snapshot, Worker

Presence = Literal["there", "missing", "replaced", "unknown"]
# A single look may miss a process that is busy starting another program.
LOOKS = 2
_MOST = 200


@dataclass(slots=True)
class Ending:
    """A watched process and the last that was known of it; bytes."""

    pid: int
    started: float | None
    name: str
    held: int | None = None
    footprint_peak: int | None = None
    missed: int = 0


class Endings:
    def __init__(self) -> None:
        self._watched: dict[tuple[int, float | None], Ending] = {}

    def watch(self, pid: int, started: float | None, name: str) -> None:
        while len(self._watched) >= _MOST:
            self._watched.pop(next(iter(self._watched)), None)
        self._watched[pid, started] = Ending(pid, started, name)

    def unwatch(self, pid: int, started: float | None) -> None:
        self._watched.pop((pid, started), None)

    def is_watched(self, pid: int, started: float | None) -> bool:
        return (pid, started) in self._watched

    def look(self, snapshot: Snapshot) -> None:
        for ending in list(self._watched.values()):
            presence = find(snapshot, ending.pid, ending.started)
            if presence == "there":
                ending.missed = 0
                _remember(ending, snapshot)
            elif presence != "unknown":  # a look that failed says nothing, in either direction
                ending.missed += LOOKS if presence == "replaced" else 1

    def take(self) -> list[Ending]:
        """Those that have ended; each is told once."""
        ended = [ending for ending in list(self._watched.values()) if ending.missed >= LOOKS]
        for ending in ended:
            self.unwatch(ending.pid, ending.started)
        return ended


def find(snapshot: Snapshot, pid: int, started: float | None) -> Presence:
    """Is this very process there? Its pid may be another's by now."""
    worker = _worker(snapshot, pid)
    process = next((one for one in snapshot.processes or () if one.pid == pid), None)
    if process is None and worker is not None and worker.state != "gone":
        process = worker.process
        if process is None:
            return "there"  # it answers, or is only busy, and has no torch for others to see
    if process is not None:
        is_same = started is None or process.started == started
        return "there" if is_same else "replaced"
    return "unknown" if snapshot.processes is None else "missing"


def read_started(snapshot: Snapshot) -> dict[int, float]:
    """By pid, as far as it is known."""
    known = {process.pid: process.started for process in snapshot.processes or ()}
    for worker in snapshot.workers:
        if worker.process is not None:
            known.setdefault(worker.pid, worker.process.started)
    return known


def _worker(snapshot: Snapshot, pid: int) -> Worker | None:
    return next((worker for worker in snapshot.workers if worker.pid == pid), None)


def _remember(ending: Ending, snapshot: Snapshot) -> None:
    worker = _worker(snapshot, ending.pid)
    if worker is not None and worker.held is not None:
        ending.held = worker.held
    everyone = (*(snapshot.processes or ()), *((worker.process,) if worker else ()))
    for process in everyone:
        if process is not None and process.pid == ending.pid:
            known = (ending.footprint_peak, process.footprint_peak, process.footprint)
            ending.footprint_peak = max((n for n in known if n is not None), default=None)
