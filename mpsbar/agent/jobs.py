"""The queue of jobs (free, tensors, limit): one runs at a time, equal requests share its answer."""

import time
from typing import Any, Optional

from . import methods, pending_free
from .conventions import NEVER_FREED
from .gc_pause import CollectorPause
from .pacing import TOO_OFTEN, JobPace
from .protocol import Message

MAX_JOBS = 8  # each limit that is asked for is a job of its own


class Job:
    """A job under way, and the requesters that wait for its answer."""

    def __init__(self, identity: methods.JobIdentity, work: Any) -> None:
        self.identity = identity
        self.method = identity[0]
        self.work = work
        self.requesters: list[Any] = []


class JobQueue:
    """Begins jobs, steps the first of them, and tries the pending Free."""

    def __init__(self, pause: CollectorPause) -> None:
        self._pause = pause
        self._jobs: list[Job] = []
        self._pace = JobPace()  # one for all methods: the host waits for each of them

    def is_empty(self) -> bool:
        return not self._jobs

    def ask(
        self, identity: methods.JobIdentity, params: Message, requester: Any
    ) -> Optional[Message]:
        """Begins a job or joins the same one; returns an answer if there is nothing to wait for."""
        method = identity[0]
        if method == "free":
            if params.get("cancel") is True:
                return self._cancel_pending_free()
            self._prepare_free(params)
        for job in self._jobs:
            if job.identity == identity:
                break
        else:
            answer = self._pace.find_answer(time.monotonic(), identity)
            if answer is None and len(self._jobs) >= MAX_JOBS:
                answer = TOO_OFTEN
            if answer is not None:
                return _during_rest(answer) if params.get("when_possible") is True else answer
            job = Job(identity, methods.start_job(method, params, self._pause))
            self._jobs.append(job)
        job.requesters.append(requester)
        return None

    def step(self) -> "Optional[tuple[list[Any], Message]]":
        """Steps the first job only: two at a time could disturb each other on the main thread.

        Returns its requesters and the answer, once it has ended.
        """
        job = self._jobs[0]
        try:
            answer = job.work.step()
        except Exception as problem:  # noqa: BLE001 - the client gets the error
            answer = {"state": "failed", "error": str(problem)[:300]}
        if answer is None:
            return None
        self._jobs.remove(job)
        if job.method == "free":
            answer = _note_pending_free(answer)
        paused = getattr(job.work, "paused", 0.0)
        self._pace.note(answer, paused, time.monotonic(), job.identity)
        return job.requesters, answer

    def try_pending_free(self, now: float) -> None:
        """Begins an attempt of the pending Free, if it is time and no job is under way."""
        pending = pending_free.find_pending()
        if pending is None or now < pending.next_try or self._jobs:
            return
        if self._pace.is_resting(now):
            return  # tried after the rest, also for a client that keeps asking
        seconds = pending.begin_try(now)
        self._jobs.append(Job(("free", None), methods.start_attempt(pending, seconds, self._pause)))

    def _prepare_free(self, params: Message) -> None:
        """Stores a Free that may wait; any other makes an attempt under way answer at its end."""
        if params.get("when_possible") is True:
            methods.start_pending_free(params)
            self.try_pending_free(time.monotonic())
            return
        for job in self._jobs:
            if job.method == "free":
                job.work.is_attempt = False

    def _cancel_pending_free(self) -> Message:
        was_pending = pending_free.drop_pending()
        for job in self._jobs:
            if job.method == "free" and job.work.is_attempt:
                job.work.give_up()
        return {"state": "cancelled" if was_pending else "nothing"}


def _during_rest(answer: Message) -> Message:
    """Returns the last answer for a Free that may wait, with the pending Free if there is one."""
    pending = pending_free.find_pending()
    if pending is None or answer["state"] != "busy":
        pending_free.drop_pending()
        return answer
    return {**answer, "kept": pending.describe()}


def _note_pending_free(answer: Message) -> Message:
    """Completes the answer of an attempt; a Free that was done fulfills the pending one."""
    pending, now = pending_free.find_pending(), time.monotonic()
    if pending is None:
        return answer
    if answer["state"] != "busy":
        pending_free.drop_pending()
        return answer
    if (answer["reason"] or {}).get("code") in NEVER_FREED:
        pending_free.drop_pending()  # no moment will be a safe one
        return {**answer, "number": methods.remember_never(answer)}
    pending.note_busy(answer, now)
    if pending.is_over(now):
        pending_free.drop_pending()
        waited = time.time() - pending.asked
        return {**answer, "number": methods.remember_expired(waited)}
    return {**answer, "kept": pending.describe()}
