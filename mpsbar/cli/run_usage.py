"""Collects what a command of `mpsbar run --summary` and its children use while they run."""

import threading
from dataclasses import dataclass, field
from operator import attrgetter

from mpsbar.core.counters import sum_known
from mpsbar.core.events import EndedProcess
from mpsbar.core.recent_conditions import RecentConditions
from mpsbar.core.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.system.platform import Computer

_INTERVAL = 1.0
_MAX_PARENTS = 20


@dataclass
class Usage:
    """The most that the command and its children used at one time, in bytes."""

    allocated: int | None = None
    driver: int | None = None
    cached: int | None = None
    footprint: int | None = None
    frees: dict[int, int] = field(default_factory=dict)  # by pid
    workers: set[int] = field(default_factory=set)
    exit_record_pids: set[int] = field(default_factory=set)  # they write one when they exit
    devices: set[str] = field(default_factory=set)  # in use by any of them
    torch: str | None = None  # its version, if one of them has it

    def note(self, name: str, value: int | None) -> None:
        if value is not None:
            setattr(self, name, max(value, getattr(self, name) or 0))


class Collector:
    """Watches the command with a monitor of its own; `_note` runs on the monitor's thread."""

    def __init__(self, computer: Computer) -> None:
        self.usage = Usage()
        self._computer = computer
        self._root: int | None = None
        self._is_ours: dict[int, bool] = {}
        self.others: dict[int, EndedProcess] = {}  # ends of its children
        self._monitor = Monitor(computer, interval=_INTERVAL)
        self._lock = threading.Lock()
        self.reports = computer.read_reports()
        self.conditions = RecentConditions()

    def start(self, pid: int) -> None:
        self._root = pid
        self._is_ours[pid] = True
        self.reports.note(pid)  # what can't be read after its end
        self._monitor.start(self._note)

    def close(self) -> None:
        self._monitor.close()

    def _note(self, snapshot: Snapshot) -> None:
        with self._lock:
            workers = [worker for worker in snapshot.workers if self._belongs(worker.pid)]
            processes = [p for p in snapshot.processes or () if self._belongs(p.pid)]
            usage = self.usage
            self.conditions.add(snapshot)
            self.conditions.note_reset(snapshot)
            self.reports.refresh()
            usage.workers |= {worker.pid for worker in workers}
            usage.exit_record_pids |= {
                worker.pid for worker in workers if worker.writes_exit_record
            }
            for name in ("allocated", "driver", "cached"):
                read = attrgetter(name)
                usage.note(name, sum_known(worker.total(read) for worker in workers))
            for worker in workers:
                usage.devices |= {backend.name for backend in worker.in_use}
                usage.torch = usage.torch or worker.frameworks.get("torch")
                usage.note("allocated", worker.total(lambda backend: backend.peak))
                if worker.last_free is not None:
                    usage.frees[worker.pid] = worker.last_free.number
            usage.note("footprint", sum_known(process.footprint for process in processes))
            for process in processes:
                usage.note("footprint", process.footprint_peak)
            for end in snapshot.ended:
                if end.verdict is not None and self._is_ours.get(end.pid) and end.pid != self._root:
                    self.others[end.pid] = end

    def _belongs(self, pid: int) -> bool:
        """Returns whether the command started it, directly or not; searches once per process."""
        if pid not in self._is_ours:
            self._is_ours[pid] = self._find_root(pid)
        return self._is_ours[pid]

    def _find_root(self, pid: int) -> bool:
        for _step in range(_MAX_PARENTS):
            try:
                parent = self._computer.read_details(pid).parent
            except OSError:
                return False
            if parent is None or parent <= 1:
                return False
            if parent == self._root or self._is_ours.get(parent):
                return True
            pid = parent
        return False
