"""Waits that Ctrl-C always ends.

A signal that arrives just as the main thread begins to wait sets Python's flag but interrupts
nothing, so a wait without a limit would go on for ever: on two busy cores `mpsbar free --host` did
so in the eighth of a row of runs whose Ctrl-C came as ssh started.
"""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

_T = TypeVar("_T")
# Seconds until a signal that came at that moment is noticed.
_STEP = 0.2


def wait_for_result(future: "Future[_T]") -> _T:
    """Like `future.result()`."""
    while not future.done():
        wait((future,), timeout=_STEP)
    return future.result()


def as_completed(futures: "Iterable[Future[_T]]") -> "Iterator[Future[_T]]":
    """Like `as_completed(futures)`."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=_STEP, return_when=FIRST_COMPLETED)
        yield from done


def wait_for_event(event: threading.Event) -> None:
    """Like `event.wait()`, in longer steps: a service may wait so for weeks."""
    while not event.wait(5 * _STEP):
        pass
