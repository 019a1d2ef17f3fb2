"""Proof that no Python thread can be inside an MPS op: every other thread stands in a known wait.

A wait is recognised by its code object, never by its module: `Thread.run` and `_WorkItem.run` are
stdlib too, and call the work itself. An unknown frame counts as computing. CPU time or a sleeping
kernel thread prove nothing: a thread that waits for the GPU looks just the same.

Nothing here takes a lock or imports: it runs on the host's main thread between any two bytecodes.
"""

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Optional

# (module, attribute path) of functions that wait in C and call nobody's code while they are on top.
_WAITS = (
    ("threading", "Condition.wait"),
    ("threading", "Thread._wait_for_tstate_lock"),  # join, up to 3.12
    ("threading", "Thread.join"),  # 3.13
    ("threading", "_shutdown"),  # main has ended and waits for the threads that have not
    ("selectors", "SelectSelector.select"),
    ("selectors", "SelectSelector._select"),
    ("selectors", "PollSelector.select"),
    ("selectors", "EpollSelector.select"),
    ("selectors", "DevpollSelector.select"),
    ("selectors", "KqueueSelector.select"),
    ("subprocess", "Popen._try_wait"),
    ("multiprocessing.popen_fork", "Popen.poll"),
    ("multiprocessing.connection", "Connection._recv"),
    ("concurrent.futures.thread", "_worker"),  # an idle pool: its SimpleQueue.get has no frame
    ("ipykernel.heartbeat", "Heartbeat.run"),
    ("ipykernel.iostream", "OutStream._watch_pipe_fd"),  # reads what C code prints
    ("ipykernel.parentpoller", "ParentPollerUnix.run"),
    ("zmq.sugar", "device"),  # the heartbeat's, with a newer pyzmq
    ("zmq.sugar.poll", "Poller.poll"),
    ("zmq.sugar.socket", "Socket.poll"),
    ("_pyrepl.unix_console", "UnixConsole.wait"),  # 3.13's prompt
    ("_pyrepl.unix_console", "UnixConsole._UnixConsole__read"),
    ("_pyrepl.unix_console", "UnixConsole.get_event"),
    ("_pyrepl.main", "interactive_console"),  # 3.13 on a poor terminal: the classic prompt, in C
)

# While the switch interval is this long, a thread that wants the GIL cannot take it from us.
HELD_INTERVAL = 0.25

Frames = dict[int, FrameType]


class Computing(Exception):
    """A thread that may be inside an op; `code` and `where` say which and where it is."""

    def __init__(self, code: str, where: str) -> None:
        super().__init__(f"{code}: {where}")
        self.code = code
        self.where = where


def known_waits() -> "set[CodeType]":
    """The code objects of all waits in modules the host has imported, looked up for each Free."""
    return {code for module, path in _WAITS if (code := find_code(module, path)) is not None}


def find_code(module: str, path: str) -> Optional[CodeType]:
    target: Any = sys.modules.get(module)
    for name in path.split("."):
        target = getattr(target, name, None)
    return getattr(target, "__code__", None)


def torch_folder() -> str:
    torch = sys.modules.get("torch")
    return os.path.dirname(getattr(torch, "__file__", None) or "\0") + os.sep


def outermost_torch_frame(frame: Optional[FrameType], folder: str) -> Optional[FrameType]:
    """The torch frame that user code called, if any is on this stack."""
    found = None
    while frame is not None:
        if frame.f_code.co_filename.startswith(folder) and not _is_decorator(frame.f_code):
            found = frame
        frame = frame.f_back
    return found


def _is_decorator(code: CodeType) -> bool:
    """@torch.no_grad() around somebody's whole main(): plain Python that calls plain Python."""
    return code.co_name == "decorate_context" and code.co_filename.endswith("_contextlib.py")


def place(frame: Optional[FrameType]) -> str:
    """Where a frame is, for people: train.py:42 in step."""
    if frame is None:
        return "outside Python"
    name = os.path.basename(frame.f_code.co_filename)
    return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"[:200]


