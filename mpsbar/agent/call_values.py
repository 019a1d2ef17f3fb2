"""Follows the instructions of a call: which function it calls, and with what, as far as is known.

What the names in the expression stand for is read from the frame (frame_values); its operators and
the calls inside it are not run, so of their results at most the type is known.
"""

import sys
from types import CodeType, FrameType, ModuleType
from typing import Any

from .call_site import CALLS, Instruction, effect_of
from .frame_values import (
    C_FUNCTIONS,
    Bound,
    NamedMethod,
    class_path,
    is_one_of,
    read_attribute,
    read_cell,
    read_global,
    read_name,
    read_variable,
)

# Functions that return a number.
_GIVE_NUMBERS = frozenset((
    "builtins.len", "time.time", "time.monotonic", "time.perf_counter", "_random.Random.random",
    "_socket.socket.fileno", "_io.FileIO.fileno", "_io.BufferedReader.fileno",
    "_io.TextIOWrapper.fileno", "select.epoll.fileno", "select.kqueue.fileno",
))  # fmt: skip
# Functions that return a number if their arguments are numbers.
_KEEP_NUMBERS = frozenset(("builtins.min", "builtins.max", "builtins.abs", "builtins.round"))
_PLAIN_CLASSES = (int, float, str, bytes, bool)
_NUMBERS = (int, float, bool)
_CONTAINERS = (tuple, list, dict)

# Types whose objects may be deallocated on any thread.
_OURS = (Bound, NamedMethod, type(None), int, float, bool, str, bytes)


class KnownValue:
    """A value on the stack that the frame's names lead to."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class KnownType:
    """A value of which only the type is known."""

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind


class LoadedMethod:
    """A method that was loaded for a call: the first of its two entries on the stack."""

    __slots__ = ("bound",)

    def __init__(self, bound: Bound) -> None:
        self.bound = bound


class _Marker:
    """An entry on the stack that is no value of the program's."""


_NULL, _SELF, _UNKNOWN = _Marker(), _Marker(), _Marker()


class Evaluation:
    """Applies the instructions of one expression to a stack of known and unknown values."""

    def __init__(self, frame: FrameType, code: CodeType, seen: "list[Any]") -> None:
        self._frame, self._code = frame, code
        self._seen = seen
        self._stack: list[Any] = []

    def take(self) -> Any:
        return self._stack.pop()

    def take_call(self, call: Instruction) -> "tuple[Any, list[Any]]":
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
            if type(container) is KnownType or not is_one_of(type_of(container), _CONTAINERS):
                return callee, [_UNKNOWN]
            values = container.value
            parts = values.values() if type(values) is dict else values
            arguments += [KnownValue(part) for part in parts]
        return callee, arguments

    def apply(self, instruction: Instruction) -> None:
        """Does to the stack what the instruction did to the frame's own."""
        name, argument = instruction.name, instruction.argument
        if name in CALLS:
            callee, arguments = self.take_call(instruction)
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

    def _note(self, value: Any) -> KnownValue:
        if not is_one_of(type(value), _OURS):
            self._seen.append(value)
        return KnownValue(value)

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
        loaded: Any = _UNKNOWN
        if type(item) is KnownValue and not is_one_of(type(item.value), (Bound, NamedMethod)):
            loaded = self._note(read_attribute(item.value, self._code.co_names[index]))
        if not as_method:
            self._stack.append(loaded)
        elif type(loaded) is KnownValue and type(loaded.value) is Bound:
            self._stack += [LoadedMethod(loaded.value), _SELF]
        else:
            self._stack += [_NULL, loaded]

    def _compute(self, name: str) -> None:
        if name == "BINARY_SLICE":
            self._stack.pop()
        right, left = self._stack.pop(), self._stack.pop()
        if name == "BINARY_SUBSCR":
            self._stack.append(_UNKNOWN)
            return
        are_numbers = _is_number(left) and _is_number(right)
        self._stack.append(KnownType(float) if are_numbers else _UNKNOWN)

    def _build(self, name: str, argument: int) -> None:
        stack = self._stack
        if name in ("NOP", "PRECALL", "KW_NAMES", "NOT_TAKEN", "GET_ITER"):
            return  # a `for` over a file: it is its own iterator
        if name == "PUSH_NULL":
            stack.append(_NULL)
        elif name == "UNARY_NEGATIVE":
            stack.append(KnownType(float) if _is_number(stack.pop()) else _UNKNOWN)
        elif name == "DICT_MERGE":  # f(**keywords): into an empty one
            merged, base = stack.pop(), stack.pop()
            stack.append(merged if type(base) is KnownType and base.kind is dict else _UNKNOWN)
        else:
            taken = effect_of(Instruction(0, name, argument))
            assert taken is not None
            del stack[len(stack) - taken[0] :]
            if name == "BUILD_MAP":
                stack.append(_UNKNOWN if argument else KnownType(dict))
            else:
                # Lists are made for select() and its like, which ask each element for a number.
                stack.append(KnownType(_BUILT[name]) if name in _BUILT else _UNKNOWN)


_BUILT = {
    "BUILD_LIST": list,
    "BUILD_TUPLE": tuple,
    "BUILD_STRING": str,
    "FORMAT_VALUE": str,
    "FORMAT_SIMPLE": str,
    "FORMAT_WITH_SPEC": str,
}


def _callee_of(first: Any, second: Any) -> Any:
    """Returns what is called: of the two entries below the arguments, one is NULL or the method's
    self.
    """
    if first is _NULL or first is _SELF:
        return second
    return first if second is _NULL or second is _SELF else _UNKNOWN


def type_of(item: Any) -> Any:
    if type(item) is KnownType:
        return item.kind
    return type(item.value) if type(item) is KnownValue else None


def path_of(callee: Any) -> str:
    """Returns the qualified name of a C function, such as time.sleep or _thread.lock.acquire; ""
    for anything else.
    """
    if type(callee) is Bound:
        return f"{class_path(callee.owner)}.{callee.function.__name__}"
    if type(callee) is NamedMethod:
        return callee.path
    if not is_one_of(type(callee), C_FUNCTIONS):
        return ""
    name, owner = callee.__name__, callee.__self__
    if type(owner) is ModuleType:
        module = read_attribute(owner, "__name__")
        is_itself = type(module) is str and sys.modules.get(module) is owner
        return f"{module}.{name}" if is_itself else ""
    found = read_attribute(owner, name)
    return path_of(found) if type(found) is Bound else ""


def _is_number(item: Any) -> bool:
    return is_one_of(type_of(item), _NUMBERS)


def _result_of(callee: Any, arguments: "list[Any]") -> Any:
    """Returns what a call among the arguments returned, as far as that is known."""
    if type(callee) is LoadedMethod:
        path = path_of(callee.bound)
    elif type(callee) is KnownValue:
        for kind in _PLAIN_CLASSES:
            if callee.value is kind:
                return KnownType(kind)
        path = path_of(callee.value)
    else:
        return _UNKNOWN
    are_numbers = all(map(_is_number, arguments))
    is_number = path in _GIVE_NUMBERS or (path in _KEEP_NUMBERS and are_numbers)
    return KnownType(float) if is_number else _UNKNOWN
