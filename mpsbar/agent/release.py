"""Free: give every cache of this process back, measured before and after."""

import gc
import os
import sys
import time
from typing import Any, Optional

from .backends import IN_USE, NOT_KNOWN, every
from .interrupts import raised_by_signal
from .turn import Turn

Report = dict[str, Any]


class Free:
    """One Free of all backends; `step` until it answers."""

    SECONDS = 5.0  # the deadline of what still waits for its turn

    def __init__(self, gpu_client: Optional[bool], seconds: float = SECONDS) -> None:
        self._started = time.perf_counter()
        states = [(backend, backend.state(gpu_client)) for backend in every()]
        used = [backend for backend, state in states if state == IN_USE]
        self._not_known = [backend.NAME for backend, state in states if state == NOT_KNOWN]
        self._careful = [backend for backend in used if not backend.ANYWHERE]
        self._reports: dict[str, Report] = {}
        self._turn: Optional[Turn] = None
        if self._careful:
            self._turn = Turn(self._prepare, self._work, time.monotonic() + seconds)
        elif used and not self._not_known:
            gc.collect()  # never beside MPS: finalizers of its tensors belong on main
        for backend in used:
            if backend.ANYWHERE:
                self._reports[backend.NAME] = _release_here(backend)

    def step(self) -> Optional[Report]:
        """The answer once there is one, else None: call again in a millisecond or two."""
        turn = self._turn
        if turn is not None:
            if not turn.step():
                return None
            turn.clean_up()
            for backend in self._careful:
                self._reports.setdefault(backend.NAME, {"freed": None}).update(_how_it_ended(turn))
        busy = [report["busy"] for report in self._reports.values() if "busy" in report]
        return {
            "state": "busy" if busy else "done",
            "reason": busy[0] if busy else None,
            "freed": sum(report["freed"] or 0 for report in self._reports.values()),
            "seconds": time.perf_counter() - self._started,
            "not_known": self._not_known,
            "backends": self._reports,
        }

    def _prepare(self, on_main: bool) -> None:
        if on_main:  # elsewhere a finalizer would run the host's code on our thread
            collect_on_main()

    def _work(self) -> None:
        for backend in self._careful:
            report = self._reports[backend.NAME] = {"freed": None, "before": backend.measure()}
            start = time.perf_counter()
            backend.release()
            report["paused"] = time.perf_counter() - start
            report["after"] = backend.measure()
            report["freed"] = max(0, report["before"] - report["after"])


def collect_on_main() -> None:
    """gc.collect(), but what Ctrl-C or a signal handler raises inside a finalizer is not lost.

    Python hands the exceptions of finalizers to sys.unraisablehook and goes on; those of the host's
    signals must still reach the host.
    """
    usual = sys.unraisablehook
    here = os.getpid()
    interrupts: list[BaseException] = []

    def keep(unraisable: Any) -> None:
        if os.getpid() == here and raised_by_signal(unraisable.exc_value):
            interrupts.append(unraisable.exc_value)
        else:
            usual(unraisable)

    sys.unraisablehook = keep
    try:
        gc.collect()
    finally:
        if sys.unraisablehook is keep:
            sys.unraisablehook = usual
    if interrupts:
        raise interrupts[0]


def _release_here(backend: Any) -> Report:
    try:
        before = backend.measure()
        told = backend.release()
        after = backend.measure()
    except Exception as error:  # noqa: BLE001 - one backend's failure is its own answer
        return {"freed": None, "error": str(error)[:300]}
    freed = told if before is None or after is None else max(0, before - after)
    return {"freed": freed, "before": before, "after": after}


def _how_it_ended(turn: Turn) -> Report:
    if turn.withdrawn:
        reason = turn.refused
        return {
            "busy": {"code": reason.code, "where": reason.where} if reason else {"code": "busy"}
        }
    ended: Report = {"on_main": turn.on_main}
    if turn.failure is not None:
        ended["error"] = turn.failure
    return ended
