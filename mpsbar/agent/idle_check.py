"""Checks that no thread can be inside an MPS operation: every other one stands in a known wait.

A wait is recognised by its code object, never by its module: `Thread.run` and `_WorkItem.run` are
standard library too, and call the work itself. A wait in C that user code has called is recognised
by that call (c_waits). Any other frame counts as computing. CPU time or a sleeping kernel thread
prove nothing: a thread that waits for the GPU looks just the same.

A thread that waits in C may wake up at any moment, but it needs the GIL to do anything else, and
we keep that from the proof to the end of the work.

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
from typing import Any, Callable, Optional

from . import agent_thread
from .c_waits import call_sites, is_waiting_in_c
from .gc_pause import paused

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
    ("multiprocessing.pool", "Pool._handle_tasks"),  # over iter(SimpleQueue.get, None)
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
    ("mpsbar.agent.gc_pause", "CollectorPause.call"),  # the agent, seen by %mpsbar free
    ("mpsbar_agent.gc_pause", "CollectorPause.call"),
)

# (module, attribute path, names of functions inside it) of torch's wrappers that only call a
# function of the program: plain Python which stands at the base of its whole main().
_WRAPPERS = (
    ("torch.utils._contextlib", "context_decorator", "decorate_context"),  # @torch.no_grad()
    ("torch.autograd.grad_mode", "_DecoratorContextManager.__call__", "decorate_context"),  # 1.x
    ("torch.amp.autocast_mode", "autocast_decorator", "decorate_autocast"),
    ("torch._dynamo.eval_frame", "DisableContext.__call__", "_fn"),  # @torch.compiler.disable
    ("torch.distributed.elastic.multiprocessing.errors", "record", "wrap", "wrapper"),
    ("torch.multiprocessing.spawn", "_wrap"),  # a child's first function
    ("torch.multiprocessing.spawn", "spawn"),  # and its parent, which waits
    ("torch.multiprocessing.spawn", "start_processes"),
    ("torch.multiprocessing.spawn", "ProcessContext.join"),
)
_WRAPPER_NAMES = frozenset(names[-1].rpartition(".")[2] for names in _WRAPPERS)

# While the switch interval is this long, a thread that wants the GIL cannot take it from us.
KEEP_SECONDS = 0.25
# So many frames more than the host allows itself: our code may be called at the very limit.
EXTRA_FRAMES = 64
# Less room than this below the host's limit, and nothing is tried: finalizers may need some.
_ROOM_FRAMES = 120

Frames = dict[int, FrameType]

# Frames of functions that ended while we looked at them, and other objects that only we still hold:
# they end when they are dropped, so the main thread does it.
left_over: "list[Any]" = []


class Computing(Exception):
    """A thread that may be inside an op; `code` and `where` say which and where it is.

    `…_computing` is a thread with a framework's function on its stack. `…_unproven` is one in some
    other function: it may be inside an op, which has no frame, or wait in a way we do not know.
    """

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
    """Where torch's own Python code is; without torch, a path that nothing is in."""
    path = getattr(sys.modules.get("torch"), "__file__", None)
    return os.path.dirname(path) + os.sep if path else "\0"


def outermost_torch_frame(frame: Optional[FrameType], folder: str) -> Optional[FrameType]:
    """The torch frame that user code called, if any is on this stack. Only for main's own stack.

    On main a debugger traces every call of ours: so none is made for each frame.
    """
    found = None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(folder) and (
            code.co_name not in _WRAPPER_NAMES or not _is_wrapper(code)
        ):
            found = frame
        frame = frame.f_back
    return found


def _is_of(code: CodeType, folder: str) -> bool:
    return code.co_filename.startswith(folder) and (
        code.co_name not in _WRAPPER_NAMES or not _is_wrapper(code)
    )


def _is_wrapper(code: CodeType) -> bool:
    return any(code is _find_inner_code(*names) for names in _WRAPPERS)


def _find_inner_code(module: str, path: str, *inner: str) -> Optional[CodeType]:
    """The code of a function, or of one that is made inside it."""
    code = find_code(module, path)
    for name in inner:
        constants: tuple[Any, ...] = code.co_consts if code is not None else ()
        code = next(
            (each for each in constants if type(each) is CodeType and each.co_name == name), None
        )
    return code


