"""The one junction: tick() builds the next Snapshot, perform() carries a click to a worker."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mpsbar.action_runner import ActionRunner
from mpsbar.core.actions import Free, Freed, Outcome, Stopped, Tensors, WatchEnd
from mpsbar.core.alerts import Alerts
from mpsbar.core.events import EventLog
from mpsbar.core.findings import Health, Reason
from mpsbar.core.health import judge
from mpsbar.core.machine import Machine, Problem, Process
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.snapshot import LastFree, Snapshot, Worker
from mpsbar.core.trends import GAP, History
from mpsbar.system import this_computer
from mpsbar.system.platform import Computer
from mpsbar.system.scan import Scan, Scanner
from mpsbar.workers.poll import RecordedWorkers, WorkerPoll

if TYPE_CHECKING:
    from mpsbar.core.settings import Settings
    from mpsbar.dtypes.results import LatestResult
    from mpsbar.history.recorder import Recorder

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
        self.ticks = 0
        self.tick_seconds: float | None = None  # that the last tick took
        computer = computer or this_computer()
        self._scanner = Scanner(computer)
        recorded = computer.recorded_workers
        self._workers = WorkerPoll() if recorded is None else RecordedWorkers(recorded)
        self._history = History()
        self._tracker = ProcessTracker()
        self._recorder = recorder
        self._alerts = Alerts()
        self._events = EventLog()
        self._began = self.latest.time
        self._logged: dict[str, str | None] = {}  # the last failure of each attempt
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
        self._actions = ActionRunner(computer, lambda: self.latest, self._wakes.put)
        # How an action ended is also in the snapshots that follow.
        self.perform = self._actions.perform
        self.cancel_probe = self._actions.cancel_probe
        self._dtypes: LatestResult | None = None

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
        began = time.perf_counter()
        self.latest = self._build()
        self.tick_seconds = time.perf_counter() - began
        self.ticks += 1
        return self.latest

    def look_once(self) -> Snapshot:
        """A single look as good as one of many: shares of the GPU need two readings."""
        snapshot = self.tick()
        if not self._has_gpu_times:
            return snapshot
        time.sleep(_SHARE_SECONDS)
        return self.tick()

    def apply(self, settings: "Settings") -> None:
        """How often to look, and which alerts are wanted."""
        self.interval = settings.interval
        self._alerts.apply(settings)

    def watch_end(self, asked: WatchEnd) -> None:
        """Alert when this process ends, or no longer."""
        if asked.on:
            self._alerts.watch_end(asked.pid, asked.started, asked.name)
        else:
            self._alerts.unwatch(asked.pid, asked.started)

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
                self._attempt("showing a snapshot", partial(on_tick, snapshot))
            self._wait()
        self._end()

    def _wait(self) -> None:
        """Until the pause is over, or something happened that should be seen at once."""
        try:
            self._note(self._wakes.get(timeout=self.pause))
        except queue.Empty:
            return

    def _note_all(self) -> None:
        while not self._wakes.empty():
            self._note(self._wakes.get())

    def _note(self, wake: Outcome | None) -> None:
        if isinstance(wake, Freed | Tensors | Stopped):
            self._outcomes[type(wake), wake.pid] = (time.monotonic(), wake)
        if isinstance(wake, Freed):
            self._events.add(time.time(), wake)
            tracked = self._tracker.present.get(wake.pid)
            if tracked is not None and wake.number is not None:
                tracked.last_free = max(wake.number, tracked.last_free or 0)

    def _build(self) -> Snapshot:
        self._note_all()
        look, failed = _survive(self._scanner.look)
        if look is None:
            look = Scan(Machine(), None)
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
            from mpsbar.dtypes.results import LatestResult

            self._dtypes = LatestResult()
        last = self._dtypes
        probe = self._attempt("reading the dtype results", lambda: last.read(snapshot))
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
        return replace(
            snapshot,
            health=health,
            gpu_course=tuple(course[-_COURSE:]),
            tracks=self._history.copy_tracks(),
        )

    def _follow(self, snapshot: Snapshot) -> Snapshot:
        """Adds who has ended and what happened; and all of it is recorded, if it can be."""
        tracker = self._tracker
        ended = self._attempt("tracking processes", lambda: tracker.look(snapshot))
        self._attempt("finding other programs' frees", lambda: self._find_other_frees(snapshot))
        alerts = self._attempt("alerts", lambda: self._alerts.consider(snapshot, tracker))
        for tracked, end in ended or ():
            if tracked.is_connected:
                self._events.add(snapshot.time, end)
        for alert in alerts or ():
            self._events.add(snapshot.time, alert)
        seen = replace(
            snapshot,
            ended=tracker.ended,
            events=self._events.recent,
            freed=self._recent(Freed),
        )
        if self._recorder is None or seen.machine.recording is not None:
            return seen
        recorder, present = self._recorder, tracker.present.values()
        before, failed = _survive(lambda: recorder.record(seen, present, ended or []))
        tracker.remember(before or (), seen.time)
        problems = (Problem("history", failed),) if failed else ()
        return replace(seen, ended=tracker.ended, problems=(*seen.problems, *problems))

    def _find_other_frees(self, snapshot: Snapshot) -> None:
        """A Free that another program asked for is told by its worker's next stats."""
        told = [worker for worker in snapshot.workers if self._may_be_another_free(worker)]
        if not told:
            return
        asked = {action.pid for action in self._actions.pending if isinstance(action, Free)}
        # An outcome is queued before its action stops being pending: now all of ours are known.
        if not self._wakes.empty():
            self._note_all()
            self._wakes.put(None)  # the rest of what woke us is for the next tick
        for worker in told:
            free, tracked = worker.last_free, self._tracker.present[worker.pid]
            if free is None or worker.pid in asked or free.number <= (tracked.last_free or 0):
                continue
            is_known = tracked.last_free is None and free.time < self._began
            tracked.last_free = free.number
            if not is_known:
                self._note_other_free(worker, free, snapshot.time)

    def _may_be_another_free(self, worker: Worker) -> bool:
        tracked = self._tracker.present.get(worker.pid)
        if tracked is None or worker.age is None:
            return False
        if worker.last_free is None:
            tracked.last_free = tracked.last_free or 0  # whatever comes now is new
            return False
        return worker.last_free.number > (tracked.last_free or 0)

    def _note_other_free(self, worker: Worker, free: LastFree, now: float) -> None:
        outcome = Freed(
            worker.pid, worker.name, free.state, free.freed, free.seconds,
            number=free.number, asked_here=False,
        )  # fmt: skip
        # The worker's clock is not ours, and may be set to anything.
        self._events.add(free.time if 0 <= now - free.time <= GAP else now, outcome)
        if free.state == "done":
            self._outcomes[Freed, worker.pid] = (time.monotonic(), outcome)

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
            self._attempt("closing the history", self._recorder.close)

    def _attempt(self, what: str, do: Callable[[], _T]) -> _T | None:
        """For what is shown nowhere: a failure is logged, once until it is another one."""
        result, failed = _survive(do)
        if failed is not None and self._logged.get(what) != failed:
            import logging  # one look does not wait for it

            logging.getLogger("mpsbar").warning("%s failed: %s", what, failed)
        self._logged[what] = failed
        return result


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
