"""A turn on the main thread: run work once where no thread can be inside an MPS op, or withdraw it.

One piece of work, several bells; whoever rings first and finds all threads parked runs it:
  a pending call  main runs bytecode; it fires between two of them
  the event loop  main waits in its loop's select
  off main        main stands in a known wait or at Python's prompt
What finds main inside torch is refused and rung again when main's outermost torch frame returns.
Never a signal, never a ctypes callback: an exception in one reaches the host as a SystemError.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Optional

from . import parked

# While the switch interval is this long, a thread that wants the GIL cannot take it from us.
_HELD_INTERVAL = 0.25
# A refused attempt costs main a few microseconds (with other threads some ms): not more often.
_RETRY_SECONDS = 0.002
_RETRY_GUARDED_SECONDS = 0.05

Work = Callable[["Turn"], None]


class Turn:
    """`prepare` may let other threads run (gc does); `work` runs after the proof and may not."""

    def __init__(self, prepare: Work, work: Work, deadline: float) -> None:
        self._prepare, self._work = prepare, work
        self._deadline = deadline
        self._claim = threading.Lock()  # held while running, and for good once over
        self._prepared = False
        self._armed = False
        self._rung_loop = False
        self._not_before = 0.0
        self._agent = threading.get_ident()
        self._main = threading.main_thread().ident or 0
        self._waits = parked.known_waits()
        self._folder = parked.torch_folder()
        self.on_main = False
        self.finished = False
        self.failure: Optional[BaseException] = None
        self.refused: Optional[parked.Computing] = None  # the last reason; final when withdrawn
        self.withdrawn = False

    # ------------------------------------------------------------ the agent's thread
    def step(self) -> bool:
        """Ring the bell that fits what main does now. True once over: finished or withdrawn."""
        if self.finished or self.withdrawn:
            return True
        if self._claim.locked():
            return False  # running: answered when it ends, however late
        now = time.monotonic()
        if now > self._deadline:
            self._withdraw()
        elif now >= self._not_before:
            self._not_before = now + _RETRY_SECONDS
            self._ring(sys._current_frames().get(self._main))
        return self.finished or self.withdrawn

    def clean_up(self) -> None:
        """After the end: an exception in main may have cut the restoring short, here none can."""
        _bell.silence(self)
        _Interval.restore()

    def _ring(self, frame: Optional[FrameType]) -> None:
        loop = find_loop(frame)
        if loop is not None:
            self._ring_loop(loop)
            if _in_loop_select(frame):
                return
        if parked.at_classic_prompt(frame) or (frame is not None and frame.f_code in self._waits):
            self._try_off_main()
        elif not self._armed and (
            self.refused is None  # the first call finds the torch frame to wait for
            or parked.outermost_torch_frame(frame, self._folder) is None
        ):
            self.arm()

    def _ring_loop(self, loop: Any) -> None:
        if self._rung_loop:
            return
        try:
            loop.call_soon_threadsafe(self._on_loop)
            self._rung_loop = True
        except RuntimeError:
            pass  # closed meanwhile

    def _try_off_main(self) -> None:
        if not self._claim.acquire(blocking=False):
            return
        try:
            self._run({self._agent}, on_main=False)
        except parked.Computing as reason:
            self._refuse(reason)
        except Exception as error:  # noqa: BLE001 - told to the client, never to the host
            self.failure, self.finished = error, True

    def _withdraw(self) -> None:
        if self._claim.acquire(blocking=False):
            frame = sys._current_frames().get(self._main)
            if self.refused is None or self.refused.code != "thread_computing":
                self.refused = parked.Computing("main_computing", parked.place(frame))
            self.withdrawn = True

    # ------------------------------------------------------------------ main's thread
    def arm(self) -> None:
        self._armed = _bell.hang(self)

    def ring_on_main(self, frame: Optional[FrameType]) -> None:
        """Called on main, between two bytecodes of `frame`."""
        try:
            self._attempt_on_main(frame)
        except BaseException as error:
            self.failure, self.finished = error, True
            if not raised_by_us(error):
                raise

    def _attempt_on_main(self, frame: Optional[FrameType]) -> None:
        self._armed = False
        inside = parked.outermost_torch_frame(frame, self._folder)
        if inside is not None:
            self.refused = parked.Computing("main_computing", parked.place(inside.f_back or frame))
            _ring_when_left(inside, self)
        elif self._claim.acquire(blocking=False):
            try:
                self._run({self._agent, self._main}, on_main=True)
            except parked.Computing as reason:
                self._refuse(reason)

    def _on_loop(self) -> None:
        self._rung_loop = False
        if not (self.finished or self.withdrawn):
            self.ring_on_main(sys._getframe())

    # ------------------------------------------------------------------------- both
    def _run(self, skip: "set[int]", on_main: bool) -> None:
        """Prove, prepare, prove again with the GIL held, work."""
        self._prove(skip)
        self.on_main = on_main
        if not self._prepared:
            self._prepare(self)
            self._prepared = True
        # Alone with main, nobody else can come; off main, main itself can.
        if on_main and not parked.others_exist(skip):
            self._work(self)
        else:
            with _gil_held() as held_until:
                self._prove(skip)
                if time.monotonic() > held_until:
                    raise parked.Computing("slow", "the machine was too busy to be sure")
                self._work(self)
        self.finished = True

    def _prove(self, skip: "set[int]") -> None:
        """Raise Computing unless no thread can be inside an op."""
        parked.check_others(self._waits, skip, self._folder)
        if self._main not in skip:
            parked.check_main(sys._current_frames().get(self._main), self._folder)

    def _refuse(self, reason: parked.Computing) -> None:
        self.refused = reason
        self._not_before = time.monotonic() + _RETRY_GUARDED_SECONDS
        self._claim.release()


class _Bell:
    """The one object that pending calls ask for its truth: asking rings."""

    def __init__(self) -> None:
        self._turn: Optional[Turn] = None
        self._add: Any = None

    def hang(self, turn: Turn) -> bool:
        """Have main ring soon. False when the queue of pending calls is full."""
        if self._add is None:
            self._add = _pending_call_adder(self)
        self._turn = turn
        return bool(self._add() == 0)

    def silence(self, turn: Turn) -> None:
        if self._turn is turn:
            self._turn = None

    def __bool__(self) -> bool:
        turn = self._turn
        if turn is not None and not (turn.finished or turn.withdrawn):
            turn.ring_on_main(sys._getframe(1))
        return False


class _RingOnExit:
    """Hung on a frame, rings its turn when the frame is gone: nothing else refers to it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Were tracing turned on later, the frame would call us; None traces nothing."""

    def __del__(self) -> None:
        turn = self._turn
        if not (turn.finished or turn.withdrawn):
            turn.arm()


def find_loop(frame: Optional[FrameType]) -> Optional[Any]:
    """The event loop that runs on this stack: asyncio's, a kernel's, uvicorn's, uvloop's."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    forever = asyncio.base_events.BaseEventLoop.run_forever.__code__
    runner = getattr(getattr(asyncio, "Runner", None), "run", None)
    runner_code = getattr(runner, "__code__", None)
    while frame is not None:
        if frame.f_code is forever:
            return frame.f_locals.get("self")
        if frame.f_code is runner_code:
            return getattr(frame.f_locals.get("self"), "_loop", None)
        frame = frame.f_back
    return None


