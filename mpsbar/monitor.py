"""The one junction: tick() builds the next Snapshot, perform() carries a click to a worker."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from mpsbar.client.free import free_worker
from mpsbar.client.recorded import RecordedWorkers
from mpsbar.client.workers import Workers
from mpsbar.machine import this_computer
from mpsbar.machine.platform import Computer
from mpsbar.machine.scan import Look, Scanner
from mpsbar.model.action import Free, Freed
from mpsbar.model.health import judge
from mpsbar.model.history import History
from mpsbar.model.machine import Machine, Problem, Process
from mpsbar.model.reason import Health, Reason
from mpsbar.model.snapshot import Snapshot, Worker

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Enough for a click on each of a few workers; Free All queues behind itself.
_ACTIONS_AT_ONCE = 4
INTERVAL = 2.0
ON_BATTERY = 5.0  # at least
LOOKED_AT = 1.0  # at most, while someone watches
# How long a row tells how its Free ended.
_TOLD_SECONDS = 60.0
# Between the two readings that a share of the GPU takes, when there is only one look.
_SHARE_SECONDS = 0.2

_NOT_JUDGED = Health("ok", (Reason("not_judged", "ok"),))

_T = TypeVar("_T")


class Monitor:
    """`start` it, then `latest`, `perform` and `watched` from any thread; or `tick` it yourself."""

    def __init__(self, computer: Computer | None = None, interval: float = INTERVAL) -> None:
        # Before the first look nothing is known, least of all that all is well.
        self.latest = Snapshot(time=time.time(), processes=None, health=_NOT_JUDGED)
        self.interval = interval
        computer = computer or this_computer()
        self._scanner = Scanner(computer)
        recorded: list[Any] | None = getattr(computer, "workers", None)
        self._workers = Workers() if recorded is None else RecordedWorkers(recorded)
        self._history = History()
        self._freed: dict[int, tuple[float, Freed]] = {}
        self._has_gpu_times = False
        self._joined: dict[int, tuple[Worker, Process | None, Worker]] = {}
        # Outcomes, and None for any other reason to tick at once.
        self._wakes: queue.SimpleQueue[Freed | None] = queue.SimpleQueue()
        self._watchers: list[None] = []
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._health = Health()  # the last that could be judged
        self._pool: ThreadPoolExecutor | None = None
        self._pool_lock = threading.Lock()

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

    def perform(self, action: Free) -> "Future[Freed]":
        """Returns at once; how it ended is also in the snapshots that follow."""
        with self._pool_lock:
            if self._is_closed:
                raise RuntimeError("the monitor was closed")
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor  # half of what one look imports

                name = "mpsbar-action"
                self._pool = ThreadPoolExecutor(_ACTIONS_AT_ONCE, thread_name_prefix=name)
            return self._pool.submit(self._perform, action)

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
        with self._pool_lock:
            self._is_closed = True
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
        self._wakes.put(None)
        if self._thread is None:
            self._end()

    @property
    def pause(self) -> float:
        """Seconds from the end of one tick to the next."""
        if self._watchers:
            return min(self.interval, LOOKED_AT)
        return max(self.interval, ON_BATTERY if self.latest.machine.on_battery else 0.0)

    def _run(self, on_tick: Callable[[Snapshot], None] | None) -> None:
        while not self._is_closed:
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

    def _note(self, wake: Freed | None) -> None:
        if wake is not None:
            self._freed[wake.pid] = (time.monotonic(), wake)

    def _build(self) -> Snapshot:
        while not self._wakes.empty():
            self._note(self._wakes.get())
        look, failed = _survive(self._scanner.look)
        if look is None:
            look = Look(Machine(), None)
        workers, silent = _survive(lambda: self._workers.poll(look.gpu_clients))
        self._has_gpu_times = look.has_gpu_times
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
            freed=self._recently_freed(),
        )
        return self._judge(snapshot)

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

    def _judge(self, snapshot: Snapshot) -> Snapshot:
        def judge_now() -> Health:
            self._history.add(snapshot)
            return judge(snapshot, self._history, self._health)

        health, failed = _survive(judge_now)
        if health is None:
            problems = (*snapshot.problems, Problem("health", failed or ""))
            return replace(snapshot, problems=problems, health=_NOT_JUDGED)
        self._health = health
        return replace(snapshot, health=health)

    def _recently_freed(self) -> dict[int, Freed]:
        now = time.monotonic()
        self._freed = {
            pid: (at, freed) for pid, (at, freed) in self._freed.items() if now - at < _TOLD_SECONDS
        }
        return {pid: freed for pid, (_, freed) in self._freed.items()}

    def _perform(self, action: Free) -> Freed:
        outcome = free_worker(action.pid)
        self._wakes.put(outcome)
        return outcome

    def _end(self) -> None:
        self._workers.close()
        self._scanner.close()


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
