"""Has the main thread run a job of ours between two bytecodes, by `Py_AddPendingCall`.

Never a signal, never a ctypes callback: an exception in one reaches the host as a SystemError.
"""

import ctypes
import sys
import time
import weakref
from collections.abc import Iterator
from functools import partial
from itertools import starmap
from types import FrameType, MethodType
from typing import Any, Callable

from .gc_pause import JobPause
from .host_exceptions import without_our_frames
from .host_frames import left_over
from .host_settings import allow_extra_frames
from .known_waits import torch_folder

# A pending call that has not come by then may be lost: an exception of the host can come before it.
CALL_SECONDS = 0.5


class PendingCall:
    """The job that main runs when `Py_AddPendingCall` calls `PyObject_IsTrue` on a `Trigger`.

    All between the two is C code: `any` asks for this object's iterator, and `__iter__` runs the
    job. An exception that belongs to the host is raised by that iterator's first step, from C
    again, so that no frame of ours is on its traceback.
    """

    def __init__(self) -> None:
        self._job: Any = None
        self._add: Any = None
        self.trigger: Any = None
        # While a call is pending: when it counts as lost, and how long after it was added.
        self._lost_at = self._lost_after = 0.0
        # Our globals may be gone when a late call comes.
        self._is_finalizing = sys.is_finalizing
        self._left_over = left_over
        self._no_steps: Iterator[Any] = iter(())
        self._pause = JobPause()
        self._raise = _finished_generator().throw  # raises what it is given, and has no frame

    def schedule(self, job: Any) -> bool:
        """Has main call soon. Returns False when the queue of pending calls is full.

        That queue is short, and the host's too. So while a call of ours is in it none is added; the
        longer main does not come by, the longer until one counts as lost.
        """
        if self._add is None:
            self._add = _pending_call_adder(self.trigger)
        self._job = job
        allow_extra_frames()
        if self.is_pending():
            return True
        # Before it is added: main may run it at once.
        self._lost_after = 2 * self._lost_after or CALL_SECONDS
        self._lost_at = time.monotonic() + self._lost_after
        if self._add(None) == 0:
            return True
        self._lost_at = self._lost_after = 0.0
        return False

    def is_pending(self) -> bool:
        """Returns whether a call of ours waits for the main thread, and is not counted as lost."""
        return time.monotonic() < self._lost_at

    def cancel(self) -> None:
        self._job = None

    def schedule_at_end_of(self, thing: Any) -> Any:
        """Schedules when `thing` is gone, all in C: a finalizer in Python could swallow Ctrl-C."""
        return weakref.ref(thing, self._add)

    def __iter__(self) -> Iterator[Any]:
        if self._is_finalizing():
            return self._no_steps
        self._lost_at = self._lost_after = 0.0
        self._pause.begin()  # before anything else: nothing of ours may start a collection here
        try:
            job = self._job
            if self._left_over:
                self._left_over.clear()
            if job is not None and not (job.finished or job.given_up):
                job.run_on_main(sys._getframe().f_back)
        except BaseException as error:  # noqa: BLE001 - raised again by the iterator
            folder = torch_folder()
            return starmap(self._raise, ((without_our_frames(error, folder),),))
        finally:
            self._pause.end()
        return self._no_steps


def _finished_generator() -> Any:
    nothing = (None for _ in range(0))
    for _ in nothing:
        pass
    return nothing


def drop_left_over() -> None:
    """Has main drop what may not end on our thread."""
    if left_over and not main_call.is_pending():
        main_call.schedule(main_call._job)


def call_on_return(frame: FrameType) -> Any:
    """Returns what to keep so that the call is scheduled when `frame` returns, at no cost until
    then.

    A frame drops its trace function when it ends, and without tracing it is never called. Returns
    None where a debugger traces, or on 3.9 (line numbers would stand still): then the agent's next
    try notices it.
    """
    if sys.version_info < (3, 10) or sys.gettrace() is not None or frame.f_trace is not None:
        return None
    trace = lambda frame, event, arg: None  # noqa: ARG005, E731 - were tracing turned on later
    reference = main_call.schedule_at_end_of(trace)
    frame.f_trace = trace
    return reference


def _pending_call_adder(trigger: Any) -> Callable[[Any], int]:
    """Returns what adds a pending call, called with anything; no Python code of ours runs in it."""
    api = ctypes.pythonapi
    api.Py_IncRef(ctypes.py_object(trigger))  # a call may be pending at the very end
    # The third argument, what a weak reference calls back with, goes unread.
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)
    add = kind(("Py_AddPendingCall", api))
    is_true = ctypes.cast(api.PyObject_IsTrue, ctypes.c_void_p)
    return MethodType(MethodType(add, is_true), ctypes.c_void_p(id(trigger)))


main_call = PendingCall()


class Trigger:
    """Its `bool()` is that of `any(main_call)`, which runs the job: always False."""

    __bool__ = staticmethod(partial(any, main_call))


main_call.trigger = Trigger()
# Up to 3.10 the first call of a function makes an object that is kept for it.
bool(main_call.trigger)