def _in_loop_select(frame: Optional[FrameType]) -> bool:
    """Whether main waits in its event loop itself, where a callback wakes it at once."""
    asyncio = sys.modules["asyncio"]
    once = asyncio.base_events.BaseEventLoop._run_once.__code__
    return frame is not None and frame.f_back is not None and frame.f_back.f_code is once


def raised_by_us(error: BaseException) -> bool:
    """Whether our work raised it; what a signal handler raised meanwhile belongs to the host."""
    if not isinstance(error, Exception):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = trace.tb_frame.f_code.co_filename if trace is not None else ""
    torch = parked.torch_folder()
    return where.startswith(
        (_OUR_FOLDER, torch + "mps", torch + "_tensor.py", torch + "storage.py")
    )


def _ring_when_left(frame: FrameType, turn: Turn) -> None:
    """Arm again at the very return of `frame`, with no cost until then.

    A frame drops its trace function when it ends. Without tracing it is never called; where a
    debugger traces, or on 3.9 (line numbers would stand still), the agent's own looks must do.
    """
    if sys.version_info >= (3, 10) and sys.gettrace() is None and frame.f_trace is None:
        frame.f_trace = _RingOnExit(turn)


def _pending_call_adder(bell: _Bell) -> Callable[[], int]:
    api = ctypes.pythonapi
    api.Py_IncRef(ctypes.py_object(bell))  # a call may still be pending when modules are torn down
    add = api.Py_AddPendingCall
    add.argtypes, add.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int
    is_true = ctypes.cast(api.PyObject_IsTrue, ctypes.c_void_p)
    address = ctypes.c_void_p(id(bell))
    return lambda: int(add(is_true, address))


class _Interval:
    """The host's switch interval while ours is in force."""

    old: Optional[float] = None

    @classmethod
    def restore(cls) -> None:
        if cls.old is not None and sys.getswitchinterval() == _HELD_INTERVAL:
            sys.setswitchinterval(cls.old)
        cls.old = None


@contextmanager
def _gil_held() -> Iterator[float]:
    """Inside, no thread can make us let go of the GIL, until the time that is yielded."""
    old = sys.getswitchinterval()
    if old > _HELD_INTERVAL / 2:
        raise parked.Computing("switch_interval", f"{old} s")
    _Interval.old = old
    sys.setswitchinterval(_HELD_INTERVAL)
    try:
        time.sleep(2 * old)  # whoever asked with the old interval has had it, or asks anew
        yield time.monotonic() + _HELD_INTERVAL / 2
    finally:
        _Interval.restore()


_bell = _Bell()
_OUR_FOLDER = os.path.dirname(os.path.abspath(__file__))
