"""Reads the stacks of the host's threads, and lets go of their frames safely.

No object of the host is finalized on the agent's thread by that.

Nothing here takes a lock or imports: it runs on the host's main thread between any two bytecodes.
"""

import gc
import os
import sys
from types import FrameType
from typing import Any, Optional

from . import agent_thread
from .known_waits import WRAPPER_NAMES, is_of, is_wrapper

Frames = dict[int, FrameType]

# Objects to which only we still have a reference, such as the frame of a function that has returned
# meanwhile. The main thread drops them, because that finalizes them.
left_over: "list[Any]" = []


def current_frames() -> Frames:
    """Calls sys._current_frames(), with no collection inside it.

    That function locks the list of threads. Up to 3.11 an allocation in it can start a collection,
    and a finalizer there that releases the GIL deadlocks with a thread that waits for that lock.
    """
    if sys.version_info >= (3, 12):
        return sys._current_frames()
    # The three in one step of C code: no other thread runs in between, nor since the question.
    steps = zip(iter(gc.disable, 0), iter(sys._current_frames, None), iter(gc.enable, 0))
    is_enabled = False
    try:
        for is_enabled in iter(gc.isenabled, None):
            break
        return next(steps)[1] if is_enabled else sys._current_frames()
    except BaseException:  # of an audit hook of the host, or a Ctrl-C in one
        if is_enabled:
            gc.enable()
        raise


def read_stack(frame: Optional[FrameType]) -> "list[FrameType]":
    """Returns the frames of a stack, innermost first; for `drop_references` afterwards."""
    stack = []
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    return stack


def drop_frames(frames: Frames) -> None:
    """Drops frames, as `drop_references` does other objects."""
    frames.pop(agent_thread.get_ident(), None)  # a frame of ours, with nothing of the host's
    stack: list[Any] = list(frames.values())
    frames.clear()
    drop_references(stack)


def drop_references(things: "list[Any]") -> None:
    """Drops references to objects of the host; the last one to an object is left to main.

    Its finalizer would run on our thread. A frame whose function has returned meanwhile owns the
    function's locals, and theirs would run with it.
    """
    while things:
        thing: Any = things.pop()
        for count in map(sys.getrefcount, (thing,)):  # no thread runs between this and the drop
            break
        if count <= _ONLY_OURS:
            left_over.append(thing)
        thing = None


def _count_references() -> int:
    """Returns what drop_references counts for an object to which nobody else has a reference."""
    things = [object()]
    thing = things.pop()
    for count in map(sys.getrefcount, (thing,)):
        break
    return count


_ONLY_OURS = _count_references()


def outermost_torch_frame(frame: Optional[FrameType], folder: str) -> Optional[FrameType]:
    """Returns the torch frame that user code called, if any is on this stack. Only for main's own
    stack.

    On main a debugger traces every call of ours: so `is_of` is not called for each frame.
    """
    outermost = None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(folder) and (
            code.co_name not in WRAPPER_NAMES or not is_wrapper(code)
        ):
            outermost = frame
        frame = frame.f_back
    return outermost


def is_below(frame: Optional[FrameType], folder: str) -> bool:
    """Returns whether a function of `folder` is on this stack."""
    stack = read_stack(frame)
    frame = None
    try:
        return any(is_of(entry.f_code, folder) for entry in stack)
    finally:
        drop_references(stack)


def describe_frame(frame: Optional[FrameType]) -> str:
    """Returns where a frame is, for people, such as "train.py:42 in step"."""
    if frame is None:
        return "outside Python"
    name = os.path.basename(frame.f_code.co_filename)
    return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"[:200]
