"""Recognises a wait in C: the call that a frame of Python is inside, if it is known only to wait.

The callee is found through the frame's own names (call_site, frame_values), then looked for on the
frame's stack of values, so that a name which was given something else since does not deceive.
Its arguments must be plain too: `time.sleep(tensor)` computes before it sleeps. What is not
known is no wait. None of the functions below calls anybody's Python code without a frame, or waits
while it keeps a lock of a framework.

The loops of Qt and uvloop do call such code, in a way that can be seen (c_callbacks); outside it
they only wait. Tk's calls it in a way that cannot: it is no wait.
"""

from types import CodeType, FrameType
from typing import Any, Optional

from .c_callbacks import is_outside_callbacks
from .call_site import CALLS, CallSite, find_call_site
from .call_values import Evaluation, KnownValue, LoadedMethod, path_of, type_of
from .frame_values import (
    Bound,
    NamedMethod,
    UnknownValueError,
    is_one_of,
    read_attribute,
    stack_holds,
)

_FUNCTIONS = frozenset((
    "time.sleep",
    "builtins.input",
    # Python's prompt without a capable terminal, from 3.13 on; what is typed there has a frame.
    "sys._baserepl",
    "_signal.pause", "_signal.sigwait", "_signal.sigwaitinfo", "_signal.sigtimedwait",
    "select.select",
    "posix.read", "posix.system",
    "posix.wait", "posix.wait3", "posix.wait4", "posix.waitid", "posix.waitpid",
))  # fmt: skip
_METHODS = frozenset((
    "_thread.lock.acquire", "_thread.lock.acquire_lock", "_thread.lock.__enter__",
    "_thread.RLock.acquire", "_thread.RLock.__enter__",
    "_multiprocessing.SemLock.acquire", "_multiprocessing.SemLock.__enter__",
    "_billiard.SemLock.acquire", "_billiard.SemLock.__enter__",
    "_queue.SimpleQueue.get",
    "_socket.socket._accept", "_socket.socket.connect",
    "_socket.socket.recv", "_socket.socket.recv_into", "_socket.socket.recvfrom",
    "_socket.socket.recvfrom_into", "_socket.socket.recvmsg", "_socket.socket.recvmsg_into",
    "_ssl._SSLSocket.read",
    "select.poll.poll", "select.epoll.poll", "select.kqueue.control",
    "_io.FileIO.read", "_io.FileIO.readinto", "_io.FileIO.readall",
    "_io.BufferedReader.read", "_io.BufferedReader.read1", "_io.BufferedReader.readline",
    "_io.BufferedReader.readinto", "_io.BufferedReader.peek", "_io.BufferedReader.__next__",
    "_io.TextIOWrapper.read", "_io.TextIOWrapper.readline", "_io.TextIOWrapper.__next__",
    # Written in Cython. They return what they wait for, or pass it to Python functions.
    "zmq.backend.cython._zmq.Socket.recv",
    "grpc._cython.cygrpc.CompletionQueue.poll",
    "grpc._cython.cygrpc.Channel.watch_connectivity_state",
    "grpc._cython.cygrpc.Channel.next_call_event",
    "grpc._cython.cygrpc.SegregatedCall.next_event",
    "ray._raylet.GcsErrorSubscriber.poll", "ray._raylet.GcsLogSubscriber.poll",
))  # fmt: skip
# Its argument may be anything: uvloop passes it to Python functions, which have frames.
_TAKES_ANYTHING = "uvloop.loop.Loop.run_until_complete"
_LOOPS = frozenset((
    "uvloop.loop.Loop.run_forever", _TAKES_ANYTHING,
    *(
        f"{binding}.{kind}.{name}"
        for binding, name in (("PySide6", "exec"), ("PySide6", "exec_"), ("PyQt6", "exec"))
        for kind in (
            "QtWidgets.QApplication", "QtGui.QGuiApplication", "QtCore.QCoreApplication",
            "QtWidgets.QDialog", "QtCore.QEventLoop", "QtCore.QThread",
        )
    ),
))  # fmt: skip
# Values of exactly these types run no code of their own when C code converts them.
_PLAIN = (
    type(None), int, float, bool, str, bytes, bytearray, memoryview, list, tuple, dict, set,
    frozenset, range,
)  # fmt: skip

_WAITS = _FUNCTIONS | _METHODS
_MAX_SITES = 100
# Kept for the length of a job, which looks at the same threads several times.
call_sites: "dict[tuple[CodeType, int], Optional[CallSite]]" = {}


def is_waiting_in_c(frame: FrameType, code: CodeType, ident: int, seen: "list[Any]") -> bool:
    """Returns whether a thread's innermost frame is inside a call that only waits; calls no audit
    hook.

    `seen` gets the objects of the host that were looked at: the caller drops them with care.
    """
    site = _find_site(code, frame.f_lasti)
    if site is None:
        return False
    try:
        path = _find_callee(site, frame, code, seen)
    except UnknownValueError:
        return False
    return path in _WAITS or (path in _LOOPS and is_outside_callbacks(ident))


def _find_site(code: CodeType, offset: int) -> Optional[CallSite]:
    key = (code, offset)
    if key in call_sites:
        return call_sites[key]
    site = find_call_site(code, offset)
    if len(call_sites) < _MAX_SITES:
        call_sites[key] = site
    return site


def _find_callee(site: CallSite, frame: FrameType, code: CodeType, seen: "list[Any]") -> str:
    """Returns the qualified name of the C function that the frame is calling, or "" if that is not
    certain.
    """
    evaluation = Evaluation(frame, code, seen)
    for instruction in site[:-1]:
        evaluation.apply(instruction)
    last = site[-1]
    if last.name in CALLS:
        callee, arguments = evaluation.take_call(last)
        path = _callee_on_stack(callee, frame, code)
        are_plain = all(is_one_of(type_of(argument), _PLAIN) for argument in arguments)
        return path if are_plain or path == _TAKES_ANYTHING else ""
    item = evaluation.take()
    if type(item) is not KnownValue:
        return ""
    if last.name == "FOR_ITER":
        # Its iterator stays on the stack; a file is its own.
        path = path_of(read_attribute(item.value, "__next__"))
        return path if stack_holds(frame, code, item.value) else ""
    return path_of(read_attribute(item.value, "__enter__"))


def _callee_on_stack(callee: Any, frame: FrameType, code: CodeType) -> str:
    if type(callee) is LoadedMethod:  # both lie on the stack
        bound = callee.bound
        is_there = stack_holds(frame, code, bound.function, bound.instance)
        return path_of(bound) if is_there else ""
    if type(callee) is not KnownValue:
        return ""
    value = callee.value
    # Of these, an object lies on the stack that was made for this call.
    is_made = type(value) is Bound
    if type(value) is NamedMethod:
        value = value.function
        is_made = value is None
    return path_of(callee.value) if is_made or stack_holds(frame, code, value) else ""
