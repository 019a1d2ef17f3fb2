"""Whose exception is it: ours, or what a signal of the host raised while we worked?"""

import signal
from types import CodeType
from typing import Any, Optional


def raised_by_us(error: BaseException) -> bool:
    """Whether our work raised it; what a signal handler raised meanwhile belongs to the host."""
    return isinstance(error, Exception) and not raised_by_signal(error)


def raised_by_signal(error: Optional[BaseException]) -> bool:
    """Whether a signal's handler raised it: one is on its traceback."""
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = _handler_codes()
    trace = error.__traceback__ if error is not None else None
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _handler_codes() -> "set[CodeType]":
    found = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a functools.partial
        for target in (handler, vars(type(handler)).get("__call__")):
            code = getattr(target, "__code__", None)  # a method has it too
            if isinstance(code, CodeType):
                found.add(code)
    return found
