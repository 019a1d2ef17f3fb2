"""The jobs under way, free, tensors and limit: one runs at a time, and several may wait for it."""

import time
from typing import Any, Optional

from . import kept_free, methods
from .gc_pause import CollectorPause
from .pacing import TOO_OFTEN, JobPace
from .protocol import Message

MOST_JOBS = 8  # each limit that is asked for is a job of its own


class Job:
    """A free, tensors or limit under way, and who waits for its answer."""

    def __init__(self, identity: methods.JobIdentity, work: Any) -> None:
        self.identity = identity
        self.method = identity[0]
        self.work = work
        self.askers: list[Any] = []


class JobQueue:
    """Begins jobs, steps the first of them, and keeps a Free that waits for its moment."""

    def __init__(self, pause: CollectorPause) -> None:
        self._pause = pause
        self._jobs: list[Job] = []
        self._pace = JobPace()  # one for all methods: the host waits for each of them

    def is_empty(self) -> bool:
        return not self._jobs

    def ask(self, identity: methods.JobIdentity, params: Message, asker: Any) -> Optional[Message]:
        """Begin a job or join the same one; an answer where there is nothing to wait for."""
        method = identity[0]
        if method == "free":
            if params.get("cancel") is True:
                return self._cancel_kept_free()
            self._prepare_free(params)
        for job in self._jobs:
            if job.identity == identity:
                break
        else:
            answer = self._pace.find_answer(time.monotonic(), identity)
            if answer is None and len(self._jobs) >= MOST_JOBS:
                answer = TOO_OFTEN
            if answer is not None:
                return _during_rest(answer) if params.get("when_possible") is True else answer
            job = Job(identity, methods.start_job(method, params, self._pause))
            self._jobs.append(job)
        job.askers.append(asker)
        return None

    def step(self) -> "Optional[tuple[list[Any], Message]]":
        """Go on with the first: two at a time could be in each other's way on main.

        Once it has ended: who asked for it, and the answer.
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
            answer = _note_kept_free(answer)
        paused = getattr(job.work, "paused", 0.0)
        self._pace.note(answer, paused, time.monotonic(), job.identity)
        return job.askers, answer

    def try_kept_free(self, now: float) -> None:
        """Begin an attempt of the Free that is kept, if it is time and no job is under way."""
        kept = kept_free.find_kept()
        if kept is None or now < kept.next_try or self._jobs:
            return
        if self._pace.is_resting(now):
            return  # it is tried after the rest: who asks again and again is no exception
        seconds = kept.begin_try(now)
        self._jobs.append(Job(("free", None), methods.start_attempt(kept, seconds, self._pause)))

    def _prepare_free(self, params: Message) -> None:
        """Keep a Free that may wait. Any other makes an attempt under way one that must answer."""
        if params.get("when_possible") is True:
            methods.keep_free(params)
            self.try_kept_free(time.monotonic())
            return
        for job in self._jobs:
            if job.method == "free":
                job.work.is_attempt = False

    def _cancel_kept_free(self) -> Message:
        was_kept = kept_free.forget()
        for job in self._jobs:
            if job.method == "free" and job.work.is_attempt:
                job.work.give_up()
        return {"state": "cancelled" if was_kept else "nothing"}


def _during_rest(answer: Message) -> Message:
    """The last answer, for who asks for a Free that may wait: it waits, or was just done."""
    kept = kept_free.find_kept()
    if kept is None or answer["state"] != "busy":
        kept_free.forget()
        return answer
    return {**answer, "kept": kept.describe()}


def _note_kept_free(answer: Message) -> Message:
    """The answer of an attempt; a Free that was done fulfils the kept one."""
    kept, now = kept_free.find_kept(), time.monotonic()
    if kept is None:
        return answer
    if answer["state"] != "busy":
        kept_free.forget()
        return answer
    if (answer["reason"] or {}).get("code") in kept_free.NEVER:
        kept_free.forget()  # no moment will be a safe one
        return {**answer, "number": methods.remember_never(answer)}
    kept.note_busy(answer, now)
    if kept.is_over(now):
        kept_free.forget()
        waited = time.time() - kept.asked
        return {**answer, "number": methods.remember_expired(waited)}
    return {**answer, "kept": kept.describe()}