def check_others(waits: "set[CodeType]", skip: "set[int]", folder: str) -> Frames:
    """Where all threads but those in `skip` stand, each in a known wait; else raise Computing."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise Computing("free_threaded", "without the GIL no thread can be held")
    autograd = os.path.join(folder, "autograd") + os.sep
    frames = _frames_without(skip)
    for ident, frame in frames.items():
        if frame.f_code not in waits or outermost_torch_frame(frame, autograd) is not None:
            raise Computing("thread_computing", f"{_thread_name(ident)}, {place(frame)}")
    return frames


def check_main(frame: Optional[FrameType], folder: str) -> None:
    """For work off main: no torch frame on its stack; no frame at all only at the prompt."""
    if outermost_torch_frame(frame, folder) is not None or (
        frame is None and not at_classic_prompt(frame)
    ):
        raise Computing("main_computing", place(frame))


def check_unchanged(proven: Frames, skip: "set[int]") -> None:
    """Reading a frame may call the host's audit hooks, and they may let a thread go on."""
    if _frames_without(skip) != proven:
        raise Computing("thread_computing", "a thread woke up")


def current_frames() -> Frames:
    """sys._current_frames(), with no collection in its midst.

    It holds the lock of the list of threads. Up to 3.11 an allocation in it can start a collection,
    and a finalizer there that lets go of the GIL dead-locks with whoever wants that lock.
    """
    if sys.version_info >= (3, 12) or not gc.isenabled():
        return sys._current_frames()
    _Held.gc = True
    try:
        gc.disable()
        return sys._current_frames()
    finally:
        gc.enable()
        _Held.gc = False


def at_classic_prompt(main_frame: Optional[FrameType]) -> bool:
    """Python's own prompt up to 3.12, or without a capable terminal: main runs no frame at all."""
    return main_frame is None and hasattr(sys, "ps1")


def find_idle_loop(frame: Optional[FrameType], waits: "set[CodeType]") -> Optional[Any]:
    """The event loop in whose own wait `frame` is: asyncio's, a kernel's, uvicorn's, uvloop's."""
    if frame is None:
        return None
    if frame.f_code is find_code("asyncio.runners", "Runner.run"):
        return getattr(frame.f_locals.get("self"), "_loop", None)  # uvloop has no frames of its own
    once = frame.f_back
    if frame.f_code not in waits or once is None or once.f_back is None:
        return None
    if once.f_code is not find_code("asyncio.base_events", "BaseEventLoop._run_once"):
        return None
    forever = find_code("asyncio.base_events", "BaseEventLoop.run_forever")
    return once.f_back.f_locals.get("self") if once.f_back.f_code is forever else None


@contextmanager
def gil_held() -> Iterator[float]:
    """Inside, no thread can make us let go of the GIL, until the time that is yielded."""
    old = sys.getswitchinterval()
    if old > HELD_INTERVAL / 2:
        raise Computing("switch_interval", f"{old} s")
    _Held.interval = old
    try:
        sys.setswitchinterval(HELD_INTERVAL)
        time.sleep(max(2 * old, 0.001))  # who asked with the old interval has had it, or asks anew
        _Held.gc = gc.isenabled()
        gc.disable()  # a finalizer could let go of the GIL
        if sys.getswitchinterval() != HELD_INTERVAL:
            raise Computing("switch_interval", "the process changed it meanwhile")
        yield time.monotonic() + HELD_INTERVAL / 2
    finally:
        restore()


class _Held:
    """What of the host's is not as the host set it."""

    interval: Optional[float] = None
    gc = False


def restore() -> None:
    """Give the host's settings back; harmless when there is nothing to give."""
    if _Held.gc:
        gc.enable()
        _Held.gc = False
    if _Held.interval is not None and sys.getswitchinterval() == HELD_INTERVAL:
        sys.setswitchinterval(_Held.interval)
    _Held.interval = None


def _frames_without(skip: "set[int]") -> Frames:
    frames = current_frames()
    for ident in skip:
        frames.pop(ident, None)
    return frames


def _thread_name(ident: int) -> str:
    # Not enumerate(): it takes a lock that main may hold when this runs in its midst.
    thread = threading._active.get(ident)  # type: ignore[attr-defined]
    # Not thread.name: a subclass may have made it its own code.
    name = vars(thread).get("_name") if thread is not None else None
    return name[:60] if type(name) is str else f"thread {ident}"
