"""Is this Python value what an Objective-C type encoding takes? As strict as PyObjC, or stricter."""

import functools
import re
from collections.abc import Callable
from typing import Any

NULL = type("NULL", (), {"__repr__": lambda self: "objc.NULL"})()

Check = Callable[[Any], bool]


@functools.cache
def check_for(encoding: str) -> Check:
    if encoding.startswith("{"):
        shape = _parse_shape(encoding)
        return lambda value: _has_shape(value, shape)
    if encoding.startswith("^"):
        return lambda value: value is None or value is NULL
    try:
        return _CHECKS[encoding]
    except KeyError:
        raise NotImplementedError(f"the double cannot check the type {encoding}") from None


def _is_object(value: Any) -> bool:
    return value is not NULL  # PyObjC wraps any Python object as an `id`


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or value in (0, 1)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _is_unsigned(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 2**64


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _is_selector(value: Any) -> bool:
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if isinstance(value, str):
        return re.fullmatch(r"[A-Za-z_][\w]*|([A-Za-z_][\w]*:)+", value) is not None
    return value is None or callable(value)


def _is_class(value: Any) -> bool:
    return isinstance(value, type)


def _is_block(value: Any) -> bool:
    return value is None or callable(value)


def _parse_shape(encoding: str) -> Any:
    """{CGRect={CGPoint=dd}{CGSize=dd}} -> (2, 2): how many fields, or the shape of each."""
    text = re.sub(r"\{\w+=", "(", encoding).replace("}", ")")
    flat = re.fullmatch(r"\(([a-zA-Z]+)\)", text)
    if flat:
        return len(flat[1])
    return tuple(len(part) for part in re.findall(r"\(([a-zA-Z]+)\)", text))


def _has_shape(value: Any, shape: Any) -> bool:
    if not isinstance(value, (tuple, list)):
        return False
    if isinstance(shape, int):
        return len(value) == shape and all(_is_number(part) for part in value)
    return len(value) == len(shape) and all(map(_has_shape, value, shape))


_CHECKS: dict[str, Check] = {
    "@": _is_object, "Z": _is_bool, "q": _is_integer, "i": _is_integer, "Q": _is_unsigned,
    "I": _is_unsigned, "S": _is_unsigned, "d": _is_number, "f": _is_number, ":": _is_selector,
    "#": _is_class, "@?": _is_block,
    "?": _is_object,  # how the index shows a type parameter, such as NSArray's ObjectType
}  # fmt: skip
