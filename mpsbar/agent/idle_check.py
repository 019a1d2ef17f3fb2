"""Checks that no thread can be inside an MPS operation: every other one stands in a known wait.

A wait is recognised by the code object of its function (known_waits), or, in C, by the call that
user code has made (c_waits). Any other frame counts as computing. CPU time or a sleeping kernel
thread prove nothing: a thread that waits for the GPU looks just the same.

A thread that waits in C may wake up at any moment, but it needs the GIL to do anything else, and
we keep that from the proof to the end of the work.

Nothing here takes a lock or imports: it runs on the host's main thread between any two bytecodes.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Callable, Optional

from . import agent_thread
from .c_waits import call_sites, is_waiting_in_c
from .gc_pause import paused
from .host_frames import (
    Frames,
    current_frames,
    describe_frame,
    drop_frames,
    drop_references,
    is_below,
)
from .host_settings import (
    EXTRA_FRAMES,
    KEEP_SECONDS,
    lengthen_interval,
    recursion_limit_of_host,
    restore_interval,
)
from .known_waits import find_code

# Less room than this below the host's limit, and nothing is tried: finalizers may need some.
_ROOM_FRAMES = 120


class NotIdleError(Exception):
    """A thread may be inside an operation; `code` and `where` say which and where it is.

    `…_computing` is a thread with a framework's function on its stack. `…_unproven` is one in some
    other function: it may be inside an op, which has no frame, or wait in a way we do not know.
    """

    def __init__(self, code: str, where: str) -> None:
        super().__init__(f"{code}: {where}")
        self.code = code
        self.where = where


def check_interpreter() -> None:
    """Raises NotIdleError where this process cannot be freed, whatever its threads do."""
    check_gil()
    interval = sys.getswitchinterval()
    if interval > KEEP_SECONDS / 2:
        raise NotIdleError("switch_interval", f"{interval:g} s")


def check_gil() -> None:
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise NotIdleError("free_threaded", "without the GIL no thread can be stopped")


def check_others(
    waits: "set[CodeType]",
    skip: "set[int]",
    folder: str,
    in_c: "Optional[dict[int, CodeType]]" = None,
) -> Frames:
    """Returns where all threads but those in `skip` stand, each in a known wait; else raises
    NotIdleError.

    The caller gives the frames to `drop_frames`. `in_c` gets the threads that wait in C, by the
    code that called: for `check_unchanged`.
    """
    check_gil()
    autograd = os.path.join(folder, "autograd") + os.sep
    frames = _frames_without(skip)
    try:
        frame: Optional[FrameType]
        for ident, frame in frames.items():
            code = frame.f_code
            is_known = code in waits
            if not is_known and waits_in_c(frame, code, ident):
                is_known = True
                if in_c is not None:
                    in_c[ident] = code
            if not is_known or is_below(frame, autograd):
                reason = "thread_computing" if is_below(frame, folder) else "thread_unproven"
                raise NotIdleError(reason, f"{_thread_name(ident)}, {describe_frame(frame)}")
    except BaseException:
        frame = None
        drop_frames(frames)
        raise
    return frames


def check_main(frame: Optional[FrameType], folder: str) -> None:
    """Checks main for work off main: no torch frame, and no frame at all only at the prompt."""
    if is_below(frame, folder):
        raise NotIdleError("main_computing", describe_frame(frame))
    if frame is None and not at_classic_prompt(frame):
        raise NotIdleError("main_unproven", describe_frame(frame))


def check_unchanged(
    proven: Frames, skip: "set[int]", in_c: "Optional[dict[int, CodeType]]" = None
) -> None:
    """Checks that no thread went on since the proof: reading a frame may call the host's audit
    hooks, and they may let a thread go on.

    So from the list of frames on, nothing here is read that calls one.
    """
    frames = _frames_without(skip)
    try:
        if frames != proven or not all(
            waits_in_c(frames[ident], code, ident) for ident, code in (in_c or {}).items()
        ):
            raise NotIdleError("thread_unproven", "a thread woke up")
    finally:
        drop_frames(frames)


def waits_in_c(frame: FrameType, code: CodeType, ident: int) -> bool:
    """Returns whether a thread's innermost frame, with this code, is inside a call of C that only
    waits.
    """
    seen: list[Any] = []
    try:
        return is_waiting_in_c(frame, code, ident, seen)
    finally:
        drop_references(seen)


def forget_call_sites() -> None:
    """Lets go of the code that was looked at; torch.compile hangs objects of its own on code."""
    codes: list[Any] = [code for code, _ in call_sites]
    call_sites.clear()
    drop_references(codes)


def check_recursion() -> None:
    """Raises NotIdleError where main is so deep that our calls or a finalizer's may not fit."""
    limit = sys.getrecursionlimit()
    try:
        if sys.version_info < (3, 10):
            # There an overflow that is caught turns the next one into an abort. C code counts as
            # well as Python's frames, so be far from it.
            sys._getframe(limit // 4)
            deep = True
        else:
            deep = not _has_room(EXTRA_FRAMES + _ROOM_FRAMES)
    except ValueError:  # not so many frames
        deep = False
    except RecursionError:
        deep = True
    if deep:
        limit = recursion_limit_of_host() or limit
        raise NotIdleError("deep_recursion", f"the main thread is near its limit of {limit} calls")


def _has_room(calls: int) -> bool:
    return calls == 0 or _has_room(calls - 1)


def at_classic_prompt(main_frame: Optional[FrameType]) -> bool:
    """Returns whether main is at Python's own prompt up to 3.12, or without a capable terminal:
    there it runs no frame at all.
    """
    return main_frame is None and hasattr(sys, "ps1")


def is_waiting(stack: "list[FrameType]", waits: "set[CodeType]", ident: int) -> bool:
    """Returns whether a thread's stack ends in a known wait that has not ended since it was read.

    A frame that has returned has no caller any more. `threading._shutdown` never has one: Python
    calls it from C at the end of main.
    """
    if not stack:
        return False
    code = stack[0].f_code
    if code is agent_thread.AgentThread.start.__code__:
        return False  # in attach(): it goes on at once, and a Free on main can collect garbage
    if code not in waits:
        return waits_in_c(stack[0], code, ident)
    return len(stack) > 1 or code is find_code("threading", "_shutdown")


def find_idle_loop(stack: "list[FrameType]", waits: "set[CodeType]") -> Optional[Any]:
    """Returns the event loop in whose own wait a stack ends: asyncio's, a kernel's, uvicorn's,
    uvloop's.
    """
    if stack and stack[0].f_code is find_code("asyncio.runners", "Runner.run"):
        # uvloop has no frames of its own.
        return getattr(stack[0].f_locals.get("self"), "_loop", None)
    if len(stack) < 3 or stack[0].f_code not in waits:
        return None
    once = find_code("asyncio.base_events", "BaseEventLoop._run_once")
    forever = find_code("asyncio.base_events", "BaseEventLoop.run_forever")
    if stack[1].f_code is not once or stack[2].f_code is not forever:
        return None
    return stack[2].f_locals.get("self")


@contextmanager
def keep_gil(sleep: Callable[[float], None]) -> Iterator[float]:
    """Keeps the GIL within the block: no other thread can take it until the time it yields."""
    check_interpreter()
    try:
        old = lengthen_interval()
        sleep(max(2 * old, 0.001))  # requests with the old interval are over by then
        with paused():  # a finalizer could release the GIL
            if sys.getswitchinterval() != KEEP_SECONDS:
                raise NotIdleError("switch_interval", "the process changed it meanwhile")
            yield time.monotonic() + KEEP_SECONDS
    finally:
        restore_interval()


def _frames_without(skip: "set[int]") -> Frames:
    frames = current_frames()
    for ident in skip:
        frames.pop(ident, None)
    return frames


def _thread_name(ident: int) -> str:
    if ident == agent_thread.ident:
        return agent_thread.NAME  # seen by %mpsbar free
    # Not enumerate(): it takes a lock that main may have taken when this interrupts it.
    thread = threading._active.get(ident)  # type: ignore[attr-defined]
    # Not thread.name: a subclass may have made it its own code.
    name = vars(thread).get("_name") if thread is not None else None
    return name[:60] if type(name) is str else f"thread {ident}"
