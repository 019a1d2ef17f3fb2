"""Reads that may hang, done on threads that can be abandoned.

Reading about a process that is stuck in the kernel hangs too, and system calls have no time-out for
it. So one thread does the reading; if it makes no progress, it is abandoned together with what it
was reading, and another thread takes the rest. A thread that has not begun hangs nowhere: on a busy
computer it may wait a second for a processor. A value that is slow to read and changes seldom has
a thread of its own (BackgroundValue): Metal's first device and the command ioreg can take a second.
"""

import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

# A read takes microseconds; a quarter of a second without any progress is a hang.
STALL_SECONDS = 0.25
# For all reads of one scan together.
SCAN_SECONDS = 2.0
# Abandoned threads cost memory; with so many only the vital reads are still made.
MAX_STUCK = 8
# How long a scan waits for a BackgroundValue. Usually enough, and far below STALL_SECONDS.
BACKGROUND_SECONDS = 0.1

T = TypeVar("T")
ReadJob = tuple[Hashable, Callable[[], Any]]


class ReadStuckError(Exception):
    """This read or an earlier one with the same key hangs; it is not tried again meanwhile."""


class _Batch:
    """Jobs that the reading thread does in order until it is abandoned."""

    __slots__ = ("has_begun", "is_abandoned", "jobs", "results")

    def __init__(self, jobs: Sequence[ReadJob]) -> None:
        self.jobs = jobs
        self.results: list[Any] = []
        self.has_begun = False
        self.is_abandoned = False

    def work(self) -> None:
        self.has_begun = True
        for _, read in self.jobs:
            if self.is_abandoned:
                return
            try:
                result = read()
            except Exception as error:  # noqa: BLE001 - an answer like any other
                result = error
            self.results.append(result)


class _ReadThread:
    """A thread that works through one batch after another."""

    def __init__(self) -> None:
        self._batches: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
        self.give = self._batches.put
        self.thread = threading.Thread(target=self._run, name="mpsbar-read", daemon=True)
        self.thread.start()

    def wait(self, seconds: float) -> bool:
        """Returns whether the batch is done within that time."""
        try:
            self._done.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return False
        return True

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            batch.work()
            self._done.put(batch)


class TimeoutPool:
    """Runs jobs with a time-out. Call `run` and `close` from one thread only."""

    def __init__(self, stall_seconds: float = STALL_SECONDS) -> None:
        self._stall_seconds = stall_seconds
        self._reader: _ReadThread | None = None
        self._stuck: dict[Hashable, threading.Thread] = {}

    def run(
        self, jobs: Sequence[ReadJob], seconds: float = SCAN_SECONDS, vital: int = 0
    ) -> dict[Hashable, Any]:
        """What each job returned, by its key: a value, the exception it raised, or ReadStuckError.

        Jobs for which there was no time are missing. The first `vital` jobs are tried even when
        many others are stuck.
        """
        deadline = time.monotonic() + seconds
        if self._stuck:
            self._stuck = {key: thread for key, thread in self._stuck.items() if thread.is_alive()}
        results: dict[Hashable, Any] = {
            key: ReadStuckError() for key, _ in jobs if key in self._stuck
        }
        while time.monotonic() < deadline:
            if len(self._stuck) >= MAX_STUCK:
                results = {key: ReadStuckError() for key, _ in jobs[vital:]} | results
            left = [job for job in jobs if job[0] not in results]
            if not left:
                break
            results.update(self._run_batch(left, deadline))
        return results

    def close(self) -> None:
        if self._reader is not None:
            self._reader.give(None)
            self._reader = None

    def _run_batch(self, jobs: Sequence[ReadJob], deadline: float) -> dict[Hashable, Any]:
        """The results of the jobs that were done; ReadStuckError for one that hangs."""
        batch = _Batch(jobs)
        if self._reader is None:
            self._reader = _ReadThread()
        self._reader.give(batch)
        done_before = -1
        while not self._reader.wait(min(self._stall_seconds, deadline - time.monotonic())):
            done = len(batch.results) if batch.has_begun else -1
            is_stuck = batch.has_begun and done == done_before
            if is_stuck or time.monotonic() >= deadline:
                return self._abandon(batch, max(0, done), is_stuck)
            done_before = done
        return {key: result for (key, _), result in zip(jobs, batch.results, strict=True)}

    def _abandon(self, batch: _Batch, done: int, is_stuck: bool) -> dict[Hashable, Any]:
        """Abandons the thread: it ends by itself once its present read returns."""
        assert self._reader is not None
        batch.is_abandoned = True
        results = {key: batch.results[index] for index, (key, _) in enumerate(batch.jobs[:done])}
        if not batch.has_begun:
            self._stuck[batch] = self._reader.thread  # no read is to blame
        elif done < len(batch.jobs):
            key = batch.jobs[done][0]
            self._stuck[key] = self._reader.thread  # at the deadline perhaps only slow
            if is_stuck:
                results[key] = ReadStuckError()
        self.close()
        return results


class BackgroundValue(Generic[T]):
    """A value read every `interval` seconds on a thread. Call `get` from one thread at a time."""

    def __init__(
        self, read: Callable[[], T | None], interval: float, clock: Callable[[], float]
    ) -> None:
        """If `read` raises, the value is None and `failure` says why."""
        self._read = read
        self._interval = interval
        self._clock = clock
        self._due: float | None = None
        self._reading: threading.Thread | None = None
        self._value: T | None = None
        self.failure: str | None = None  # of the last reading

    def get(self) -> T | None:
        """The newest value; None while there is none yet."""
        now = self._clock()
        if self._reading is None and (self._due is None or now >= self._due):
            self._due = now + self._interval
            self._reading = threading.Thread(
                target=self._refresh, name="mpsbar-seldom", daemon=True
            )
            self._reading.start()
        if self._reading is not None:
            self._reading.join(BACKGROUND_SECONDS)
            if not self._reading.is_alive():
                self._reading = None
        return self._value

    def wait(self, seconds: float) -> None:
        """Wait for the first reading: for a command that looks only once."""
        self.get()
        if self._reading is not None:
            self._reading.join(seconds)

    def _refresh(self) -> None:
        try:
            value, failure = self._read(), None
        except Exception as error:  # noqa: BLE001 - no number is an answer; its absence is shown
            value, failure = None, f"{type(error).__name__}: {error}"
        self._value, self.failure = value, failure
