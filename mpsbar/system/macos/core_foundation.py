"""CoreFoundation's objects as Python's. Who creates or copies one releases it; the rest is lent."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mpsbar.system.macos.native import CORE_FOUNDATION, load

_UTF8 = 0x08000100
_SINT64 = 4
# What drivers publish is far smaller; what is larger is taken for unreadable.
_LONGEST = 4096
_MOST_ITEMS = 1000
_DEEPEST = 8


class Foundation:
    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._cf = load(path, CORE_FOUNDATION)
        self._converters = {
            self._cf.CFArrayGetTypeID(): self._array,
            self._cf.CFBooleanGetTypeID(): self._boolean,
            self._cf.CFDataGetTypeID(): self._data,
            self._cf.CFDictionaryGetTypeID(): self._dictionary,
            self._cf.CFNumberGetTypeID(): self._number,
            self._cf.CFStringGetTypeID(): self._string,
        }

    @contextmanager
    def owned(self, reference: int | None) -> Iterator[int | None]:
        """Releases at the end what a Create or Copy function gave; it may have given nothing."""
        try:
            yield reference
        finally:
            if reference:
                self._cf.CFRelease(reference)

    def create_string(self, text: str) -> int | None:
        reference: int | None = self._cf.CFStringCreateWithCString(None, text.encode(), _UTF8)
        return reference

    def to_python(self, reference: int | None, depth: int = 0) -> Any:
        """None for nothing, for what has no counterpart, and for what is too large."""
        if not reference or depth > _DEEPEST:
            return None
        convert = self._converters.get(self._cf.CFGetTypeID(reference))
        return None if convert is None else convert(reference, depth)

    def _string(self, reference: int, _: int) -> str | None:
        length = self._cf.CFStringGetLength(reference)  # in UTF-16: three bytes each at most
        if length > _LONGEST:
            return None
        buffer = ctypes.create_string_buffer(3 * length + 1)
        if not self._cf.CFStringGetCString(reference, buffer, len(buffer), _UTF8):
            return None
        return buffer.value.decode(errors="replace")

    def _number(self, reference: int, _: int) -> int | None:
        """The kernel has unsigned numbers, CoreFoundation none: 2^63 and more come out negative."""
        value = ctypes.c_int64()
        is_exact = self._cf.CFNumberGetValue(reference, _SINT64, ctypes.byref(value))
        return value.value if is_exact else None

    def _boolean(self, reference: int, _: int) -> bool:
        return bool(self._cf.CFBooleanGetValue(reference))

    def _data(self, reference: int, _: int) -> bytes | None:
        length = self._cf.CFDataGetLength(reference)
        if length > _LONGEST:
            return None
        return ctypes.string_at(self._cf.CFDataGetBytePtr(reference), length) if length else b""

    def _array(self, reference: int, depth: int) -> list[Any] | None:
        count = self._cf.CFArrayGetCount(reference)
        if count > _MOST_ITEMS:
            return None
        items = (self._cf.CFArrayGetValueAtIndex(reference, index) for index in range(count))
        return [self.to_python(item, depth + 1) for item in items]

    def _dictionary(self, reference: int, depth: int) -> dict[Any, Any] | None:
        count = self._cf.CFDictionaryGetCount(reference)
        if count > _MOST_ITEMS:
            return None
        keys, values = (ctypes.c_void_p * count)(), (ctypes.c_void_p * count)()
        self._cf.CFDictionaryGetKeysAndValues(reference, keys, values)
        names = (self.to_python(key, depth + 1) for key in keys)
        return {
            name: self.to_python(value, depth + 1)
            for name, value in zip(names, values, strict=True)
            if isinstance(name, str)
        }
