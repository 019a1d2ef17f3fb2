"""Decides which caches the monitor frees by itself, together with the other monitors that run.

Choices for single processes are shared through a file, and only one of the monitors frees.
"""

import queue
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from mpsbar.core.actions import Free, Freed, SetAutoFree
from mpsbar.core.auto_free import AutoFree
from mpsbar.core.settings import Settings
from mpsbar.core.snapshot import AutoFreeStatus, Snapshot

if TYPE_CHECKING:
    from mpsbar.system.auto_free_file import SharedAutoFree

_T = TypeVar("_T")


class Attempt(Protocol):
    """Returns the result, or why there is none; a failure is logged."""

    def __call__(self, step: str, do: Callable[[], _T]) -> tuple[_T | None, str | None]: ...


class AutoFreer:
    """Call `choose` and `apply` from any thread, all else on the ticking thread."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._auto_free = AutoFree()
        self._chosen: queue.SimpleQueue[SetAutoFree] = queue.SimpleQueue()  # not yet in the file
        self._shared: SharedAutoFree | None = None  # from the first `consider` on

    def apply(self, settings: Settings) -> None:
        self._auto_free.apply(settings)

    def choose(self, action: SetAutoFree) -> None:
        """Sets when the cache of one process is freed by itself, until it ends."""
        self._auto_free.set_rule(action)
        self._chosen.put(action)

    def note(self, outcome: Freed) -> None:
        """Remembers how a free ended, which may have been one of these."""
        self._auto_free.note(outcome, time.time())

    def find_statuses(self, snapshot: Snapshot) -> dict[int, AutoFreeStatus]:
        return self._auto_free.find_statuses(snapshot)

    def consider(self, snapshot: Snapshot) -> tuple[list[Free], list[Freed]]:
        """Returns what to free now, and which processes are left alone from now on.

        Nothing, where another monitor frees.
        """
        if not self._attempt("sharing automatic frees", self._share)[0]:
            return [], []
        frees, _ = self._attempt("automatic frees", partial(self._auto_free.consider, snapshot))
        return frees or ([], [])

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()

    def _share(self) -> bool:
        """Exchanges choices with the other monitors; returns whether this is the one that frees."""
        if self._shared is None:
            from mpsbar.system.auto_free_file import SharedAutoFree

            self._shared = SharedAutoFree()
        shared = self._shared
        while not self._chosen.empty():
            action = self._chosen.get()
            if action.started is not None:  # else it might hold for another process some day
                self._attempt("saving a choice", partial(shared.write, action))
        rules = shared.read()
        if rules is not None:
            self._auto_free.set_rules(rules)
        return shared.may_free()
