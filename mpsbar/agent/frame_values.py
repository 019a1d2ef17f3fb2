"""Reads what a frame's names stand for without running anybody's code, and without a trace.

No getattr on an object of the host, no descriptor of its classes, no __eq__: only dictionaries,
slots and modules. Not frame.f_locals either: up to 3.12 it makes a copy that keeps the host's
tensors alive, and drops old ones on our thread. So local variables are read from the frame's
memory, which has one layout in each of these Pythons; it is checked once, with a frame of our own.

When a function returns, its frame's memory moves, and what it was is used for others. So each read
starts at the frame object and is one step of C code, in which no other thread runs: no address is
kept from one bytecode to the next, and no audit hook of the host is called in between.
"""

import ctypes
import struct
import sys
from collections.abc import Iterator
from itertools import repeat
from operator import add, getitem, rshift
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, Optional

POINTER = 8
_ADDRESS = ~3  # of an object, without its tag
_OPTIMIZED = 0x1  # CO_OPTIMIZED: local variables are in the frame, not in a dictionary


class _Layout:
    """The offsets, in bytes, of what stands in a frame's memory."""

    def __init__(
        self,
        inner: Optional[int],
        owner: Optional[int],
        code: int,
        values: int,
        tags: "tuple[int, ...]" = (0,),
    ) -> None:
        self.inner = inner  # of the pointer to the inner frame; None: it is one object
        self.owner = owner  # in the inner frame: of the pointer back to the frame object
        self.code = code
        self.values = values  # of the local variables, then the cells, then the stack of values
        self.tags = tags  # what may be added to the address of an object there


_LAYOUTS = {
    (3, 9): _Layout(None, None, 32, 360),
    (3, 10): _Layout(None, None, 32, 352),
    (3, 11): _Layout(24, 40, 32, 72),
    (3, 12): _Layout(24, 48, 0, 72),
    (3, 13): _Layout(24, 48, 0, 72),
    # The lowest bits of a reference say who counts it: InternalDocs/stackrefs.md.
    (3, 14): _Layout(24, 48, 0, 80, tags=(0, 1, 2, 3)),
}


class UnknownValueError(Exception):
    """It is not known what a name stands for."""


class Bound:
    """A method of a class written in C or Cython, and the object it is called on."""

    __slots__ = ("function", "instance", "owner")

    def __init__(self, function: Any, instance: Any, owner: type) -> None:
        self.function = function
        self.instance = instance
        self.owner = owner  # the class that has it


class NamedMethod:
    """A method written in C of another kind than Python's own: told by its class and its name."""

    __slots__ = ("function", "path")

    def __init__(self, function: Any, path: str) -> None:
        self.function = function  # as it lies on the stack; None: one is made for each call
        self.path = path


def is_one_of(kind: Any, kinds: "tuple[Any, ...]") -> bool:
    """Returns whether a type is among these, by identity: a metaclass may compare with foreign
    code.
    """
    return any(kind is known for known in kinds)


def variable_names(code: CodeType) -> "tuple[str, ...]":
    """Returns the names of what stands in a frame's memory, in its order."""
    cells = code.co_cellvars
    if sys.version_info >= (3, 11):  # an argument that a closure uses has one place
        cells = tuple(name for name in cells if name not in code.co_varnames)
    return code.co_varnames + cells + code.co_freevars


def read_variable(frame: FrameType, code: CodeType, index: int) -> Any:
    """Reads the local variable or cell at `index` of `variable_names`."""
    if _layout is None or len(_layout.tags) > 1:
        if sys.version_info < (3, 13):
            raise UnknownValueError
        try:
            return frame.f_locals[variable_names(code)[index]]  # no copy from 3.13 on
        except (KeyError, IndexError):
            raise UnknownValueError from None
    if not 0 <= index < len(variable_names(code)):
        raise UnknownValueError
    return _read(frame, code, map(getitem, repeat(_objects), _words_at(frame, index)))


def read_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents if type(cell) is CellType else cell
    except ValueError:
        raise UnknownValueError from None


def stack_holds(frame: FrameType, code: CodeType, *things: Any) -> bool:
    """Returns whether these objects lie side by side on the frame's stack of values; numbers are
    compared.

    False where that cannot be read: a name alone may have been given something else since.
    """
    if _layout is None:
        return False
    first = len(variable_names(code))
    ends = _words_at(frame, first + code.co_stacksize)
    # A copy of numbers: what an object was that has left the stack, nobody may touch.
    stack = _read(
        frame,
        code,
        map(getitem, repeat(ALL_MEMORY), map(slice, _words_at(frame, first), ends)),
    )
    stack = [(word or 0) & _ADDRESS for word in stack] if len(_layout.tags) > 1 else stack
    wanted = [id(thing) for thing in things]
    return any(stack[at : at + len(wanted)] == wanted for at in range(len(stack)))


