"""A turn on the main thread: run work once where no thread can be inside an MPS op, or withdraw it.

One piece of work, several bells; whoever rings first and finds all threads parked runs it:
  a pending call  main runs bytecode; it fires between two of them
  the event loop  main waits in its loop's select: a callback wakes it, then the pending call fires
  off main        main stands in a known wait or at Python's prompt
What finds main inside torch is refused and rung again when main's outermost torch frame returns.
Never a signal, never a ctypes callback: an exception in one reaches the host as a SystemError.
"""

import ctypes
import os
import sys
import threading
import time
import weakref
from types import FrameType, MethodType
from typing import Any, Callable, Optional

from . import parked
from .interrupts import raised_by_us

# A refused attempt costs main a few microseconds (with other threads some ms): not more often.
_RETRY_SECONDS = 0.002
_RETRY_GUARDED_SECONDS = 0.05
# A bell that has not rung by then may be lost: an exception of the host can arrive before our code.
_BELL_SECONDS = 0.5
INTERRUPTED = "the process was interrupted meanwhile"

Prepare = Callable[[bool], None]  # told whether it is on main
Work = Callable[[], None]


class Turn:
    """`prepare` may let other threads run (gc does); `work` runs after the proof and may not."""

    def __init__(self, prepare: Prepare, work: Work, deadline: float) -> None:
        self._prepare, self._work = prepare, work
        self._deadline = deadline
        self._claim = threading.Lock()  # held while running, and for good once over
        self._attempts = 0
        self._prepared = False
        self._not_before = 0.0  # the next look
        self._quiet_until = 0.0  # the next pending call
        self._woken = False  # the loop, since the last ring
        self._leaving: Any = None  # rings when main leaves torch
        self._pid = os.getpid()
        self._agent = threading.get_ident()
        self._main = threading.main_thread().ident or 0
        self._waits = parked.known_waits()
        self._folder = parked.torch_folder()
        self.on_main = False
        self.finished = False
        # Texts and not exceptions: those would keep the host's frames and their tensors alive.
        self.failure: Optional[str] = None
        self.refused: Optional[parked.Computing] = None  # the last reason; final when withdrawn
        self.withdrawn = False

    # ------------------------------------------------------------ the agent's thread
    def step(self) -> bool:
        """Ring the bell that fits what main does now. True once over: finished or withdrawn."""
        now = time.monotonic()
        if self.finished or self.withdrawn:
            return True
        if self._claim.locked():
            self._notice_loss()  # else running: answered when it ends, however late
        elif now > self._deadline:
            self._withdraw()
        elif now >= self._not_before:
            self._not_before = now + _RETRY_SECONDS
            self._ring(parked.current_frames().get(self._main), now)
        return self.finished or self.withdrawn

    def clean_up(self) -> None:
        """After the end: an exception in main may have cut the restoring short, here none can."""
        _bell.silence()
        parked.restore()
        self._leaving = None

    def _ring(self, frame: Optional[FrameType], now: float) -> None:
        loop = parked.find_idle_loop(frame, self._waits)
        outside = parked.outermost_torch_frame(frame, self._folder) is None
        waits = parked.at_classic_prompt(frame) or (
            frame is not None and frame.f_code in self._waits
        )
        if waits and outside and loop is None and self._try_off_main():
            return
        if now >= self._quiet_until or (outside and self._leaving is not None):
            self._leaving, self._woken = None, False
            self._quiet_until = now + _BELL_SECONDS if _bell.hang(self) else 0.0
        if loop is not None and not self._woken:
            self._wake(loop)

    def _wake(self, loop: Any) -> None:
        self._woken = True
        try:
            loop.call_soon_threadsafe(_nothing)
        except RuntimeError:
            pass  # closed meanwhile

    def _try_off_main(self) -> bool:
        if not self._claim.acquire(blocking=False):
            return True
        try:
            self._run({self._agent}, on_main=False)
        except parked.Computing as reason:
            self._refuse(reason)
            return False
        except Exception as error:  # noqa: BLE001 - told to the client, never to the host
            self.failure, self.finished = str(error)[:300], True
        return True

    def _notice_loss(self) -> None:
        """Two exceptions of the host in a row can throw main out of our code, the claim held."""
        attempts = self._attempts
        frame = parked.current_frames().get(self._main)
        while frame is not None and frame.f_code is not Turn.ring_on_main.__code__:
            frame = frame.f_back
        same = attempts == self._attempts and self._claim.locked()
        if frame is None and same and not self.finished:
            self.failure, self.finished = INTERRUPTED, True

    def _withdraw(self) -> None:
        if self._claim.acquire(blocking=False):
            if self.refused is None or self.refused.code != "thread_computing":
                where = parked.place(parked.current_frames().get(self._main))
                self.refused = parked.Computing("main_computing", where)
            self.withdrawn = True

    # ------------------------------------------------------------------ main's thread
    def ring_on_main(self, frame: Optional[FrameType]) -> None:
        """Called on main, between two bytecodes of `frame`."""
        try:
            self._attempt_on_main(frame)
        except BaseException as error:
            ours = raised_by_us(error)
            self.failure = str(error)[:300] if ours else INTERRUPTED
            self.finished = True
            if not ours:
                raise

    def _attempt_on_main(self, frame: Optional[FrameType]) -> None:
        now = time.monotonic()
        self._quiet_until, self._woken = 0.0, False
        if now > self._deadline:
            return  # too late; the agent will say so
        inside = parked.outermost_torch_frame(frame, self._folder)
        if inside is not None:
            self.refused = parked.Computing("main_computing", parked.place(inside.f_back or frame))
            self._leaving = _ring_when_left(inside)
            if self._leaving is not None:
                self._quiet_until = now + _BELL_SECONDS
            return
        self._attempts += 1
        if self._claim.acquire(blocking=False):
            try:
                self._run({self._agent, self._main}, on_main=True)
            except parked.Computing as reason:
                self._refuse(reason)

    # ------------------------------------------------------------------------- both
    def _run(self, skip: "set[int]", on_main: bool) -> None:
        """Prove, prepare, prove again with the GIL held, work."""
        self._prove(skip)
        self.on_main = on_main
        if not self._prepared:
            self._prepare(on_main)
            self._prepared = True
        # Also when alone: a thread that is just being started has no frame to be seen by.
        with parked.gil_held() as held_until:
            proven = self._prove(skip)
            parked.check_unchanged(proven, skip)
            del proven  # or a frame could end in our hands, and its locals with it
            if time.monotonic() > held_until:
                raise parked.Computing("slow", "the machine was too busy to be sure")
            self._work()
        self.finished = True

    def _prove(self, skip: "set[int]") -> parked.Frames:
        """Where the others stand; raise Computing unless no thread can be inside an op."""
        if os.getpid() != self._pid:
            raise parked.Computing("forked", "this is a child of the process")
        frames = parked.check_others(self._waits, skip, self._folder)
        if self._main not in skip:
            parked.check_main(frames.get(self._main), self._folder)
        return frames

    def _refuse(self, reason: parked.Computing) -> None:
        self.refused = reason.with_traceback(None)
        self._not_before = self._quiet_until = time.monotonic() + _RETRY_GUARDED_SECONDS
        self._claim.release()


