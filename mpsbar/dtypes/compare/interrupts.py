"""Ctrl-C at any moment but while the model is put back; then right afterwards."""

from __future__ import annotations

import signal
import threading
from typing import Any, Callable


def run_then_restore(run: Callable[[], Any], restore: Callable[[], Any]) -> Any:
    """run(), then restore() whatever happened; a Ctrl-C meanwhile is raised after it."""
    guard = _Guard()
    try:
        guard.install()
        return run()
    finally:
        try:
            guard.holds = True
        finally:
            try:
                restore()
            finally:
                guard.remove()


class _Guard:
    """Our handler of SIGINT in front of the user's own; none off the main thread."""

    def __init__(self) -> None:
        self.holds = False
        self._waiting = False
        self._before: Any = None

    def install(self) -> None:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # not where Ctrl-C is ignored or another language's
                self._before = before
                signal.signal(signal.SIGINT, self._handle)

    def remove(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._waiting:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: Any) -> None:
        if self.holds:
            self._waiting = True
        else:
            self._before(number, frame)