def read_name(frame: FrameType, code: CodeType, name: str) -> Any:
    """Reads as LOAD_NAME does in a module's own code, where local variables are a dictionary."""
    if code.co_flags & _OPTIMIZED:
        raise UnknownValueError
    space = frame.f_locals
    if type(space) is not dict:
        raise UnknownValueError
    return space[name] if name in space else read_global(frame, name)


def read_global(frame: FrameType, name: str) -> Any:
    for space in (frame.f_globals, frame.f_builtins):
        if type(space) is not dict:
            raise UnknownValueError
        if name in space:
            return space[name]
    raise UnknownValueError


def read_attribute(thing: Any, name: str) -> Any:
    """Reads `thing.name` as Python would find it; a method written in C comes as a Bound."""
    kind = type(thing)
    if kind is ModuleType:
        space = _MODULE_DICT.__get__(thing)
        if name in space:
            return space[name]
        raise UnknownValueError
    classes = _MRO.__get__(kind)
    entry: Any = _MISSING
    owner: type = kind
    for base in classes:
        space = _CLASS_DICT.__get__(base)
        if base is not object and not _looks_up_plainly(base, space):
            raise UnknownValueError
        if entry is _MISSING and name in space:
            entry, owner = space[name], base
    return _choose(thing, name, classes, entry, owner)


def _choose(thing: Any, name: str, classes: Any, entry: Any, owner: type) -> Any:
    """Returns what comes first of a slot, the object's own dictionary and what its class has."""
    if type(entry) is MemberDescriptorType:
        try:
            return entry.__get__(thing)
        except AttributeError:
            raise UnknownValueError from None
    if entry is not _MISSING and _has(type(entry), "__set__"):
        raise UnknownValueError  # a property, or the like
    own = _own_dictionary(thing, classes)
    if own is not None and name in own:
        return own[name]
    if entry is _MISSING:
        raise UnknownValueError
    method = _find_c_method(thing, name, classes, entry, owner)
    if method is not None:
        return method
    if _has(type(entry), "__get__"):
        raise UnknownValueError  # a function of Python, a class method, …
    return entry


def _find_c_method(thing: Any, name: str, classes: Any, entry: Any, owner: type) -> Any:
    """Returns what a class has as a method written in C; else None."""
    if is_one_of(type(entry), _C_METHODS) or _is_cython(type(entry)):
        if any(class_path(base) in _OWN_LOOKUP for base in classes):
            return NamedMethod(None, f"{class_path(owner)}.{name}")  # bound for each call
        return Bound(entry, thing, owner)
    if type(entry) is staticmethod and is_one_of(type(entry.__func__), C_FUNCTIONS):
        return NamedMethod(entry.__func__, f"{class_path(owner)}.{name}")  # PySide
    if class_path(type(entry)) == "sip.methoddescriptor":
        return NamedMethod(None, f"{class_path(owner)}.{name}")  # PyQt
    return None


def _own_dictionary(thing: Any, classes: Any) -> "Optional[dict[str, Any]]":
    for base in classes:
        getter = _CLASS_DICT.__get__(base).get("__dict__")
        if getter is not None:
            if type(getter) is not GetSetDescriptorType:
                raise UnknownValueError
            own = getter.__get__(thing)
            if type(own) is not dict:
                raise UnknownValueError
            return own
    return None


def _looks_up_plainly(kind: type, space: "dict[str, Any]") -> bool:
    """Returns whether attributes of this class are found as those of any object are."""
    own = space.get("__getattribute__")
    return own is None or (type(own) is _SLOT_WRAPPER and class_path(kind) in _PLAIN_LOOKUP)


def _is_cython(kind: type) -> bool:
    return bool(_CLASS_NAME.__get__(kind) == "cython_function_or_method")


def class_path(kind: type) -> str:
    """Returns the full name of a class written in C, such as select.epoll."""
    return f"{_CLASS_MODULE.__get__(kind)}.{_CLASS_NAME.__get__(kind)}"


def _has(kind: type, name: str) -> bool:
    return any(name in _CLASS_DICT.__get__(base) for base in _MRO.__get__(kind))


