"""The one junction: tick() builds the next Snapshot, perform() carries a click to a worker."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from mpsbar.actions import Actions
from mpsbar.client.recorded import RecordedWorkers
from mpsbar.client.workers import Workers
from mpsbar.machine import this_computer
from mpsbar.machine.platform import Computer
from mpsbar.machine.scan import Look, Scanner
from mpsbar.model.action import (
    Asked,
    CheckUp,
    Connect,
    Connected,
    FindTensors,
    Free,
    Freed,
    Outcome,
    ProbeDtypes,
    Stop,
    Stopped,
    Tensors,
)
from mpsbar.model.health import judge
from mpsbar.model.history import History
from mpsbar.model.lives import Lives
from mpsbar.model.machine import Machine, Problem, Process
from mpsbar.model.reason import Health, Reason
from mpsbar.model.snapshot import Snapshot, Worker

if TYPE_CHECKING:
    from concurrent.futures import Future

    from mpsbar.model.checkup import Checkup
    from mpsbar.model.dtypes import Probe
    from mpsbar.storage.last_probe import LastProbe
    from mpsbar.storage.recorder import Recorder

INTERVAL = 2.0
ON_BATTERY = 5.0  # at least
LOOKED_AT = 1.0  # at most, while someone watches
# How long a row tells how its Free ended.
_TOLD_SECONDS = 60.0
# One who was asked to end and still runs is asked more firmly within this time.
_STOP_SECONDS = 600.0
# Long enough to be read: each look into that submenu counts anew.
_COUNTED_SECONDS = 600.0
_COURSE = 8
# Between the two readings that a share of the GPU takes, when there is only one look.
_SHARE_SECONDS = 0.2
# The process may end right after it was closed.
_LAST_WORDS_SECONDS = 2.0

_NOT_JUDGED = Health("ok", (Reason("not_judged", "ok"),))

_T = TypeVar("_T")


class Monitor:
    """`start` it, then `latest`, `perform` and `watched` from any thread; or `tick` it yourself."""

    def __init__(
        self,
        computer: Computer | None = None,
        interval: float = INTERVAL,
        recorder: "Recorder | None" = None,
    ) -> None:
        # Before the first look nothing is known, least of all that all is well.
        self.latest = Snapshot(time=time.time(), processes=None, health=_NOT_JUDGED)
        self.interval = interval
        computer = computer or this_computer()
        self._scanner = Scanner(computer)
        recorded: list[Any] | None = getattr(computer, "workers", None)
        self._workers = Workers() if recorded is None else RecordedWorkers(recorded)
        self._history = History()
        self._lives = Lives()
        self._recorder = recorder
        self._to_record: list[Freed] = []
        self._outcomes: dict[tuple[type, int], tuple[float, Freed | Tensors | Stopped]] = {}
        self._has_gpu_times = False
        self._is_resting = False
        self._joined: dict[int, tuple[Worker, Process | None, Worker]] = {}
        # What ended, and None for any other reason to tick at once.
        self._wakes: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._watchers: list[None] = []
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._health = Health()  # the last that could be judged
        self._actions = Actions(computer, lambda: self.latest, self._wakes.put)
        self._dtypes: LastProbe | None = None

    def start(self, on_tick: Callable[[Snapshot], None] | None = None) -> None:
        """Tick on a thread of its own from now on; `on_tick` is called there after each."""
        assert self._thread is None, "it ticks already"
        self._thread = threading.Thread(
            target=self._run, args=(on_tick,), name="mpsbar-tick", daemon=True
        )
        self._thread.start()

    def tick(self) -> Snapshot:
        """Only if it was not started: there is never more than one tick at a time."""
        assert self._thread in (None, threading.current_thread()), "its own thread ticks"
        self.latest = self._build()
        return self.latest

    def look_once(self) -> Snapshot:
        """A single look as good as one of many: shares of the GPU need two readings."""
        snapshot = self.tick()
        if not self._has_gpu_times:
            return snapshot
        time.sleep(_SHARE_SECONDS)
        return self.tick()

    @overload
    def perform(self, action: Free) -> "Future[Freed]": ...
    @overload
    def perform(self, action: FindTensors) -> "Future[Tensors]": ...
    @overload
    def perform(self, action: Stop) -> "Future[Stopped]": ...
    @overload
    def perform(self, action: Connect) -> "Future[Connected]": ...
    @overload
    def perform(self, action: CheckUp) -> "Future[Checkup]": ...
    @overload
    def perform(self, action: ProbeDtypes) -> "Future[Probe]": ...

    def perform(self, action: Asked) -> "Future[Any]":
        """Returns at once; how it ended is also in the snapshots that follow."""
        return self._actions.perform(action)

    def cancel_probe(self) -> None:
        self._actions.cancel_probe()

    @property
    def gpu_clients(self) -> dict[int, bool]:
        """Which processes hold the GPU, as of the last look."""
        return self._actions.gpu_clients

    def rest(self) -> None:
        """Before the computer sleeps: no tick until `wake`, so none is cut in two."""
        self._is_resting = True

    def wake(self) -> None:
        self._is_resting = False
        self._wakes.put(None)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Tick faster while someone looks: an open menu, a terminal."""
        self._watchers.append(None)
        self._wakes.put(None)
        try:
            yield
        finally:
            self._watchers.pop()

    def close(self) -> None:
        self._is_closed = True
        self._actions.close()
        self._wakes.put(None)
        if self._thread is None:
            self._end()
        elif self._recorder is not None and self._thread is not threading.current_thread():
            self._thread.join(_LAST_WORDS_SECONDS)  # what waits to be written is

    @property
    def pause(self) -> float:
        """Seconds from the end of one tick to the next."""
        if self._watchers:
            return min(self.interval, LOOKED_AT)
        return max(self.interval, ON_BATTERY if self.latest.machine.on_battery else 0.0)

    def _run(self, on_tick: Callable[[Snapshot], None] | None) -> None:
        while not self._is_closed:
            if self._is_resting:
                self._wait()
                continue
            snapshot = self.tick()
            if on_tick is not None:
                _survive(lambda seen=snapshot: on_tick(seen))  # type: ignore[misc]
            self._wait()
        self._end()

    def _wait(self) -> None:
        """Until the pause is over, or something happened that should be seen at once."""
        try:
            self._note(self._wakes.get(timeout=self.pause))
        except queue.Empty:
            return

    def _note(self, wake: Outcome | None) -> None:
        if isinstance(wake, Freed | Tensors | Stopped):
            self._outcomes[type(wake), wake.pid] = (time.monotonic(), wake)
        if isinstance(wake, Freed) and self._recorder is not None:
            self._to_record.append(wake)

    def _build(self) -> Snapshot:
        while not self._wakes.empty():
            self._note(self._wakes.get())
        look, failed = _survive(self._scanner.look)
        if look is None:
            look = Look(Machine(), None)
        workers, silent = _survive(lambda: self._workers.poll(look.gpu_clients))
        self._has_gpu_times = look.has_gpu_times
        self._actions.gpu_clients = look.gpu_clients
        if workers is None:  # as one who does not answer: with the last values
            workers = tuple(replace(worker, state="busy") for worker in self.latest.workers)
        problems = [Problem("machine", failed)] if failed else []
        problems += [Problem("workers", silent)] if silent else []
        snapshot = Snapshot(
            time=time.time(),
            workers=self._join(workers, look.processes or ()),
            machine=look.machine,
            processes=look.processes,
            problems=(*problems, *look.problems),
            pending=self._actions.pending,
            probing=self._actions.progress,
            freed=self._recent(Freed),
            tensors=self._recent(Tensors, _COUNTED_SECONDS),
            stopped=self._recent(Stopped, _STOP_SECONDS),
        )
        return self._follow(self._judge(self._add_dtypes(snapshot)))

    def _join(
        self, workers: tuple[Worker, ...], processes: tuple[Process, ...]
    ) -> tuple[Worker, ...]:
        """What is known from inside and from outside, made anew only where something changed."""
        found = {process.pid: process for process in processes}
        joined = {}
        for worker in workers:
            process = found.get(worker.pid)
            before = self._joined.get(worker.pid)
            if before is None or before[0] is not worker or before[1] is not process:
                before = (worker, process, _join(worker, process))
            joined[worker.pid] = before
        self._joined = joined
        return tuple(whole for _, _, whole in joined.values())

    def _add_dtypes(self, snapshot: Snapshot) -> Snapshot:
        """Only for who stays: one look reads them itself, if it shows them."""
        if self._thread is None:
            return snapshot
        if self._dtypes is None:
            from mpsbar.storage.last_probe import LastProbe

            self._dtypes = LastProbe()
        last = self._dtypes
        probe, _ = _survive(lambda: last.read(snapshot))
        return replace(snapshot, dtypes=probe)

    def _judge(self, snapshot: Snapshot) -> Snapshot:
        def judge_now() -> Health:
            self._history.add(snapshot)
            return judge(snapshot, self._history, self._health)

        health, failed = _survive(judge_now)
        if health is None:
            problems = (*snapshot.problems, Problem("health", failed or ""))
            return replace(snapshot, problems=problems, health=_NOT_JUDGED)
        self._health = health
        course = [point.value for point in self._history.machine.utilization]
        return replace(snapshot, health=health, gpu_course=tuple(course[-_COURSE:]))

    def _follow(self, snapshot: Snapshot) -> Snapshot:
        """Who has ended; and all of it is kept, if it can be."""
        ended, _ = _survive(lambda: self._lives.look(snapshot))
        if self._recorder is not None and snapshot.machine.recording is None:
            recorder, freed = self._recorder, self._to_record
            present = self._lives.present.values()
            self._to_record = []
            before, failed = _survive(
                lambda: recorder.record(snapshot, present, ended or [], freed)
            )
            self._lives.remember(before or (), snapshot.time)
            if failed:
                snapshot = replace(
                    snapshot, problems=(*snapshot.problems, Problem("history", failed))
                )
        return replace(snapshot, gone=self._lives.gone)

    def _recent(self, kind: type[_T], seconds: float = _TOLD_SECONDS) -> dict[int, _T]:
        since = time.monotonic() - seconds
        for key in [k for k, (at, _) in self._outcomes.items() if k[0] is kind and at < since]:
            del self._outcomes[key]
        return {
            pid: outcome
            for (_, pid), (_, outcome) in self._outcomes.items()
            if isinstance(outcome, kind)
        }

    def _end(self) -> None:
        self._workers.close()
        self._scanner.close()
        if self._recorder is not None:
            _survive(self._recorder.close)


def _survive(read: Callable[[], _T]) -> tuple[_T | None, str | None]:
    """What a reader gave, or why it did not: one that fails must not stop the others."""
    try:
        return read(), None
    except Exception as error:  # noqa: BLE001 - shown as unknown, with the reason in doctor
        return None, f"{type(error).__name__}: {error}"


def _join(worker: Worker, process: Process | None) -> Worker:
    """Only the outside knows a rank, and who it is that has not answered yet."""
    if process is None:
        return replace(worker, process=None)
    if not worker.command:
        name, command, parent = process.name, process.command, process.parent
        return replace(worker, process=process, name=name, command=command, parent=parent)
    is_rank = process.name.startswith(f"{worker.name} rank ")
    return replace(worker, process=process, name=process.name if is_rank else worker.name)
