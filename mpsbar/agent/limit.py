"""Limits the memory of this process's allocators: live, under the rules of Free, or at import."""

import os
import time
from typing import Any, Callable, Optional

from .backends import IN_USE, NOT_INITIALISED, NOT_KNOWN
from .conventions import LIMIT_VARIABLE, MAX_LIMIT, MIN_LIMIT
from .frameworks import FRAMEWORKS
from .gc_pause import CollectorPause, call_directly
from .import_backends import BACKENDS
from .main_thread import MainThreadJob
from .protocol import JobAnswer


class LimitJob:
    """One change of the limit; `step` until it answers. None restores what was before.

    Nothing is changed unless all allocators in use can keep the limit: what is live is never above
    it, also what a live tensor pins. torch would raise at the next allocation otherwise.
    """

    SECONDS = 5.0  # the deadline of what still waits for a safe moment

    def __init__(
        self,
        gpu_client: Optional[bool],
        limit: Optional[int],
        seconds: float = SECONDS,
        pause: Optional[CollectorPause] = None,
    ) -> None:
        self._started = time.perf_counter()
        self._limit = limit
        self.paused = 0.0  # seconds that this process could do nothing else
        self._call: Callable[..., Any] = call_directly if pause is None else pause.call
        states = {backend: backend.state(gpu_client) for backend in BACKENDS if backend.CAN_LIMIT}
        self._used = [backend for backend, state in states.items() if state == IN_USE]
        self._states = list(states.values())
        self._reports: dict[str, JobAnswer] = {}
        self._above: Optional[JobAnswer] = None  # why it was refused
        self._job: Optional[MainThreadJob] = None
        if not all(backend.LIMIT_ANYWHERE for backend in self._used):
            deadline = time.monotonic() + seconds
            self._job = MainThreadJob(_prepare, self._set_all, deadline, True, pause)
            self._call = call_directly

    def step(self) -> Optional[JobAnswer]:
        """Returns the answer once there is one, else None: call again in a millisecond or two."""
        if not self._used:
            return self._answer("refused", {"code": self._why_none()})
        job = self._job
        if job is None:
            try:
                self._set_all()
            except Exception as problem:  # noqa: BLE001 - the client gets the error
                return self._answer("failed", error=str(problem)[:300])
        else:
            if not job.step():
                return None
            job.clean_up()
            if job.given_up:
                reason = job.refused
                where = {"code": reason.code, "where": reason.where} if reason else {"code": "busy"}
                return self._answer("busy", where)
            if job.failure is not None:
                return self._answer("failed", error=job.failure)
        if self._above is not None:
            return self._answer("refused", self._above)
        return self._answer("done")

    def _why_none(self) -> str:
        if NOT_KNOWN in self._states:
            return "not_known"
        return "not_in_use" if NOT_INITIALISED in self._states else "no_limit"

    def _set_all(self) -> None:
        """Sets the limit: on main, or while every other thread waits; with LIMIT_ANYWHERE on the
        agent's thread.
        """
        start = time.perf_counter()
        try:
            before = {backend.NAME: backend.measure() for backend in self._used}
            if self._limit is not None:
                for backend in self._used:
                    least = backend.shrink(self._limit)
                    if least > self._limit:
                        self._above = {"code": "above", "least": least, "backend": backend.NAME}
                        break
            for backend in self._used:
                if self._above is None:
                    backend.set_limit(self._limit, self._call)
                after = backend.measure()
                self._reports[backend.NAME] = {
                    "limit": backend.read_limit(),
                    "held": after,
                    "freed": max(0, before[backend.NAME] - after),
                }
        finally:
            self.paused += time.perf_counter() - start

    def _answer(
        self, state: str, reason: Optional[JobAnswer] = None, error: Optional[str] = None
    ) -> JobAnswer:
        return {
            "state": state,
            "asked": self._limit,
            "reason": reason,
            "error": error,
            "seconds": time.perf_counter() - self._started,
            "backends": self._reports,
        }


def parse_limit(params: "dict[str, Any]") -> Optional[int]:
    """Returns the bytes of a request, None for "off"; ValueError for anything else."""
    value = params.get("bytes", False)
    if value is None:
        return None
    if type(value) is not int or not MIN_LIMIT <= value <= MAX_LIMIT:
        raise ValueError(f"bytes must be null, or a number from {MIN_LIMIT} to {MAX_LIMIT}")
    return value


def limit_at_import(module: str) -> None:
    """Sets what `mpsbar run --limit` asked for, once a framework has been imported; never raises.

    Others, such as torch, have read variables of their own by then.
    """
    try:
        names = {framework.name for framework in FRAMEWORKS if framework.module == module}
        limit = int(os.environ[LIMIT_VARIABLE])
        for backend in BACKENDS if MIN_LIMIT <= limit <= MAX_LIMIT else ():
            if backend.FRAMEWORK in names and backend.CAN_LIMIT and backend.LIMIT_AT_IMPORT:
                backend.set_limit(limit, call_directly)
    except Exception:  # noqa: BLE001, S110 - no limit was asked for, or this MLX has none
        pass


def _prepare(on_main: bool) -> None:
    """Does nothing: a limit needs no garbage collection."""
