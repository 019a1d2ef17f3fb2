"""Tells our own exceptions from those that the host's signals or threads raise while we work.

On the host's main thread our code must not leak an exception of its own, and must not swallow one
that belongs to the host.
"""

import opcode
import os
import signal
from types import CodeType, TracebackType
from typing import Any, Optional

from .frameworks import FRAMEWORKS

_RAISE_OPCODES = tuple(
    opcode.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in opcode.opmap
)
_FRAMEWORK_PACKAGES = [framework.module.partition(".")[0] for framework in FRAMEWORKS]
_OUR_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_OUR_TYPES = ("builtins", *_FRAMEWORK_PACKAGES, "mpsbar", "mpsbar_agent")


def raised_by_us(error: BaseException) -> bool:
    """Returns whether our work raised it; everything else belongs to the host."""
    return isinstance(error, Exception) and not raised_by_host(error)


def raised_by_host(error: Optional[BaseException]) -> bool:
    """Returns whether a signal handler raised it, or another thread sent it to this one."""
    if error is None:
        return False
    return isinstance(error, KeyboardInterrupt) or _from_signal(error) or _was_sent(error)


def without_our_frames(error: BaseException, framework_folder: str) -> BaseException:
    """Returns the same exception; its traceback has only the host's frames, as if we had not been
    there.

    A framework's frames that we called go too; the host's signal handlers and finalizers stay.
    """
    kept = []
    is_dropped = False
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        is_dropped = path.startswith(_OUR_FOLDER) or (
            is_dropped and path.startswith(framework_folder)
        )
        if not is_dropped:
            kept.append(trace)
        trace = trace.tb_next
    for entry in reversed(kept):
        trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return error.with_traceback(trace)


def _from_signal(error: BaseException) -> bool:
    """Returns whether a signal handler of the host is on its traceback."""
    handlers = _handler_codes()
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _was_sent(error: BaseException) -> bool:
    """Returns whether it came by PyThreadState_SetAsyncExc, as timeouts from another thread do.

    That call takes a class, so the exception is made without arguments, and it appears at a
    bytecode that does not raise. C code that fails always says why, except for want of memory.
    """
    if isinstance(error, MemoryError) or _opcode_at(error.__traceback__) in _RAISE_OPCODES:
        return False
    return error.args == () or type(error).__module__.partition(".")[0] not in _OUR_TYPES


def _opcode_at(trace: Optional[TracebackType]) -> Optional[int]:
    """Returns the bytecode at which the exception appeared."""
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code.co_code
    return code[trace.tb_lasti] if 0 <= trace.tb_lasti < len(code) else None


def _handler_codes() -> "set[CodeType]":
    codes = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a functools.partial
        for target in (handler, vars(type(handler)).get("__call__")):
            code = getattr(target, "__code__", None)  # a method has it too
            if isinstance(code, CodeType):
                codes.add(code)
    return codes
