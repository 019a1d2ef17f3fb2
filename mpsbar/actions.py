"""What a person asked, carried out beside the looks, each on a connection of its own."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mpsbar.client.free import free_worker
from mpsbar.client.tensors import find_tensors
from mpsbar.machine.platform import Computer
from mpsbar.machine.stop import stop
from mpsbar.model.action import (
    Asked,
    CheckUp,
    Connect,
    Connected,
    FindTensors,
    Free,
    Outcome,
    ProbeDtypes,
    Stop,
)
from mpsbar.model.checkup import Checkup
from mpsbar.model.snapshot import Snapshot

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from mpsbar.model.dtypes import Probe, Progress
    from mpsbar.probe.runner import Runner

# Enough for a click on each of a few workers; Free All queues behind itself.
_AT_ONCE = 4
# Never behind workers that hang.
_URGENT = (Stop,)


class Actions:
    """From any thread. `latest` gives the newest look, `wake` asks for the next."""

    def __init__(
        self,
        computer: Computer,
        latest: Callable[[], Snapshot],
        wake: Callable[[Outcome | None], None],
    ) -> None:
        self._computer, self._latest, self._wake = computer, latest, wake
        self.pending: frozenset[Asked] = frozenset()
        self.progress: Progress | None = None  # of the dtype probe
        self.gpu_clients: dict[int, bool] = {}  # by pid, of the last look
        self._runner: Runner | None = None
        self._closing = threading.Event()  # for what takes long
        self._pools: dict[bool, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()

    def perform(self, action: Asked) -> "Future[Any]":
        with self._lock:
            if self._closing.is_set():
                raise RuntimeError("the monitor was closed")
            self.pending |= {action}
            self._wake(None)
            return self._pool(isinstance(action, _URGENT)).submit(self._perform, action)

    def cancel_probe(self) -> None:
        """It ends within a moment, with what was measured until then."""
        if self._runner is not None:
            self._runner.cancel()

    def close(self) -> None:
        with self._lock:
            self._closing.set()
            for pool in self._pools.values():
                pool.shutdown(wait=False, cancel_futures=True)
        self.cancel_probe()

    def _pool(self, is_urgent: bool) -> "ThreadPoolExecutor":
        if is_urgent not in self._pools:
            from concurrent.futures import ThreadPoolExecutor  # half of what one look imports

            self._pools[is_urgent] = ThreadPoolExecutor(
                _AT_ONCE, thread_name_prefix="mpsbar-action"
            )
        return self._pools[is_urgent]

    def _perform(self, action: Asked) -> Any:
        done: Any = None
        try:
            done = self._carry_out(action)
        finally:
            # The outcome first: no look may find it neither under way nor ended.
            self._wake(done if isinstance(done, Outcome) else None)
            with self._lock:
                self.pending -= {action}
            self._wake(None)
        return done

    def _carry_out(self, action: Asked) -> "Outcome | Checkup | Probe":
        match action:
            case Free(pid):
                return free_worker(pid, self.gpu_clients.get(pid))
            case FindTensors(pid):
                return find_tensors(pid, self.gpu_clients.get(pid))
            case Stop():
                return stop(self._computer, action)
            case Connect(python):
                return _connect(python)
            case CheckUp():
                return self._check_up()
            case ProbeDtypes():
                return self._probe()

    def _check_up(self) -> Checkup:
        from mpsbar.probe.survey import check_up, find_pythons  # seldom asked for: costs no look
        from mpsbar.storage.enabled import read_enabled

        snapshot = self._latest()
        return check_up(snapshot, find_pythons(snapshot, read_enabled()), stop=self._closing)

    def _probe(self) -> "Probe":
        """In the first Python with torch, those of the workers first; what was measured is kept."""
        from mpsbar.probe.runner import Runner
        from mpsbar.probe.survey import find_pythons
        from mpsbar.storage.enabled import read_enabled
        from mpsbar.storage.results import write_result

        self._runner = Runner(find_pythons(self._latest(), read_enabled()))
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


def _connect(python: str) -> Connected:
    from mpsbar.client.connect import connect
    from mpsbar.storage.enabled import remember

    outcome = connect(python)
    if outcome.state != "refused":
        remember(python)
    return outcome
