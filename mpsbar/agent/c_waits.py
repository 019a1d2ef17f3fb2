"""Recognises a wait in C: the call that a frame of Python is inside, if it is known only to wait.

The callee is found through the frame's own names (call_site, frame_values), then looked for on the
frame's stack of values, so that a name which was given something else since does not deceive.
Its arguments must be plain too: `time.sleep(tensor)` computes before it sleeps. What cannot be told
is no wait. None of the functions below calls anybody's Python code without a frame, and while one
of them waits it holds no lock of a framework.
"""

import sys
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType
from typing import Any, NamedTuple, Optional

from .call_site import CALLS, CallSite, Instruction, effect_of, find_call_site
from .frame_values import (
    Bound,
    Unknown,
    class_path,
    read_attribute,
    read_cell,
    read_global,
    read_name,
    read_variable,
    stack_holds,
)

_FUNCTIONS = frozenset((
    "time.sleep",
    "builtins.input",
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
    # Written in Cython. What they wait for comes back as a value, or by functions of Python.
    "zmq.backend.cython._zmq.Socket.recv",
    "grpc._cython.cygrpc.CompletionQueue.poll",
    "grpc._cython.cygrpc.Channel.watch_connectivity_state",
    "grpc._cython.cygrpc.Channel.next_call_event",
    "grpc._cython.cygrpc.SegregatedCall.next_event",
    "ray._raylet.GcsErrorSubscriber.poll", "ray._raylet.GcsLogSubscriber.poll",
))  # fmt: skip
# What these return is a number.
_GIVE_NUMBERS = frozenset((
    "builtins.len", "time.time", "time.monotonic", "time.perf_counter", "_random.Random.random",
    "_socket.socket.fileno", "_io.FileIO.fileno", "_io.BufferedReader.fileno",
    "_io.TextIOWrapper.fileno", "select.epoll.fileno", "select.kqueue.fileno",
))  # fmt: skip
# And what these return, if they are given numbers.
_KEEP_NUMBERS = frozenset(("builtins.min", "builtins.max", "builtins.abs", "builtins.round"))
_PLAIN_CLASSES = (int, float, str, bytes, bool)
_NUMBERS = (int, float, bool)
# Values of exactly these types run no code of their own when C code converts them.
_PLAIN = frozenset((
    type(None), int, float, bool, str, bytes, bytearray, memoryview, list, tuple, dict, set,
    frozenset, range,
))  # fmt: skip


# From 3.9 on there is a second type, for methods that want to know their class.
_C_FUNCTIONS = (BuiltinFunctionType, *BuiltinFunctionType.__subclasses__())
# What may end on any thread.
_OURS = (Bound, type(None), int, float, bool, str, bytes)


class KnownWait(NamedTuple):
    """A value on the stack that the frame's names lead to."""

    value: Any


class Kind(NamedTuple):
    """A value of which only the type is known."""

    kind: type


class _Sign:
    """A place on the stack that holds no value of the program's."""


class _Method(NamedTuple):
    """The first of the two places that a method loaded for a call takes."""

    bound: Bound


_NULL, _SELF, _UNKNOWN = _Sign(), _Sign(), _Sign()
_MOST_SITES = 100
# Kept for the length of a job, which looks at the same threads several times.
call_sites: "dict[tuple[CodeType, int], Optional[CallSite]]" = {}


def is_waiting_in_c(frame: FrameType, code: CodeType, seen: "list[Any]") -> bool:
    """Whether the frame is inside a call that only waits; calls no audit hook.

    `seen` gets the objects of the host that were looked at: the caller drops them with care.
    """
    site = _find_site(code, frame.f_lasti)
    if site is None:
        return False
    try:
        return _Evaluation(frame, code, seen).ends_in_wait(site)
    except Unknown:
        return False


def _find_site(code: CodeType, offset: int) -> Optional[CallSite]:
    key = (code, offset)
    if key in call_sites:
        return call_sites[key]
    found = find_call_site(code, offset)
    if len(call_sites) < _MOST_SITES:
        call_sites[key] = found
    return found


