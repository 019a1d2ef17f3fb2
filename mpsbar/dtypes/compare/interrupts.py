"""Delays Ctrl-C while the model is being restored, so that it is always restored whole."""

from __future__ import annotations

import signal
import threading
from typing import Any, Callable


def run_then_restore(run: Callable[[], Any], restore: Callable[[], Any]) -> Any:
    """Call run(), then restore() whatever happened; a Ctrl-C during restore() waits."""
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
    """A SIGINT handler that calls the user's own; nothing is installed off the main thread."""

    def __init__(self) -> None:
        self.holds = False
        self._waiting = False
        self._before: Any = None

    def install(self) -> None:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # None: installed by C code; SIG_IGN and SIG_DFL are no functions
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
