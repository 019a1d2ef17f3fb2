"""Reads that may never come back, done on a thread that can be left behind.

A process stuck in the kernel makes whoever asks about it hang too, and no time-out of a system call
helps. So one thread does the reading; if it does not get on, it is given up together with what it
was reading, and another takes the rest.
"""

import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

# A read takes microseconds; a quarter of a second without any progress is a hang.
PATIENCE = 0.25
# For all reads of one look together.
CEILING = 2.0
# Threads given up for good cost memory; with so many only what is vital is still asked.
MOST_STUCK = 8

Job = tuple[Hashable, Callable[[], Any]]


class Stuck(Exception):
    """It has not answered, now or when it was last asked, and is not asked again meanwhile."""


class _Batch:
    """Jobs on their way, done by the reading thread in order until it is left behind."""

    __slots__ = ("is_left", "jobs", "results")

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.results: list[Any] = []
        self.is_left = False

    def work(self) -> None:
        for _, read in self.jobs:
            if self.is_left:
                return
            try:
                result = read()
            except Exception as error:  # noqa: BLE001 - an answer like any other
                result = error
            self.results.append(result)


class _Reader:
    """A thread that works through one batch after the other."""

    def __init__(self) -> None:
        self._batches: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Batch] = queue.SimpleQueue()
        self.give = self._batches.put
        self.thread = threading.Thread(target=self._run, name="mpsbar-read", daemon=True)
        self.thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether the batch it was given is done."""
        try:
            self._done.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return False
        return True

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            batch.work()
            self._done.put(batch)


class Readers:
    """`run` and `close` from one thread only."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._reader: _Reader | None = None
        self._stuck: dict[Hashable, threading.Thread] = {}

    def run(
        self, jobs: Sequence[Job], seconds: float = CEILING, vital: int = 0
    ) -> dict[Hashable, Any]:
        """What each job gave, by its key: a value, the exception it raised, or Stuck.

        What there was no time for is not among them. The first `vital` jobs are tried even when
        many others are stuck.
        """
        deadline = time.monotonic() + seconds
        if self._stuck:
            self._stuck = {key: thread for key, thread in self._stuck.items() if thread.is_alive()}
        results: dict[Hashable, Any] = {key: Stuck() for key, _ in jobs if key in self._stuck}
        while time.monotonic() < deadline:
            if len(self._stuck) >= MOST_STUCK:
                results = {key: Stuck() for key, _ in jobs[vital:]} | results
            left = [job for job in jobs if job[0] not in results]
            if not left:
                break
            results.update(self._run_batch(left, deadline))
        return results

    def close(self) -> None:
        if self._reader is not None:
            self._reader.give(None)
            self._reader = None

    def _run_batch(self, jobs: Sequence[Job], deadline: float) -> dict[Hashable, Any]:
        """The results of as many as came through; Stuck for one that does not."""
        batch = _Batch(jobs)
        if self._reader is None:
            self._reader = _Reader()
        self._reader.give(batch)
        seen = -1
        while not self._reader.wait(min(self._patience, deadline - time.monotonic())):
            number = len(batch.results)
            if number == seen or time.monotonic() >= deadline:
                return self._leave(batch, number, is_stuck=number == seen)
            seen = number
        return {key: result for (key, _), result in zip(jobs, batch.results, strict=True)}

    def _leave(self, batch: _Batch, number: int, is_stuck: bool) -> dict[Hashable, Any]:
        """Give the thread up: it ends by itself once its present read comes back."""
        assert self._reader is not None
        batch.is_left = True
        results = {key: batch.results[index] for index, (key, _) in enumerate(batch.jobs[:number])}
        if number < len(batch.jobs):
            key = batch.jobs[number][0]
            self._stuck[key] = self._reader.thread  # at the ceiling perhaps only slow: time tells
            if is_stuck:
                results[key] = Stuck()
        self.close()
        return results