class _Evaluation:
    """The instructions of one expression, followed with what their names stand for."""

    def __init__(self, frame: FrameType, code: CodeType, seen: "list[Any]") -> None:
        self._frame, self._code = frame, code
        self._seen = seen
        self._stack: list[Any] = []

    def ends_in_wait(self, site: CallSite) -> bool:
        for instruction in site[:-1]:
            self._follow(instruction)
        last = site[-1]
        if last.name in CALLS:
            callee, arguments = self._take_call(last)
            return self._is_wait(callee) and all(map(_is_plain, arguments))
        item = self._stack.pop()
        if type(item) is not KnownWait:
            return False
        if last.name == "FOR_ITER":
            # Its iterator stays on the stack; a file is its own.
            method = read_attribute(item.value, "__next__")
            return _path_of(method) in _METHODS and self._holds(item.value)
        return _path_of(read_attribute(item.value, "__enter__")) in _METHODS

    def _is_wait(self, callee: Any) -> bool:
        if type(callee) is _Method:  # both lie on the stack
            bound = callee.bound
            return _path_of(bound) in _METHODS and self._holds(bound.function, bound.instance)
        if type(callee) is not KnownWait:
            return False
        path = _path_of(callee.value)
        if type(callee.value) is Bound:  # on the stack lies an object that was made for this call
            return path in _METHODS
        return (path in _FUNCTIONS or path in _METHODS) and self._holds(callee.value)

    def _holds(self, *things: Any) -> bool:
        return stack_holds(self._frame, self._code, *things)

    def _take_call(self, call: Instruction) -> "tuple[Any, list[Any]]":
        stack, name = self._stack, call.name
        if name == "CALL_FUNCTION_EX":
            return self._take_call_with_stars(call)
        if name in ("CALL_KW", "CALL_FUNCTION_KW"):
            stack.pop()  # the names of the keywords
        arguments = [stack.pop() for _ in range(call.argument)]
        if name in ("CALL_FUNCTION", "CALL_FUNCTION_KW"):
            return stack.pop(), arguments
        return _callee_of(stack.pop(), stack.pop()), arguments

    def _take_call_with_stars(self, call: Instruction) -> "tuple[Any, list[Any]]":
        stack = self._stack
        has_keywords = call.argument & 1 or sys.version_info >= (3, 14)
        keywords = stack.pop() if has_keywords else _NULL
        arguments = [stack.pop()]
        if keywords is not _NULL:
            arguments.append(keywords)
        callee = stack.pop()
        if sys.version_info >= (3, 11):
            callee = _callee_of(callee, stack.pop())
        for container in list(arguments):
            if type(container) is not KnownWait or type(container.value) not in (tuple, list, dict):
                return callee, [_UNKNOWN]
            values = container.value
            parts = values.values() if type(values) is dict else values
            arguments += [KnownWait(each) for each in parts]
        return callee, arguments

    def _follow(self, instruction: Instruction) -> None:
        """Do to the stack what the instruction did."""
        _, name, argument = instruction
        if name in CALLS:
            callee, arguments = self._take_call(instruction)
            self._stack.append(_result_of(callee, arguments))
        elif name == "LOAD_GLOBAL":
            self._load_global(argument)
        elif name == "LOAD_ATTR" and sys.version_info >= (3, 12):
            self._load_attribute(argument >> 1, as_method=bool(argument & 1))
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._load_attribute(argument, as_method=name == "LOAD_METHOD")
        elif name.startswith("LOAD_"):
            self._load(name, argument)
        elif name.startswith(("BINARY_", "INPLACE_")):
            self._compute(name)
        else:
            self._build(name, argument)

    def _load(self, name: str, argument: int) -> None:
        frame, code = self._frame, self._code
        if name == "LOAD_CONST":
            self._push(code.co_consts[argument])
        elif name == "LOAD_SMALL_INT":
            self._push(argument)
        elif name == "LOAD_NAME":
            self._push(read_name(frame, code, code.co_names[argument]))
        elif name == "LOAD_DEREF":
            index = argument
            if sys.version_info < (3, 11):
                index += len(code.co_varnames)
            self._push(read_cell(read_variable(frame, code, index)))
        elif name.count("LOAD_FAST") == 2:
            for index in (argument >> 4, argument & 15):
                self._push(read_variable(frame, code, index))
        else:  # the LOAD_FASTs
            self._push(read_variable(frame, code, argument))

    def _push(self, value: Any) -> None:
        self._stack.append(self._note(value))

    def _note(self, value: Any) -> KnownWait:
        if type(value) not in _OURS:
            self._seen.append(value)
        return KnownWait(value)

    def _load_global(self, argument: int) -> None:
        has_null = False
        if sys.version_info >= (3, 11):
            argument, has_null = argument >> 1, bool(argument & 1)
        is_null_first = sys.version_info < (3, 13)
        if has_null and is_null_first:
            self._stack.append(_NULL)
        self._push(read_global(self._frame, self._code.co_names[argument]))
        if has_null and not is_null_first:
            self._stack.append(_NULL)

    def _load_attribute(self, index: int, as_method: bool) -> None:
        item = self._stack.pop()
        found: Any = _UNKNOWN
        if type(item) is KnownWait and type(item.value) is not Bound:
            found = self._note(read_attribute(item.value, self._code.co_names[index]))
        if not as_method:
            self._stack.append(found)
        elif type(found) is KnownWait and type(found.value) is Bound:
            self._stack += [_Method(found.value), _SELF]
        else:
            self._stack += [_NULL, found]

    def _compute(self, name: str) -> None:
        if name == "BINARY_SLICE":
            self._stack.pop()
        right, left = self._stack.pop(), self._stack.pop()
        if name == "BINARY_SUBSCR":
            self._stack.append(_UNKNOWN)
            return
        kinds = {_kind_of(left), _kind_of(right)}
        self._stack.append(Kind(float) if kinds <= set(_NUMBERS) else _UNKNOWN)

    def _build(self, name: str, argument: int) -> None:
        stack = self._stack
        if name in ("NOP", "PRECALL", "KW_NAMES", "NOT_TAKEN", "GET_ITER"):
            return  # a `for` over a file: it is its own iterator
        if name == "PUSH_NULL":
            stack.append(_NULL)
        elif name == "UNARY_NEGATIVE":
            stack.append(Kind(float) if _kind_of(stack.pop()) in _NUMBERS else _UNKNOWN)
        elif name == "DICT_MERGE":  # f(**keywords): into an empty one
            merged, base = stack.pop(), stack.pop()
            stack.append(merged if type(base) is Kind and base.kind is dict else _UNKNOWN)
        else:
            taken = effect_of(Instruction(0, name, argument))
            assert taken is not None
            del stack[len(stack) - taken[0] :]
            if name == "BUILD_MAP":
                stack.append(_UNKNOWN if argument else Kind(dict))
            else:
                # Lists are made for select() and its like, which ask each element for a number.
                stack.append(Kind(_BUILT[name]) if name in _BUILT else _UNKNOWN)