def place(frame: Optional[FrameType]) -> str:
    """Where a frame is, for people: train.py:42 in step."""
    if frame is None:
        return "outside Python"
    name = os.path.basename(frame.f_code.co_filename)
    return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"[:200]


def check_interpreter() -> None:
    """Raise Computing where this process cannot be freed, whatever its threads do."""
    check_gil()
    interval = sys.getswitchinterval()
    if interval > KEEP_SECONDS / 2:
        raise Computing("switch_interval", f"{interval:g} s")


def check_gil() -> None:
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise Computing("free_threaded", "without the GIL no thread can be held")


def check_others(
    waits: "set[CodeType]",
    skip: "set[int]",
    folder: str,
    in_c: "Optional[dict[int, CodeType]]" = None,
) -> Frames:
    """Where all threads but those in `skip` stand, each in a known wait; else raise Computing.

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
            if not is_known and waits_in_c(frame, code):
                is_known = True
                if in_c is not None:
                    in_c[ident] = code
            if not is_known or is_below(frame, autograd):
                reason = "thread_computing" if is_below(frame, folder) else "thread_unproven"
                raise Computing(reason, f"{_thread_name(ident)}, {place(frame)}")
    except BaseException:
        frame = None
        drop_frames(frames)
        raise
    return frames


def is_below(frame: Optional[FrameType], folder: str) -> bool:
    """Whether a function of `folder` is on this stack."""
    stack = read_stack(frame)
    frame = None
    try:
        return any(_is_of(each.f_code, folder) for each in stack)
    finally:
        drop_references(stack)


def check_main(frame: Optional[FrameType], folder: str) -> None:
    """For work off main: no torch frame on its stack; no frame at all only at the prompt."""
    if is_below(frame, folder):
        raise Computing("main_computing", place(frame))
    if frame is None and not at_classic_prompt(frame):
        raise Computing("main_unproven", place(frame))


def check_unchanged(
    proven: Frames, skip: "set[int]", in_c: "Optional[dict[int, CodeType]]" = None
) -> None:
    """Reading a frame may call the host's audit hooks, and they may let a thread go on.

    So from the list of frames on, nothing here is read that calls one.
    """
    frames = _frames_without(skip)
    try:
        if frames != proven or not all(
            waits_in_c(frames[ident], code) for ident, code in (in_c or {}).items()
        ):
            raise Computing("thread_unproven", "a thread woke up")
    finally:
        drop_frames(frames)


def waits_in_c(frame: FrameType, code: CodeType) -> bool:
    """Whether a frame with this code is inside a call of C code that only waits."""
    seen: list[Any] = []
    try:
        return is_waiting_in_c(frame, code, seen)
    finally:
        drop_references(seen)


def forget_call_sites() -> None:
    """Let go of the code that was looked at; torch.compile hangs objects of its own on code."""
    codes: list[Any] = [code for code, _ in call_sites]
    call_sites.clear()
    drop_references(codes)


def check_recursion() -> None:
    """Raise Computing where main is so deep that our calls or a finalizer's may not fit."""
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
        raise Computing("deep_recursion", f"the main thread is near its limit of {limit} calls")


def _has_room(calls: int) -> bool:
    return calls == 0 or _has_room(calls - 1)


def current_frames() -> Frames:
    """sys._current_frames(), with no collection in its midst.

    It holds the lock of the list of threads. Up to 3.11 an allocation in it can start a collection,
    and a finalizer there that lets go of the GIL dead-locks with whoever wants that lock.
    """
    if sys.version_info >= (3, 12):
        return sys._current_frames()
    # The three in one step of C code: no other thread runs in between, nor since the question.
    steps = zip(iter(gc.disable, 0), iter(sys._current_frames, None), iter(gc.enable, 0))
    for is_enabled in iter(gc.isenabled, None):
        break
    return next(steps)[1] if is_enabled else sys._current_frames()


def read_stack(frame: Optional[FrameType]) -> "list[FrameType]":
    """The frames of a stack, innermost first; for `drop_references` afterwards."""
    stack = []
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    return stack


