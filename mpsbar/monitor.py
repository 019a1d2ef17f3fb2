"""The monitor: a thread that reads this computer and its workers, and publishes a Snapshot.

`perform` starts an action.

One tick: scan this computer and poll the workers -> Snapshot -> trends -> health -> process
tracker -> alerts -> events -> automatic frees, where that is set -> history.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mpsbar.action_runner import ActionRunner
from mpsbar.auto_freer import AutoFreer
from mpsbar.core.actions import (
    Free,
    Freed,
    Limited,
    Outcome,
    RecentOutcomes,
    SetAutoFree,
    Stopped,
    Tensors,
)
from mpsbar.core.alerts import Alerts
from mpsbar.core.endings import Exit
from mpsbar.core.events import EndedProcess, EventLog
from mpsbar.core.findings import Health, Reason
from mpsbar.core.health import judge
from mpsbar.core.machine import Machine, Problem, Process
from mpsbar.core.own_budget import OwnBudget, OwnUse
from mpsbar.core.process_tracker import EndedPairs, ProcessTracker
from mpsbar.core.sleep_gap import GAP
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.trends import Trends, metal_held
from mpsbar.system import this_computer
from mpsbar.system.platform import Computer
from mpsbar.system.scan import Scan, Scanner
from mpsbar.workers.connection import raise_connection_limit
from mpsbar.workers.poll import RecordedWorkers, WorkerPoll

if TYPE_CHECKING:
    from concurrent.futures import Future

    from mpsbar.core.dtype_results import Probe
    from mpsbar.core.settings import Settings
    from mpsbar.dtypes.results import LatestResult
    from mpsbar.end_follower import EndFollower
    from mpsbar.history.recorder import Recorder

# Seconds between two ticks.
INTERVAL = 2.0
ON_BATTERY = 5.0  # at least
WATCHED = 1.0  # at most, while a menu is open or a terminal shows it
# The GPU's share of a process takes two readings, this many seconds apart.
_SLOW_SECONDS = 3.0  # for Metal's first device, which only a single reading waits for
_SHARE_SECONDS = 0.2
# How long `close` waits for the last rows to be written: the program may end right after it.
_CLOSE_SECONDS = 2.0
_SPARKLINE = 8  # readings of the GPU's utilization

_NOT_JUDGED = Health("ok", (Reason("not_judged", "ok"),))

_T = TypeVar("_T")


class Monitor:
    """Call `start`, then use `latest`, `perform` and `watched` from any thread; or call `tick`."""

    def __init__(
        self,
        computer: Computer | None = None,
        interval: float = INTERVAL,
        recorder: "Recorder | None" = None,
        may_free: bool = False,
    ) -> None:
        """`may_free`: whether this monitor may free caches automatically: only the app and top do.

        Of several such monitors the one that holds the lock frees.
        """
        # Before the first reading nothing is known, not even that all is well.
        self.latest = Snapshot(time=time.time(), processes=None, health=_NOT_JUDGED)
        self.interval = interval
        self.ticks = 0
        self.tick_seconds: float | None = None  # that the last tick took
        computer = computer or this_computer()
        self._computer = computer
        self._scanner = Scanner(computer)
        recorded = computer.recorded_workers
        self._workers = (
            WorkerPoll(computer.read_start, raise_connection_limit())
            if recorded is None
            else RecordedWorkers(recorded)
        )
        self._joined: dict[int, tuple[Worker, Process | None, Worker]] = {}
        self._trends = Trends()
        self._health = Health()  # the last that could be judged
        self._tracker = ProcessTracker()
        self._ends: EndFollower | None = None  # from the second tick on
        self._alerts = Alerts()
        self._may_free = may_free
        self._auto_freer = AutoFreer(self._attempt)
        self._events = EventLog()
        self._outcomes = RecentOutcomes()
        self._budget = OwnBudget()
        self._recorder = recorder
        self._dtypes: LatestResult | None = None
        self._started_at = self.latest.time
        self._failures: dict[str, str | None] = {}  # the last failure of each step, as logged
        self._has_gpu_times = False
        # Outcomes of actions, and None for any other reason to tick at once.
        self._wakes: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._watchers: list[None] = []
        self._is_paused = False
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._actions = ActionRunner(computer, lambda: self.latest, self._wakes.put)
        self.perform = self._actions.perform
        self.cancel_probe = self._actions.cancel_probe
        self.watch_end = self._alerts.watch_end

    def start(self, on_tick: Callable[[Snapshot], None] | None = None) -> None:
        """Tick on a thread of its own from now on; `on_tick` is called there after each tick."""
        assert self._thread is None, "it ticks already"
        self._thread = threading.Thread(
            target=self._run, args=(on_tick,), name="mpsbar-tick", daemon=True
        )
        self._thread.start()

    def tick(self) -> Snapshot:
        """Build the next Snapshot. Only for a monitor that was not started: one thread ticks."""
        assert self._thread in (None, threading.current_thread()), "its own thread ticks"
        began = time.perf_counter()
        self.latest = self._build()
        self.tick_seconds = time.perf_counter() - began
        self.ticks += 1
        return self.latest

    def read_once(self) -> Snapshot:
        """Returns a single complete Snapshot: shares of the GPU need two readings."""
        self._computer.wait_for_slow(_SLOW_SECONDS)
        snapshot = self.tick()
        if not self._has_gpu_times:
            return snapshot
        time.sleep(_SHARE_SECONDS)
        return self.tick()

    def apply(self, settings: "Settings") -> None:
        from mpsbar.system.last_words import apply_setting

        self.interval = settings.interval
        self._alerts.apply(settings)
        self._attempt("setting up last words", partial(apply_setting, settings.last_words))
        self._auto_freer.apply(settings)

    def set_auto_free(self, action: SetAutoFree) -> None:
        """Choose when the cache of one process is freed by itself, until it ends."""
        self._auto_freer.choose(action)
        self._wakes.put(None)

    def rest(self) -> None:
        """Stop ticking until `wake`: before the computer sleeps, so that no tick is cut in two."""
        self._is_paused = True

    def wake(self) -> None:
        self._is_paused = False
        self._wakes.put(None)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Tick faster while a person sees the result: an open menu, a terminal."""
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
            self._close_readers()
        elif self._recorder is not None and self._thread is not threading.current_thread():
            self._thread.join(_CLOSE_SECONDS)  # until the last rows are written

    @property
    def pause(self) -> float:
        """Seconds from the end of one tick to the next."""
        if self._watchers:
            usual = min(self.interval, WATCHED)
        else:
            usual = max(self.interval, ON_BATTERY if self.latest.machine.on_battery else 0.0)
        return usual * self._budget.factor

    def _run(self, on_tick: Callable[[Snapshot], None] | None) -> None:
        while not self._is_closed:
            if not self._is_paused:
                snapshot = self.tick()
                if on_tick is not None:
                    self._attempt("showing a snapshot", partial(on_tick, snapshot))
            try:
                self._handle_wake(self._wakes.get(timeout=self.pause))
            except queue.Empty:
                continue
        self._close_readers()

    def _close_readers(self) -> None:
        if self._budget.reason is not None:
            self._report_own_use(None)
        self._workers.close()
        self._scanner.close()
        if self._ends is not None:
            self._ends.close()
        self._auto_freer.close()
        if self._recorder is not None:
            self._attempt("closing the history", self._recorder.close)

    def _handle_wakes(self) -> None:
        while not self._wakes.empty():
            self._handle_wake(self._wakes.get())

    def _handle_wake(self, wake: Outcome | None) -> None:
        if isinstance(wake, Freed):
            self._auto_freer.note(wake)
        if isinstance(wake, Freed | Limited | Tensors | Stopped) and not _is_trivial(wake):
            self._outcomes.add(wake, time.monotonic())
        if isinstance(wake, Limited):
            self._events.add(time.time(), wake)
        if isinstance(wake, Freed) and wake.state in ("waiting", "cancelled"):
            self._tracker.note_free(wake.pid, wake.number)  # its outcome is still to come, or none
        elif isinstance(wake, Freed) and wake.age is None:  # else it is an event already
            if not _is_trivial(wake):
                self._events.add(time.time(), wake)
            self._tracker.note_free(wake.pid, wake.number)

    def _build(self) -> Snapshot:
        self._handle_wakes()
        exits = self._poll_exits()  # before the scan, which then does not find them
        snapshot = self._read()
        if self._thread is not None:  # a single reading leaves the dtypes to those who show them
            snapshot = replace(snapshot, dtypes=self._read_dtypes(snapshot))
        snapshot = self._judge(snapshot)
        snapshot = self._keep_budget(snapshot)
        ended, corrected = self._add_events(snapshot, exits)
        self._free_by_itself(snapshot)
        now = time.monotonic()
        seen = replace(
            snapshot,
            ended=self._tracker.ended,
            events=self._events.recent,
            freed=self._outcomes.find(Freed, now),
            limited=self._outcomes.find(Limited, now),
            auto_free=self._auto_freer.find_statuses(snapshot),
            gpu_resets=self._tracker.gpu_resets,
        )
        return self._record(seen, ended, corrected)

    def _poll_exits(self) -> dict[int, Exit]:
        """Returns the ends that the kernel reports. A single reading watches nothing."""
        if self._ends is None:
            if not self.ticks and self._thread is None and self._recorder is None:
                return {}
            from mpsbar.end_follower import EndFollower

            self._ends, _ = self._attempt("watching for ends", lambda: EndFollower(self._computer))
        if self._ends is None:
            return {}
        return self._attempt("asking for ends", self._ends.poll)[0] or {}

    def _free_by_itself(self, snapshot: Snapshot) -> None:
        """Starts automatic frees, but never from a single reading, which changes nothing."""
        if not self._may_free or self._thread is None or self._is_closed:
            return
        if snapshot.machine.recording is not None:
            return  # nor does it keep others from freeing
        frees, left_alone = self._auto_freer.consider(snapshot)
        for outcome in left_alone:
            self._events.add(snapshot.time, outcome)
            self._outcomes.add(outcome, time.monotonic())
        for free in frees:
            future, _ = self._attempt("starting an automatic free", partial(self.perform, free))
            if future is not None:
                future.add_done_callback(self._log_failed_free)

    def _log_failed_free(self, future: "Future[Freed]") -> None:
        """Logs what a free raised: nobody waits for its result. Runs on the action's thread."""
        if not future.cancelled():
            self._attempt("an automatic free", future.result)

    def _read(self) -> Snapshot:
        """This computer, its processes and the workers; a reader that fails stops no other."""
        scan, machine_failure = self._attempt("reading this computer", self._scanner.scan)
        scan = scan or Scan(Machine(), None)
        self._has_gpu_times = scan.has_gpu_times
        self._actions.gpu_clients = scan.gpu_clients
        workers, worker_failure = self._attempt(
            "asking the workers", lambda: self._workers.poll(scan.gpu_clients)
        )
        if workers is None:  # shown like workers that do not answer: with their last values
            workers = tuple(replace(worker, state="busy") for worker in self.latest.workers)
        failures = (("machine", machine_failure), ("workers", worker_failure))
        problems = [Problem(reader, text) for reader, text in failures if text is not None]
        if self._scanner.note_workers({w.pid: bool(w.backends) for w in workers}):
            self._wakes.put(None)  # examined at once, not after the interval
        now = time.monotonic()
        return Snapshot(
            time=time.time(),
            workers=self._join_processes(workers, scan.processes or ()),
            machine=scan.machine,
            processes=scan.processes,
            problems=(*problems, *scan.problems),
            pending=self._actions.pending,
            probing=self._actions.progress,
            tensors=self._outcomes.find(Tensors, now),
            stopped=self._outcomes.find(Stopped, now),
        )

    def _join_processes(
        self, workers: tuple[Worker, ...], processes: tuple[Process, ...]
    ) -> tuple[Worker, ...]:
        """Returns each worker with its process: the same object while neither of them changes."""
        by_pid = {process.pid: process for process in processes}
        joined = {}
        for worker in workers:
            process = by_pid.get(worker.pid)
            entry = self._joined.get(worker.pid)
            if entry is None or entry[0] is not worker or entry[1] is not process:
                entry = (worker, process, worker.join(process))
            joined[worker.pid] = entry
        self._joined = joined
        return tuple(whole for _, _, whole in joined.values())

    def _read_dtypes(self, snapshot: Snapshot) -> "Probe | None":
        if self._dtypes is None:
            from mpsbar.dtypes.results import LatestResult

            self._dtypes = LatestResult()
        return self._attempt("reading the dtype results", partial(self._dtypes.read, snapshot))[0]

    def _judge(self, snapshot: Snapshot) -> Snapshot:
        def judge_now() -> Health:
            self._trends.add(snapshot)
            return judge(snapshot, self._trends, self._health)

        health, failure = self._attempt("judging the health", judge_now)
        if health is None:
            problems = (*snapshot.problems, Problem("health", failure or ""))
            return replace(snapshot, problems=problems, health=_NOT_JUDGED)
        self._health = health
        utilization = [point.value for point in self._trends.machine.utilization]
        return replace(
            snapshot,
            health=health,
            gpu_utilization=tuple(utilization[-_SPARKLINE:]),
            process_series=self._trends.copy_processes(),
            machine_series=self._trends.copy_machine(),
        )

    def _keep_budget(self, snapshot: Snapshot) -> Snapshot:
        """Tick less often if mpsbar itself uses too much, and add the reason."""
        now, budget = time.monotonic(), self._budget
        if self._thread is None:  # a single reading
            return snapshot
        if budget.is_due(now):
            footprint, _ = self._attempt(
                "reading its own footprint",
                lambda: self._computer.read_footprint(os.getpid(), with_peak=False),
            )
            use = OwnUse(time.process_time(), None if footprint is None else footprint.now)
            if budget.update(use, now):
                self._report_own_use(budget.reason)
        if budget.reason is None:
            return snapshot
        problem = Problem("own use", budget.reason)
        return replace(snapshot, problems=(*snapshot.problems, problem))

    def _report_own_use(self, reason: str | None) -> None:
        """Logs the reason, and writes it for `mpsbar doctor`, which is another process."""
        import logging

        from mpsbar.system.own_use_file import write_own_use

        if reason is not None:
            logging.getLogger("mpsbar").warning("%s", reason)
        self._attempt("reporting its own use", partial(write_own_use, reason))

    def _add_events(
        self, snapshot: Snapshot, exits: dict[int, Exit]
    ) -> tuple[EndedPairs, EndedPairs]:
        """Add the events of this snapshot: ends, frees by other programs, alerts.

        Returns the processes that ended, and those of which more is known now.
        """
        tracker = self._tracker
        ended, _ = self._attempt("tracking processes", partial(tracker.update, snapshot, exits))
        ended, corrected = self._explain(snapshot, ended or [], exits)
        settled = [item for item in (*ended, *corrected) if item[1].is_settled]
        self._attempt("finding other programs' frees", partial(self._find_other_frees, snapshot))
        alerts, _ = self._attempt(
            "alerts", partial(self._alerts.consider, snapshot, tracker, [*ended, *corrected])
        )
        for tracked, end in settled:
            if tracked.is_connected:
                self._events.add(snapshot.time, end)
        for alert in alerts or ():
            self._events.add(snapshot.time, alert)
        return ended, corrected

    def _explain(
        self, snapshot: Snapshot, ended: EndedPairs, exits: dict[int, Exit]
    ) -> tuple[EndedPairs, EndedPairs]:
        """Returns the ends with their verdicts, and earlier ones whose verdict has changed."""
        ends = self._ends
        if ends is None:
            return ended, []
        self._attempt("watching for resets of the GPU", partial(self._find_reset, snapshot, ends))
        explained, failure = self._attempt(
            "explaining ends", partial(ends.explain, snapshot, ended, exits)
        )
        if failure is None:
            ended = explained or []
        corrected, _ = self._attempt("reading reports", partial(ends.recheck, snapshot.time))
        for _tracked, end in (*ended, *(corrected or ())):
            self._tracker.correct(end)
        self._attempt("watching for ends", partial(ends.follow, snapshot))
        return ended, corrected or []

    def _find_reset(self, snapshot: Snapshot, ends: "EndFollower") -> None:
        """Mark every process that used the GPU when its count of recoveries rose."""
        if not ends.conditions.note_reset(snapshot):
            return
        users = {process.pid for process in snapshot.processes or () if process.gpu_client}
        users |= {worker.pid for worker in snapshot.workers if metal_held(worker)}
        names = self._tracker.note_reset(users, snapshot.time)
        alert = self._alerts.build_reset(names, snapshot.time)
        if alert is not None:
            self._events.add(snapshot.time, alert)

    def _find_other_frees(self, snapshot: Snapshot) -> None:
        """Adds the frees that other programs asked for: each is in the next stats of its worker."""
        if not self._tracker.find_new_frees(snapshot.workers):
            return
        pending = {action.pid for action in self._actions.pending if isinstance(action, Free)}
        # An outcome is queued before its action stops being pending: now all of ours are known.
        if not self._wakes.empty():
            self._handle_wakes()
            self._wakes.put(None)  # the next tick shows the other outcomes
        for worker in self._tracker.find_new_frees(snapshot.workers):
            if worker.pid in pending or worker.last_free is None:
                continue
            outcome = self._tracker.take_free(worker, self._started_at)
            if outcome is not None:
                # The worker's clock is not ours, and may be set to anything.
                age = snapshot.time - worker.last_free.time
                at = worker.last_free.time if 0 <= age <= GAP else snapshot.time
                self._events.add(at, outcome)
                if outcome.state == "done" or outcome.when_possible:
                    self._outcomes.add(outcome, time.monotonic())

    def _record(self, snapshot: Snapshot, ended: EndedPairs, corrected: EndedPairs) -> Snapshot:
        """Write the history, and add what it knows of processes that ended before we started."""
        if self._recorder is None or snapshot.machine.recording is not None:
            return snapshot
        present = self._tracker.present.values()
        earlier, failure = self._attempt(
            "writing the history",
            partial(self._recorder.record, snapshot, present, ended, corrected),
        )
        self._tracker.remember(self._explain_earlier(earlier or (), snapshot), snapshot.time)
        problems = snapshot.problems
        if failure is not None:
            problems = (*problems, Problem("history", failure))
        return replace(snapshot, ended=self._tracker.ended, problems=problems)

    def _explain_earlier(
        self, earlier: tuple[EndedProcess, ...], snapshot: Snapshot
    ) -> tuple[EndedProcess, ...]:
        """Ends from before we started, those without a verdict explained as far as possible."""
        unexplained = [end for end in earlier if end.verdict is None and not end.was_seen]
        if self._ends is None or self._recorder is None or not unexplained:
            return earlier
        explained, _ = self._attempt(
            "explaining earlier ends",
            partial(self._ends.explain_unseen, unexplained, snapshot.time),
        )
        for end in explained or ():
            self._recorder.correct(end)
        known = {(end.pid, end.started): end for end in (*earlier, *(explained or ()))}
        return tuple(known.values())

    def _attempt(self, step: str, do: Callable[[], _T]) -> tuple[_T | None, str | None]:
        """Returns the result, or why there is none: a step that fails must not stop the others.

        A failure is logged once, until it changes.
        """
        try:
            result, failure = do(), None
        except Exception as error:  # noqa: BLE001 - shown as unknown, with the reason in doctor
            result, failure = None, f"{type(error).__name__}: {error}"
            if self._failures.get(step) != failure:
                import logging  # imported late: a single reading hardly ever needs it

                logging.getLogger("mpsbar").warning("%s failed: %s", step, failure)
        self._failures[step] = failure
        return result, failure


def _is_trivial(outcome: Outcome) -> bool:
    """Returns whether it is not worth showing: an automatic free that found the process busy."""
    return isinstance(outcome, Freed) and outcome.cause is not None and outcome.state != "done"