_MISSING = object()
_MRO: Any = type.__dict__["__mro__"]
_CLASS_DICT: Any = type.__dict__["__dict__"]
_MODULE_DICT: Any = vars(ModuleType)["__dict__"]
_CLASS_MODULE: Any = type.__dict__["__module__"]
# Those of PySide look among Qt's signals and properties for what object's function has not found.
_OWN_LOOKUP = frozenset(("Shiboken.Object", "PySide6.QtCore.QObject"))
# Classes written in C whose entry __getattribute__ is object's own function, or begins with it.
_PLAIN_LOOKUP = _OWN_LOOKUP | {
    "_io.FileIO", "_socket.socket", "select.epoll", "select.kqueue", "_multiprocessing.SemLock",
}  # fmt: skip
_CLASS_NAME: Any = type.__dict__["__name__"]
_SLOT_WRAPPER = type(str.__len__)
_C_METHODS = (type(str.join), _SLOT_WRAPPER)
# From 3.9 on there is a second type, for methods that want to know their class.
C_FUNCTIONS = (BuiltinFunctionType, *BuiltinFunctionType.__subclasses__())


def _read(frame: FrameType, code: CodeType, values: "Iterator[Any]") -> Any:
    """Returns what one step of `values` gives.

    Raises UnknownValueError if the memory is not as it should be, or nothing is set.
    """
    assert _layout is not None
    codes = [id(code) + tag for tag in _layout.tags]
    checks = [_expecting(codes, _word_of(frame, _layout.code))]
    if _layout.owner is not None:
        checks.append(_expecting([id(frame)], _word_of(frame, _layout.owner)))
    try:
        for step in zip(*checks, values):
            return step[-1]
    except (KeyError, TypeError, ValueError):
        pass
    raise UnknownValueError


def _expecting(allowed: "list[int]", words: "Iterator[int]") -> "Iterator[None]":
    """Returns an iterator whose steps raise KeyError unless memory holds one of `allowed`."""
    numbers = dict.fromkeys(allowed)
    return map(getitem, repeat(numbers), map(getitem, repeat(ALL_MEMORY), words))


def _words_at(frame: FrameType, index: int) -> "Iterator[int]":
    """Returns the address, in words, of the variable or stack entry at `index`."""
    assert _layout is not None
    return _word_of(frame, _layout.values + index * POINTER)


def _word_of(frame: FrameType, offset: int) -> "Iterator[int]":
    """Returns the address, in words, of the frame's `offset`; computed anew at each step."""
    assert _layout is not None
    first: Iterator[Any] = repeat(id(frame) // POINTER)
    if _layout.inner is not None:
        inner = repeat((id(frame) + _layout.inner) // POINTER)
        first = map(rshift, map(getitem, repeat(ALL_MEMORY), inner), repeat(3))  # bytes to words
    return map(add, first, repeat(offset // POINTER))


def _find_layout() -> Optional[_Layout]:
    """Returns this Python's layout, if the memory of a frame of our own is laid out so."""
    global _layout  # noqa: PLW0603 - once, at import
    layout = _LAYOUTS.get(sys.version_info[:2])
    if (
        layout is None
        or not has_plain_memory()
        or (layout.inner is None and FrameType.__basicsize__ != layout.values + POINTER)
    ):
        return None
    _layout = layout
    first, second = object(), [object()]
    return layout if _reads_itself(first, second, lambda: second) else None


def has_plain_memory() -> bool:
    """Returns whether Python's objects are laid out as in CPython's usual builds, with a GIL."""
    return (
        struct.calcsize("P") == POINTER
        and sys.implementation.name == "cpython"
        and object.__basicsize__ == 2 * POINTER  # a build for debugging has more
        and getattr(sys, "_is_gil_enabled", lambda: True)()
    )


def _reads_itself(first: Any, second: Any, third: Any) -> bool:
    frame = sys._getframe()
    code = frame.f_code
    try:
        values = [read_variable(frame, code, index) for index in range(3)]
        addresses = [
            _read(frame, code, map(getitem, repeat(ALL_MEMORY), _words_at(frame, index)))
            for index in range(3)
        ]
    except UnknownValueError:
        return False
    wanted = [id(first), id(second), id(third)]
    return [id(value) for value in values] == wanted and [
        (address or 0) & _ADDRESS for address in addresses
    ] == wanted


# All of this process's memory, as numbers and as objects: an index reads it, and no hook is called.
_WORDS = 1 << 59
ALL_MEMORY: Any = (ctypes.c_void_p * _WORDS).from_address(0)
_objects: Any = (ctypes.py_object * _WORDS).from_address(0)
_layout: Optional[_Layout] = None
_layout = _find_layout()
