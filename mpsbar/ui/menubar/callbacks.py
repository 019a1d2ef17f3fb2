"""Functions that AppKit and rumps call: an exception in one must not end the app."""

import logging
from collections.abc import Callable
from typing import Any

_log = logging.getLogger("mpsbar")


def guarded(function: Callable[..., Any]) -> Callable[..., None]:
    """The same function, but what it raises is logged with its traceback."""

    def call(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:  # noqa: BLE001 - PyObjC would end the app, rumps print it to nobody
            _log.exception("%s failed", getattr(function, "__qualname__", function))

    return call
