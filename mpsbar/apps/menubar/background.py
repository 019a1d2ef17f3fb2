"""Work off the main thread, and what follows from it back on it; what fails is logged."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from PyObjCTools import AppHelper

_T = TypeVar("_T")
_log = logging.getLogger("mpsbar")


class Background:
    def __init__(self, on_failure: Callable[[str, Exception], None]) -> None:
        self._on_failure = on_failure
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="mpsbar-desk")
        self._in_order = ThreadPoolExecutor(1, thread_name_prefix="mpsbar-write")

    def run(self, what: str, work: Callable[[], _T], then: Callable[[_T], None]) -> None:
        self.follow(what, self._pool.submit(work), then)

    def write(self, what: str, work: Callable[[], None]) -> None:
        """One after the other: of two clicks the later one must win."""
        self.follow(what, self._in_order.submit(work), lambda _: None)

    def follow(self, what: str, future: "Future[_T]", then: Callable[[_T], None]) -> None:
        """`then` on the main thread, also while the menu or an alert is open."""

        def done(ended: "Future[_T]") -> None:
            if not ended.cancelled():
                AppHelper.callAfter(self._end, what, ended, then)

        future.add_done_callback(done)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._in_order.shutdown(wait=True)  # a setting chosen just before Quit is kept

    def _end(self, what: str, ended: "Future[Any]", then: Callable[[Any], None]) -> None:
        try:
            result = ended.result()
        except Exception as error:  # noqa: BLE001 - logged and told
            _log.exception("%s failed", what)
            guarded(self._on_failure)(what, error)
            return
        guarded(then)(result)


def guarded(function: Callable[..., Any]) -> Callable[..., None]:
    """A callback of AppKit: what it raises is logged with its traceback, and the app goes on."""

    def call(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:  # noqa: BLE001 - PyObjC would end the app, rumps print it to nobody
            _log.exception("%s failed", getattr(function, "__qualname__", function))

    return call
