"""Runs actions on a small pool of threads beside the ticks, each on its own connection."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from mpsbar.core.actions import (
    Asked,
    CancelFree,
    Connect,
    Connected,
    FindTensors,
    Free,
    Freed,
    FreeWhenPossible,
    InspectPythons,
    Limit,
    Limited,
    Outcome,
    ProbeDtypes,
    Stop,
    Stopped,
    Tensors,
)
from mpsbar.core.snapshot import Snapshot
from mpsbar.system.platform import Computer
from mpsbar.system.stop import stop
from mpsbar.workers.request import (
    ASK_SECONDS,
    cancel_free,
    find_tensors,
    free_when_possible,
    free_worker,
    limit_worker,
)

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from mpsbar.core.dtype_results import Probe, Progress
    from mpsbar.doctor.rules import DoctorReport
    from mpsbar.dtypes.runner import ProbeRunner

# A worker that hangs occupies a thread for up to ASK_SECONDS; threads are made when needed.
_THREADS = 16
# Nobody waits for an automatic Free: a worker that is not idle is left in peace.
_AUTOMATIC_SECONDS = 0.5


class ActionRunner:
    """Methods may be called from any thread. `latest` returns the newest snapshot; `wake` hands an
    outcome to the ticking thread and makes it build the next one."""

    def __init__(
        self,
        computer: Computer,
        latest: Callable[[], Snapshot],
        wake: Callable[[Outcome | None], None],
    ) -> None:
        self._computer, self._latest, self._wake = computer, latest, wake
        self.pending: frozenset[Asked] = frozenset()
        self.progress: Progress | None = None  # of the dtype probe
        self.gpu_clients: dict[int, bool] = {}  # whether a pid holds the GPU, set at each tick
        self._runner: ProbeRunner | None = None
        self._closing = threading.Event()  # ends an inspection between two Pythons
        self._pools: dict[bool, ThreadPoolExecutor] = {}  # True: for Stop alone
        self._lock = threading.Lock()

    @overload
    def perform(self, action: Free | FreeWhenPossible | CancelFree) -> "Future[Freed]": ...
    @overload
    def perform(self, action: Limit) -> "Future[Limited]": ...
    @overload
    def perform(self, action: FindTensors) -> "Future[Tensors]": ...
    @overload
    def perform(self, action: Stop) -> "Future[Stopped]": ...
    @overload
    def perform(self, action: Connect) -> "Future[Connected]": ...
    @overload
    def perform(self, action: InspectPythons) -> "Future[DoctorReport]": ...
    @overload
    def perform(self, action: ProbeDtypes) -> "Future[Probe]": ...

    def perform(self, action: Asked) -> "Future[Any]":
        """Start an action and return at once; its outcome is on the snapshots that follow."""
        with self._lock:
            if self._closing.is_set():
                raise RuntimeError("the monitor was closed")
            self.pending |= {action}
            self._wake(None)
            # Stop has threads of its own: it must not wait behind workers that hang.
            return self._pool(isinstance(action, Stop)).submit(self._perform, action)

    def cancel_probe(self) -> None:
        """Make a running probe end at once, with what it has measured so far."""
        if self._runner is not None:
            self._runner.cancel()

    def close(self) -> None:
        with self._lock:
            self._closing.set()
            for pool in self._pools.values():
                pool.shutdown(wait=False, cancel_futures=True)
        self.cancel_probe()

    def _pool(self, is_for_stop: bool) -> "ThreadPoolExecutor":
        if is_for_stop not in self._pools:
            # Imported late: it is half of what `mpsbar status` would import.
            from concurrent.futures import ThreadPoolExecutor

            self._pools[is_for_stop] = ThreadPoolExecutor(
                _THREADS, thread_name_prefix="mpsbar-action"
            )
        return self._pools[is_for_stop]

    def _perform(self, action: Asked) -> Any:
        result: Any = None
        try:
            result = self._carry_out(action)
        finally:
            # The outcome first: no snapshot may show the action as neither pending nor ended.
            self._wake(result if isinstance(result, Outcome) else None)
            with self._lock:
                self.pending -= {action}
            self._wake(None)
        return result

    def _carry_out(self, action: Asked) -> "Outcome | DoctorReport | Probe":
        match action:
            case Free(pid, seconds, started, cause):
                seconds = ASK_SECONDS if seconds is None else seconds
                moment = None if cause is None else _AUTOMATIC_SECONDS
                is_same = self._same_process(pid, started)
                gpu_client = self.gpu_clients.get(pid)
                freed = free_worker(pid, gpu_client, seconds, is_same, moment)
                return replace(freed, cause=cause)
            case FreeWhenPossible(pid, started):
                is_same = self._same_process(pid, started)
                return free_when_possible(pid, self.gpu_clients.get(pid), is_same=is_same)
            case CancelFree(pid, started):
                return cancel_free(pid, self._same_process(pid, started))
            case Limit(pid, limit, started):
                is_same = self._same_process(pid, started)
                return limit_worker(pid, limit, self.gpu_clients.get(pid), is_same=is_same)
            case FindTensors(pid, started):
                is_same = self._same_process(pid, started)
                return find_tensors(pid, self.gpu_clients.get(pid), is_same=is_same)
            case Stop():
                return stop(self._computer, action)
            case Connect(python):
                from mpsbar.workers.enable import connect

                return connect(python)
            case InspectPythons():
                return self._inspect_pythons()
            case ProbeDtypes():
                return self._probe()

    def _same_process(self, pid: int, started: float | None) -> Callable[[], bool]:
        """Returns a check that the pid is still this process, for when a connection stands."""

        def is_same() -> bool:
            try:
                return started is None or self._computer.read_start(pid) == started
            except OSError:
                return False

        return is_same

    def _inspect_pythons(self) -> "DoctorReport":
        from mpsbar.doctor.pythons import find_pythons, inspect_all  # rarely needed, slow to import
        from mpsbar.workers.environments import read_enabled

        snapshot = self._latest()
        return inspect_all(snapshot, find_pythons(snapshot, read_enabled()), stop=self._closing)

    def _probe(self) -> "Probe":
        """Probe the first Python that has torch, those of workers first, and write the result."""
        from mpsbar.doctor.pythons import find_pythons
        from mpsbar.dtypes.results import write_result
        from mpsbar.dtypes.runner import ProbeRunner
        from mpsbar.workers.environments import read_enabled

        self._runner = ProbeRunner(find_pythons(self._latest(), read_enabled()))
        if self._closing.is_set():
            self._runner.cancel()
        try:
            probe = self._runner.run(self._note_progress)
        finally:
            self._runner = self.progress = None
        if probe.cells:
            write_result(probe)
        return probe

    def _note_progress(self, progress: "Progress") -> None:
        self.progress = progress