def drop_frames(frames: Frames) -> None:
    """Let go of frames, as `drop_references` does."""
    frames.pop(agent_thread.get_ident(), None)  # a frame of ours, with nothing of the host's
    stack: list[Any] = list(frames.values())
    frames.clear()
    drop_references(stack)


def drop_references(things: "list[Any]") -> None:
    """Let go of objects of the host; one that only we still hold is left to the main thread.

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
    """What drop_references counts for an object that nobody else holds."""
    things = [object()]
    thing = things.pop()
    for count in map(sys.getrefcount, (thing,)):
        break
    return count


_ONLY_OURS = _count_references()


def at_classic_prompt(main_frame: Optional[FrameType]) -> bool:
    """Python's own prompt up to 3.12, or without a capable terminal: main runs no frame at all."""
    return main_frame is None and hasattr(sys, "ps1")


def is_waiting(stack: "list[FrameType]", waits: "set[CodeType]") -> bool:
    """Whether a stack ends in a known wait that has not ended since it was read.

    A frame that has returned has no caller any more. `threading._shutdown` never has one: Python
    calls it from C at the end of main.
    """
    if not stack:
        return False
    code = stack[0].f_code
    if code not in waits:
        return waits_in_c(stack[0], code)
    return len(stack) > 1 or code is find_code("threading", "_shutdown")


def find_idle_loop(stack: "list[FrameType]", waits: "set[CodeType]") -> Optional[Any]:
    """The event loop in whose own wait a stack ends: asyncio's, a kernel's, uvicorn's, uvloop's."""
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
    """Inside, no thread can make us let go of the GIL, until the time that is yielded."""
    check_interpreter()
    old = sys.getswitchinterval()
    _Changed.interval = old
    try:
        sys.setswitchinterval(KEEP_SECONDS)
        sleep(max(2 * old, 0.001))  # who asked with the old interval has had it, or asks anew
        with paused():  # a finalizer could let go of the GIL
            if sys.getswitchinterval() != KEEP_SECONDS:
                raise Computing("switch_interval", "the process changed it meanwhile")
            yield time.monotonic() + KEEP_SECONDS
    finally:
        restore_interval()


class _Changed:
    """Settings of the host that we changed for a moment, as they were."""

    interval: Optional[float] = None
    recursion: Optional[int] = None


def allow_extra_frames() -> None:
    """Room for our own call on main, wherever the host stands; until `restore_recursion_limit`."""
    if _Changed.recursion is None:
        _Changed.recursion = sys.getrecursionlimit()
        sys.setrecursionlimit(_Changed.recursion + EXTRA_FRAMES)


def restore_interval() -> None:
    if _Changed.interval is not None and sys.getswitchinterval() == KEEP_SECONDS:
        # Half a microsecond more: Python cuts it to whole ones, and made 99 of 100.
        sys.setswitchinterval(_Changed.interval + 0.5e-6)
    _Changed.interval = None


def recursion_limit_of_host() -> Optional[int]:
    """The host's limit, while ours is in force."""
    return _Changed.recursion


def restore_recursion_limit() -> None:
    limit, _Changed.recursion = _Changed.recursion, None
    if limit is not None and sys.getrecursionlimit() == limit + EXTRA_FRAMES:
        try:
            sys.setrecursionlimit(limit)
        except RecursionError:  # on a thread that is itself that deep: a forked child's
            pass


def restore_settings() -> None:
    """Give the host all its settings back; harmless when there is nothing to give."""
    restore_interval()
    restore_recursion_limit()


def _frames_without(skip: "set[int]") -> Frames:
    frames = current_frames()
    for ident in skip:
        frames.pop(ident, None)
    return frames


def _thread_name(ident: int) -> str:
    if ident == agent_thread.ident:
        return agent_thread.NAME  # seen by %mpsbar free
    # Not enumerate(): it takes a lock that main may hold when this runs in its midst.
    thread = threading._active.get(ident)  # type: ignore[attr-defined]
    # Not thread.name: a subclass may have made it its own code.
    name = vars(thread).get("_name") if thread is not None else None
    return name[:60] if type(name) is str else f"thread {ident}"
