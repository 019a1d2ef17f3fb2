"""Tells whether C code that a thread is inside has called back into Python.

Qt's loop and uvloop's call any callable of the program's, and one written in C, such as a tensor's
method, has no frame. But both enter Python by PyGILState_Ensure, which counts its calls in the
thread's state until PyGILState_Release: a thread whose own count is the one it began with is in no
callback. It needs the GIL to begin one.
"""

import ctypes
import sys
from collections.abc import Iterator
from itertools import accumulate, chain, repeat, takewhile, tee
from operator import add, getitem, rshift, truth
from typing import Any, Optional

from .agent_thread import get_ident, is_main_interpreter
from .frame_values import ALL_MEMORY, POINTER, has_plain_memory

# Where in a PyThreadState the count is, in bytes; two words further is the thread's number.
_COUNTS = {
    (3, 9): 160,
    (3, 10): 160,
    (3, 11): 136,
    (3, 12): 120,
    (3, 13): 136,
    (3, 14): 136,
}
_TO_IDENT = 2
_OF_A_THREAD = 1  # the count of one that Python has started, and of main
_INT = 0xFFFFFFFF


def is_outside_callbacks(ident: int) -> bool:
    """Returns whether nothing on this thread's stack was called from C by PyGILState_Ensure."""
    return _has_layout and _read_counts(ident) == [_OF_A_THREAD]


def _read_counts(ident: int) -> "list[int]":
    """Reads the count of each thread state with this number; there are several where one was left
    behind.
    """
    found = _read_states()
    return [(count or 0) & _INT for number, count in found if number == ident]


def _read_states() -> "list[tuple[int, int]]":
    """Reads number and count of all threads in one step of C code: none can end meanwhile."""
    first: Iterator[Any] = map(_head, (_interpreter,))
    states = takewhile(truth, accumulate(chain(first, repeat(None)), _next))
    words = map(rshift, states, repeat(3))  # bytes to words
    numbers, counts = tee(map(add, words, repeat(_count_at)))
    return list(
        zip(
            map(getitem, repeat(ALL_MEMORY), map(add, numbers, repeat(_TO_IDENT))),
            map(getitem, repeat(ALL_MEMORY), counts),
        )
    )


def _counts_itself() -> bool:
    """Checks the assumed layout: the count must change with PyGILState_Ensure."""
    # Not PyGILState_Check, which says yes to everything once there was a subinterpreter.
    if _function("PyThreadState_Get")() != _function("PyGILState_GetThisThreadState")():
        # An embedding program made this thread's state: PyGILState_Ensure would hang.
        return False
    ensure, release = _api["PyGILState_Ensure"], _api["PyGILState_Release"]
    before = _read_counts(get_ident())
    gil_state = ensure()
    during = _read_counts(get_ident())
    release(gil_state)
    after = _read_counts(get_ident())
    return len(before) == 1 and during == [before[0] + 1] and after == before


def _function(name: str, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(ctypes.c_void_p, *arguments)((name, _api))


_api = ctypes.pythonapi
_head = _function("PyInterpreterState_ThreadHead", ctypes.c_void_p)
# The second argument, what accumulate() has next, goes unread.
_next = _function("PyThreadState_Next", ctypes.c_void_p, ctypes.c_void_p)
_interpreter: Optional[int] = _function("PyInterpreterState_Get")()
_count_at = _COUNTS.get(sys.version_info[:2], 0) // POINTER
# PyGILState is the main interpreter's; in another there is no agent.
_has_layout = bool(_count_at and has_plain_memory() and is_main_interpreter() and _counts_itself())