_BUILT = {
    "BUILD_LIST": list,
    "BUILD_TUPLE": tuple,
    "BUILD_STRING": str,
    "FORMAT_VALUE": str,
    "FORMAT_SIMPLE": str,
    "FORMAT_WITH_SPEC": str,
}


def _callee_of(first: Any, second: Any) -> Any:
    """Of the two places below the arguments, one is NULL or the method's self."""
    if first is _NULL or first is _SELF:
        return second
    return first if second is _NULL or second is _SELF else _UNKNOWN


def _path_of(callee: Any) -> str:
    """time.sleep, _thread.lock.acquire: where a function of C is from; else an empty text."""
    if type(callee) is Bound:
        return f"{class_path(callee.owner)}.{callee.function.__name__}"
    if type(callee) not in _C_FUNCTIONS:
        return ""
    name, owner = callee.__name__, callee.__self__
    if type(owner) is ModuleType:
        module = read_attribute(owner, "__name__")
        is_itself = type(module) is str and sys.modules.get(module) is owner
        return f"{module}.{name}" if is_itself else ""
    found = read_attribute(owner, name)
    return _path_of(found) if type(found) is Bound else ""


def _kind_of(item: Any) -> Any:
    if type(item) is Kind:
        return item.kind
    return type(item.value) if type(item) is KnownWait else None


def _is_plain(item: Any) -> bool:
    return _kind_of(item) in _PLAIN


def _result_of(callee: Any, arguments: "list[Any]") -> Any:
    """What a call among the arguments returned, as far as that can be told."""
    if type(callee) is _Method:
        path = _path_of(callee.bound)
    elif type(callee) is KnownWait:
        for kind in _PLAIN_CLASSES:
            if callee.value is kind:
                return Kind(kind)
        path = _path_of(callee.value)
    else:
        return _UNKNOWN
    are_numbers = all(_kind_of(each) in _NUMBERS for each in arguments)
    is_number = path in _GIVE_NUMBERS or (path in _KEEP_NUMBERS and are_numbers)
    return Kind(float) if is_number else _UNKNOWN
