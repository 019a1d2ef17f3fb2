"""Objective-C classes as PyObjC shows them: Apple's held to the index, Python's own held to PyObjC."""

import functools
import inspect
import keyword
import types
from collections.abc import Callable
from typing import Any

from appkit import session
from appkit.encodings import check_for
from appkit.index import Message, find_message, has_class, parse_version, superclass
from appkit.messages import BadPrototypeError, Since, error, python_method, selector

_OLDEST = parse_version("13.0")
# Of NSObject's own messages those that an AppKit object answers on the main thread only.
_MAKERS = ("+alloc", "+new", "-init")


def _checked(owner: str, message: Message, function: Any) -> Any:
    """Apple's method, with the checks of the bridge and of AppKit before the double's behaviour."""
    checks = [check_for(encoding) for encoding in message.types]
    label = f"{message.key[0]}[{owner} {message.key[1:]}]"
    heeds_thread = owner != "NSObject" or message.key in _MAKERS

    @functools.wraps(function)
    def method(self: Any, *arguments: Any) -> Any:
        now = session.current()
        if now.ended is not None:
            now.check_alive()
        if heeds_thread and self._main_only and not now.is_main():
            now.fault(session.OffMainThreadError(f"{label} off the main thread"))
        if len(arguments) != len(checks):
            now.fault(TypeError(f"{label} takes {len(checks)} arguments, got {len(arguments)}"))
        for check, value, encoding in zip(checks, arguments, message.types, strict=True):
            if not check(value):
                now.fault(TypeError(f"{label} takes {encoding}, not {value!r}"))
        return function(self, *arguments)

    method.__name__ = message.key[1:].replace(":", "_")
    return method


class ObjCClass(type):
    """`class NSMenu(NSObject, framework="AppKit")` is the double's; without it, a Python subclass."""

    apple: str
    framework: str

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any
    ) -> "ObjCClass":
        is_apple = "framework" in options
        body = _apple_body(name, bases, body, options) if is_apple else _python_body(name, body)
        return super().__new__(mcs, name, bases, body)

    def __init__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any
    ) -> None:
        super().__init__(name, bases, body)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        raise NotImplementedError(f"{cls.__name__}(...): use {cls.__name__}.alloc().init…")

    def __getattr__(cls, name: str) -> Any:
        return missing(cls, "+", name)


def missing(cls: ObjCClass, kind: str, name: str) -> Any:
    """AttributeError for what Apple does not have, NotImplementedError for what only we lack."""
    if name.startswith("_"):
        raise AttributeError(name)
    key = kind + name.replace("_", ":")
    label = f"{kind}[{cls.__name__} {key[1:]}]"
    problem = _why_missing(label, find_message(cls.apple, key))
    if session.is_open():
        session.current().fault(problem)
    raise problem


def _why_missing(label: str, found: Message | None) -> Exception:
    if found is None:
        return AttributeError(f"{label}: Apple has no such message")
    if session.is_open() and session.current().macos < found.since:
        since = ".".join(map(str, found.since))
        return AttributeError(f"{label}: Apple has it from macOS {since} on, this is an older one")
    return NotImplementedError(f"{label}: Apple has it, the double does not")


def _apple_body(
    name: str, bases: tuple[type, ...], body: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    parent = superclass(name) if has_class(name) else "?"
    if parent != (bases[0].__name__ if bases else None):
        raise TypeError(f"{name} is a subclass of {parent} in Apple's headers")
    main_only = options["framework"] == "AppKit" and not options.get("any_thread")
    made = {key: _apple_member(name, key, value) for key, value in body.items()}
    return {**made, "apple": name, "framework": options["framework"], "_main_only": main_only}


def _apple_member(owner: str, name: str, value: Any) -> Any:
    is_class = isinstance(value, classmethod)
    if name.startswith("_") or not (is_class or isinstance(value, types.FunctionType)):
        return value
    key = ("+" if is_class else "-") + name.replace("_", ":")
    message = find_message(owner, key)
    if message is None:
        raise TypeError(f"Apple has no {key} in {owner}")
    method = _checked(owner, message, value.__func__ if is_class else value)
    if message.since <= _OLDEST:
        return classmethod(method) if is_class else method
    return Since(message.since, classmethod(method) if is_class else method, f"{owner} {key}")


def _python_body(name: str, body: dict[str, Any]) -> dict[str, Any]:
    now = session.current()
    if name in now.class_names:
        raise error(f"{name} is overriding existing Objective-C class")
    now.class_names.add(name)
    return {key: _python_member(key, value) for key, value in body.items()}


def _python_member(name: str, value: Any) -> Any:
    if isinstance(value, python_method):
        return value.wrapped
    if isinstance(value, selector):
        return value.function
    function = value.__func__ if isinstance(value, classmethod) else value
    if isinstance(function, python_method):
        return classmethod(function.wrapped)
    if isinstance(function, types.FunctionType):
        _check_prototype(name, function)
    return value


def _argument_count(name: str) -> int | None:
    """PyObjC's rule: of the selector this name stands for, or None for a plain Python method.

    A lone leading underscore does not make it plain: `_draw(self, rows)` is refused on a Mac too.
    """
    if name.endswith("__") and keyword.iskeyword(name[:-2]):
        name = name[:-2]
    is_dunder = name.startswith("__") and name.endswith("__")
    if is_dunder or ("_" in name[1:] and not name.endswith("_")):
        return None
    return name[1:].count("_")


def _check_prototype(name: str, function: Callable[..., Any]) -> None:
    wanted = _argument_count(name)
    if wanted is None:
        return
    try:
        inspect.signature(function).bind(None, *range(wanted))
    except TypeError as problem:
        raise BadPrototypeError(f"{name} must take {wanted} arguments: {problem}") from None
