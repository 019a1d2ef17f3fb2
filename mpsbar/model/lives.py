"""Who is there from look to look, and who has gone, with what they held. Pure.

Filled by the ticking thread alone. The same pid with another start is another life.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mpsbar.model.endings import LOOKS
from mpsbar.model.history import GAP
from mpsbar.model.machine import Process
from mpsbar.model.snapshot import Gone, Snapshot, Worker

# An overnight kill is still told in the morning.
TOLD_SECONDS = 86400.0
_MOST_TOLD = 20
# Of those not connected: a look at a Python by doctor, or a test, is no run that someone misses.
_RUN_SECONDS = 30.0
_MOST = 200

Way = Literal["unknown", "stopped", "pressure"]


class Held(NamedTuple):
    """One process at one time; bytes, None: not known."""

    allocated: int | None = None
    cached: int | None = None
    held: int | None = None
    footprint: int | None = None


_NOTHING = Held()


@dataclass(slots=True)
class Life:
    pid: int
    started: float | None
    name: str
    first: float
    last: float
    devices: tuple[str, ...] = ()
    is_connected: bool = False  # or was, at some time
    is_head: bool = True  # no other life started it
    values: Held = _NOTHING
    known: Held = _NOTHING  # the last of each that was known
    peak: int | None = None  # of what it held
    footprint_peak: int | None = None
    missed: int = 0
    missed_at: float = 0.0


class Lives:
    def __init__(self) -> None:
        self.present: dict[int, Life] = {}
        self.gone: tuple[Gone, ...] = ()  # newest first

    def look(self, snapshot: Snapshot) -> list[tuple[Life, Gone]]:
        """Those that have ended by now; each is told once."""
        ended = self._meet(snapshot)
        for life in list(self.present.values()):
            if life.last == snapshot.time or snapshot.processes is None:
                continue  # a look that failed says nothing
            life.missed_at = life.missed_at if life.missed else snapshot.time
            life.missed += 1
            if life.missed >= LOOKS:
                ended.append(self._end(life, snapshot))
        self.remember((gone for life, gone in ended if _is_told(life)), snapshot.time)
        return ended

    def remember(self, gone: Iterable[Gone], now: float) -> None:
        """Also those that ended before we began to look."""
        known = {(one.pid, one.started): one for one in (*self.gone, *gone)}
        recent = [one for one in known.values() if now - one.ended <= TOLD_SECONDS]
        recent.sort(key=lambda one: -one.ended)
        if tuple(recent) != self.gone:
            self.gone = tuple(recent[:_MOST_TOLD])

    def _meet(self, snapshot: Snapshot) -> list[tuple[Life, Gone]]:
        replaced = []
        workers = {worker.pid: worker for worker in snapshot.workers if worker.state != "gone"}
        processes = {process.pid: process for process in snapshot.processes or ()}
        for pid in dict.fromkeys((*workers, *processes)):
            worker = workers.get(pid)
            process = processes.get(pid) or (worker.process if worker else None)
            life = self.present.get(pid)
            if life is not None and _is_another(life, process):
                life.missed_at = snapshot.time
                replaced.append(self._end(life, snapshot))
                life = None
            if life is None and len(self.present) < _MOST:
                life = self.present[pid] = _begin(pid, worker, process, snapshot.time)
            if life is not None:
                _follow(life, worker, process, snapshot.time)
                parent = worker.parent if worker and worker.parent else _parent(process)
                life.is_head = parent not in workers and parent not in processes
        return replaced

    def _end(self, life: Life, snapshot: Snapshot) -> tuple[Life, Gone]:
        self.present.pop(life.pid, None)
        was_seen = 0 <= life.missed_at - life.last <= GAP
        gone = Gone(
            life.pid, life.started, life.name, life.missed_at if was_seen else life.last,
            was_seen, life.peak if life.peak is not None else life.footprint_peak,
            life.known.held, _find_way(life, snapshot),
        )  # fmt: skip
        return life, gone


def _is_told(life: Life) -> bool:
    """Children end all the time, and are part of their parent's story."""
    return life.is_head and (life.is_connected or life.last - life.first >= _RUN_SECONDS)


def _is_another(life: Life, process: Process | None) -> bool:
    return process is not None and life.started not in (None, process.started)


def _begin(pid: int, worker: Worker | None, process: Process | None, now: float) -> Life:
    name = worker.name if worker else process.name if process else str(pid)
    return Life(pid, process.started if process else None, name, now, now)


def _follow(life: Life, worker: Worker | None, process: Process | None, now: float) -> None:
    life.last, life.missed = now, 0
    if process is not None:
        life.started = process.started
        peaks = (life.footprint_peak, process.footprint_peak, process.footprint)
        life.footprint_peak = _most(peaks)
    life.values = _read_values(worker, process)
    if None in life.values:
        pairs = zip(life.values, life.known, strict=True)
        life.known = Held(*(old if new is None else new for new, old in pairs))
    else:
        life.known = life.values
    if worker is not None:
        life.is_connected, life.name = True, worker.name
        life.devices = tuple(backend.name for backend in worker.in_use)
        life.peak = _most((life.peak, life.values.held, worker.total(lambda one: one.peak)))


def _read_values(worker: Worker | None, process: Process | None) -> Held:
    """One that does not answer repeats old counters: they are not known now."""
    footprint = process.footprint if process is not None else None
    if worker is None or worker.state != "live":
        return Held(footprint=footprint)
    allocated = worker.total(lambda backend: backend.allocated)
    return Held(allocated, worker.cached, worker.held, footprint)


def _find_way(life: Life, snapshot: Snapshot) -> Way:
    """The exit code of a process that is not our child cannot be had."""
    stopped = snapshot.stopped.get(life.pid)
    if stopped is not None and stopped.state == "asked":
        return "stopped"
    return "pressure" if snapshot.machine.pressure == "critical" else "unknown"


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _parent(process: Process | None) -> int | None:
    return process.parent if process is not None else None