class _Bell:
    """The one object that pending calls ask for its truth: asking rings."""

    def __init__(self) -> None:
        self._turn: Optional[Turn] = None
        self._add: Any = None
        self._is_finalizing = sys.is_finalizing  # our globals may be gone by then

    def hang(self, turn: Turn) -> bool:
        """Have main ring soon. False when the queue of pending calls is full."""
        if self._add is None:
            self._add = _pending_call_adder(self)
        self._turn = turn
        return bool(self._add(None) == 0)

    def silence(self) -> None:
        self._turn = None

    def ring_at_end_of(self, thing: Any) -> Any:
        """Hang when `thing` is gone. All in C: a finalizer in Python could swallow a Ctrl-C."""
        return weakref.ref(thing, self._add)

    def __bool__(self) -> bool:
        turn = self._turn
        if turn is not None and not (turn.finished or turn.withdrawn or self._is_finalizing()):
            turn.ring_on_main(sys._getframe().f_back)
        return False


def _ring_when_left(frame: FrameType) -> Any:
    """What to keep so that the bell is hung at the very return of `frame`, at no cost until then.

    A frame drops its trace function when it ends, and without tracing it is never called. None
    where a debugger traces, or on 3.9 (line numbers would stand still): then the agent's looks do.
    """
    if sys.version_info < (3, 10) or sys.gettrace() is not None or frame.f_trace is not None:
        return None
    trace = lambda frame, event, arg: None  # noqa: ARG005, E731 - were tracing turned on later
    kept = _bell.ring_at_end_of(trace)
    frame.f_trace = trace
    return kept


def _pending_call_adder(bell: _Bell) -> Callable[[Any], int]:
    """Called with anything, adds a pending call; no Python code of ours runs in it."""
    api = ctypes.pythonapi
    api.Py_IncRef(ctypes.py_object(bell))  # a call may still be pending when modules are torn down
    # The third argument, what a weak reference calls back with, goes unread.
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)
    add = kind(("Py_AddPendingCall", api))
    is_true = ctypes.cast(api.PyObject_IsTrue, ctypes.c_void_p)
    return MethodType(MethodType(add, is_true), ctypes.c_void_p(id(bell)))


def _nothing() -> None:
    """Wakes an event loop; the pending call comes first."""


def _after_fork() -> None:
    """In the child no turn goes on: its pending calls and settings came from the parent."""
    _bell.silence()
    parked.restore()


_bell = _Bell()
os.register_at_fork(after_in_child=_after_fork)
