"""Frees every cache of this process, measured before and after."""

import os
import time
from typing import Any, Callable, Optional

from .backends import IN_USE, NOT_KNOWN
from .collection import collect_on_main, find_gui_toolkit
from .gc_pause import CollectorPause, call_directly
from .import_backends import BACKENDS
from .main_thread import MainThreadJob
from .protocol import JobAnswer

# How long caches that any thread may release wait for a collection on main: it is only a help.
COLLECT_SECONDS = 0.04
# The last Free of this process, whoever asked for it: plain numbers, and the pid they belong to.
_last: "tuple[int, JobAnswer]" = (0, {})


def read_last_free() -> Optional[JobAnswer]:
    """Returns None if this process has freed nothing yet; a forked child inherits its parent's
    numbers.
    """
    pid, report = _last
    return report if pid == os.getpid() else None


def remember(
    state: str, freed: Any, seconds: float, was_pending: bool = False, reason: Optional[str] = None
) -> int:
    """Returns its number, by which a monitor knows whether it has shown this Free already."""
    global _last  # noqa: PLW0603 - one value, replaced as a whole
    before = read_last_free()
    number = before["number"] + 1 if before else 1
    _last = (os.getpid(), {
        "number": number,
        "time": time.time(),
        "state": state,
        # What a patched framework gave is an object of the host's: not kept on our thread.
        "freed": freed if type(freed) is int else None,
        "seconds": seconds,
        "when_possible": was_pending,
        "reason": reason,  # the code of why it was busy
    })  # fmt: skip
    return number


class FreeJob:
    """One Free of all backends; `step` until it answers."""

    SECONDS = 5.0  # the deadline of what still waits for a safe moment

    def __init__(
        self,
        gpu_client: Optional[bool],
        seconds: float = SECONDS,
        pause: Optional[CollectorPause] = None,
    ) -> None:
        self._started = time.perf_counter()
        # An attempt of a pending Free: if busy, nothing at all is done.
        self.is_attempt = False
        self.paused = 0.0  # seconds that this process could do nothing else
        self._call: Callable[..., Any] = call_directly if pause is None else pause.call
        states = [(backend, backend.state(gpu_client)) for backend in BACKENDS]
        used = [backend for backend, state in states if state == IN_USE]
        self._not_known = [backend.NAME for backend, state in states if state == NOT_KNOWN]
        self._alone = [backend for backend in used if not backend.ANYWHERE]
        self._anywhere = [backend for backend in used if backend.ANYWHERE]
        self._reports: dict[str, JobAnswer] = {}
        self._collected = False
        self._gui_toolkit = find_gui_toolkit()
        self._job: Optional[MainThreadJob] = None
        self._trims: Optional[dict[str, Any]] = None  # by backend; None: not begun
        now = time.monotonic()
        if self._alone:
            self._job = MainThreadJob(
                self._prepare, self._release_alone, now + seconds, True, pause
            )
            self._job.only_on_main = any(backend.ON_MAIN_ONLY for backend in self._alone)
        elif used and self._gui_toolkit is None:
            # Only for gc.collect(): the finalizers of the host's objects belong on main.
            deadline = now + min(seconds, COLLECT_SECONDS)
            self._job = MainThreadJob(self._prepare, None, deadline, False, pause)

    def step(self) -> Optional[JobAnswer]:
        """Returns the answer once there is one, else None: call again in a millisecond or two."""
        job = self._job
        if job is not None:
            if not job.step():
                return None
            if self._trims is None:
                job.clean_up()
                self._trims = self._start_trims() if job.given_up else {}
            if not all(trim.step() for trim in self._trims.values()):
                return None
            for backend in self._alone:
                self._reports.setdefault(backend.NAME, {"freed": None}).update(
                    self._end(job, backend)
                )
        is_put_off = self.is_attempt and job is not None and job.given_up
        for backend in [] if is_put_off else self._anywhere:
            self._reports[backend.NAME] = self._release_anywhere(backend)
        busy = [report["busy"] for report in self._reports.values() if "busy" in report]
        has_failed = any("error" in report for report in self._reports.values())
        freed = sum(report["freed"] or 0 for report in self._reports.values())
        seconds = time.perf_counter() - self._started
        state = "busy" if busy else "failed" if has_failed else "done"
        number = None
        if not (self.is_attempt and busy):
            code = busy[0]["code"] if busy else None
            number = remember(state, freed, seconds, self.is_attempt, code)
        return {
            "number": number,
            "state": "busy" if busy else "done",
            "reason": busy[0] if busy else None,
            "freed": freed,
            "seconds": seconds,
            "paused": self.paused,
            "collected": self._collected,
            "trimmed": any("trimmed" in report for report in self._reports.values()),
            "gui_toolkit": self._gui_toolkit,
            "main_was_waiting": job is not None and job.main_was_waiting,
            "not_known": self._not_known,
            "backends": self._reports,
        }

    def _start_trims(self) -> "dict[str, Any]":
        started = ((backend.NAME, backend.start_trim()) for backend in self._alone)
        return {name: trim for name, trim in started if trim is not None}

    def _end(self, job: MainThreadJob, backend: Any) -> JobAnswer:
        """Describes how it ended for one backend: a busy one may have trimmed its cache itself."""
        trim = (self._trims or {}).get(backend.NAME)
        if trim is None or not trim.freed:
            return _outcome(job)
        return {"freed": trim.freed, "trimmed": True}

    def give_up(self) -> None:
        """Makes it answer soon, unless it runs already."""
        if self._job is not None:
            self._job.end_waiting()

    def _prepare(self, on_main: bool) -> None:
        start = time.perf_counter()
        if on_main:  # elsewhere a finalizer would run the host's code on our thread
            self._gui_toolkit = find_gui_toolkit()  # it may have been imported meanwhile
            if self._gui_toolkit is None:
                collect_on_main()
                self._collected = True
            for backend in self._alone:
                backend.finish_work()
        self.paused += time.perf_counter() - start

    def _release_alone(self) -> None:
        for backend in self._alone:
            report = self._reports[backend.NAME] = {"freed": None, "before": backend.measure()}
            start = time.perf_counter()
            function, arguments = backend.release_call()
            function(*arguments)
            report["paused"] = time.perf_counter() - start
            self.paused += report["paused"]
            report["after"] = backend.measure()
            report["freed"] = max(0, report["before"] - report["after"])

    def _release_anywhere(self, backend: Any) -> JobAnswer:
        start = time.perf_counter()
        try:
            before = backend.measure()
            function, arguments = backend.release_call()
            released = self._call(function, *arguments)
            after = backend.measure()
        except Exception as error:  # noqa: BLE001 - one backend's failure is its own answer
            return {"freed": None, "error": str(error)[:300]}
        finally:
            self.paused += time.perf_counter() - start
        freed = released if before is None or after is None else max(0, before - after)
        return {"freed": freed, "before": before, "after": after}


def _outcome(job: MainThreadJob) -> JobAnswer:
    if job.given_up:
        reason = job.refused
        return {
            "busy": {"code": reason.code, "where": reason.where} if reason else {"code": "busy"}
        }
    ended: JobAnswer = {"on_main": job.on_main}
    if job.failure is not None:
        ended["error"] = job.failure
    return ended
