"""Runs actions on a small pool of threads beside the ticks, each on its own connection."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from mpsbar.agent.conventions import ASK_SECONDS
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
from mpsbar.workers.request import cancel_free, find_tensors, free_worker, limit_worker

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
        self.gpu_clients: dict[int, bool] = {}  # whether a pid uses the GPU, set at each tick
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
            names = self._latest().names  # a process that ends meanwhile has none later
            # Stop has threads of its own: it must not wait behind workers that hang.
            return self._pool(isinstance(action, Stop)).submit(self._perform, action, names)

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

    def _perform(self, action: Asked, names: Mapping[int, str]) -> Any:
        result: Any = None
        try:
            result = self._carry_out(action)
            if isinstance(result, Freed | Limited):  # a worker that did not answer sent no name
                result = replace(result, name=names.get(result.pid, result.name))
        finally:
            # The outcome first: no snapshot may show the action as neither pending nor ended.
            self._wake(result if isinstance(result, Outcome) else None)
            with self._lock:
                self.pending -= {action}
            self._wake(None)
        return result

    def _carry_out(self, action: Asked) -> "Outcome | DoctorReport | Probe":
        match action:
            case Free() | FreeWhenPossible() | CancelFree() | Limit() | FindTensors():
                return self._ask_worker(action)
            case Stop():
                return stop(self._computer, action)
            case Connect(python):
                from mpsbar.workers.enable import connect

                return connect(python)
            case InspectPythons():
                from mpsbar.doctor_reader import read_doctor_report  # slow to import

                return read_doctor_report(self._latest(), stop=self._closing)
            case ProbeDtypes():
                return self._probe()

    def _ask_worker(
        self, action: Free | FreeWhenPossible | CancelFree | Limit | FindTensors
    ) -> Freed | Limited | Tensors:
        pid, is_same = action.pid, self._same_process(action.pid, action.started)
        gpu_client = self.gpu_clients.get(pid)
        match action:
            case Free(_, seconds, _, cause):
                seconds = ASK_SECONDS if seconds is None else seconds
                moment = None if cause is None else _AUTOMATIC_SECONDS
                freed = free_worker(pid, gpu_client, seconds, is_same, moment)
                return replace(freed, cause=cause)
            case FreeWhenPossible():
                return free_worker(pid, gpu_client, is_same=is_same, when_possible=True)
            case CancelFree():
                return cancel_free(pid, is_same)
            case Limit():
                return limit_worker(pid, action.limit, gpu_client, is_same)
            case FindTensors():
                return find_tensors(pid, gpu_client, is_same)

    def _same_process(self, pid: int, started: float | None) -> Callable[[], bool]:
        """Returns a check that the pid is still this process, for when a connection stands."""

        def is_same() -> bool:
            try:
                return started is None or self._computer.read_start(pid) == started
            except OSError:
                return False

        return is_same

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
