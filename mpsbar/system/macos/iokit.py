"""The accelerator in IOKit's registry: its statistics and its clients; CoreFoundation's objects.

Whoever creates or copies a CoreFoundation object releases it; all others belong to somebody else.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mpsbar.system.macos import iokit_values
from mpsbar.system.macos.iokit_values import Properties
from mpsbar.system.macos.native import CORE_FOUNDATION, IOKIT, handle, load

# A virtual Mac's never has any statistics, an external one can be unplugged.
SEARCH_AGAIN = 30.0
_CLASS_SIZE = 128  # io_name_t
_UTF8 = 0x08000100
_SINT64, _DOUBLE = 4, 13
# What drivers publish is far smaller; what is larger is taken for unreadable.
_LONGEST = 4096
_MAX_ITEMS = 1000
_DEEPEST = 8


class Registry:
    """Finds the accelerator once and keeps its entry."""

    def __init__(self, iokit: str, core_foundation: str, clock: Callable[[], float]) -> None:
        """Raises OSError where there is no IOKit."""
        self._iokit = load(iokit, IOKIT)
        self._foundation = Foundation(core_foundation)
        self._clock = clock
        self._entry: int | None = None
        self._fixed: Properties = {}
        self._search_at: float | None = None
        self._failure: str | None = None
        self._openers: dict[int, Any] = {}

    def read_accelerator(self) -> Properties | None:
        """Returns None where there is none. Raises OSError while IOKit fails."""
        statistics = self._read_statistics()
        if statistics is None:
            self._search()
            statistics = self._read_statistics()
        if self._entry is None:
            return None
        return {**self._fixed, iokit_values.STATISTICS: statistics}

    def read_clients(self) -> Properties | None:
        """The accelerator with its user clients as children: who opened them, what they used."""
        if self._entry is None:
            self._search()
        if self._entry is None:
            return None
        iterator = handle()
        self._check(
            self._iokit.IORegistryEntryGetChildIterator(
                self._entry, b"IOService", ctypes.byref(iterator)
            )
        )
        openers, self._openers = self._openers, {}
        with self._foundation.owned(self._foundation.create_string(iokit_values.USAGE)) as usage:
            children = [
                {**client, iokit_values.USAGE: self._property(entry, usage)}
                for entry in self._each(iterator.value)
                if (client := self._identify(entry, openers)) is not None
            ]
        return {**self._fixed, iokit_values.CHILDREN: children}

    def _search(self) -> None:
        now = self._clock()
        if self._search_at is None or now >= self._search_at:
            self._search_at = now + SEARCH_AGAIN
            self._failure = None
            try:
                self._find()
            except OSError as error:
                self._failure = str(error)
        if self._failure is not None:
            raise OSError(self._failure)

    def _find(self) -> None:
        """Keeps the best accelerator; releases the others and the one before."""
        if self._entry is not None:
            self._iokit.IOObjectRelease(self._entry)
            self._entry = None
        matching = self._iokit.IOServiceMatching(b"IOAccelerator")
        if not matching:
            raise OSError("IOKit cannot match")
        iterator = handle()
        # Consumes `matching`.
        self._check(self._iokit.IOServiceGetMatchingServices(0, matching, ctypes.byref(iterator)))
        entries = self._each(iterator.value, keep=True)
        accelerators = [(entry, self._describe(entry)) for entry in entries]
        best = iokit_values.choose_accelerator([properties for _, properties in accelerators])
        for entry, properties in accelerators:
            if properties is best:
                self._entry, self._fixed = entry, properties
            else:
                self._iokit.IOObjectRelease(entry)

    def _describe(self, entry: int) -> Properties:
        keys = (*iokit_values.FIXED, iokit_values.STATISTICS)
        properties = {key: self._read_property(entry, key) for key in keys}
        return {iokit_values.CLASS: self._class(entry), **properties}

    def _identify(self, entry: int, openers: dict[int, Any]) -> Properties | None:
        """The number and the opener of a client, read once; None for entries of other classes."""
        number = ctypes.c_uint64()
        if self._iokit.IORegistryEntryGetRegistryEntryID(entry, ctypes.byref(number)):
            return None
        opener = openers.get(number.value) or self._read_opener(entry)
        if opener is None:
            return None
        self._openers[number.value] = opener
        return {
            iokit_values.CLASS: iokit_values.CLIENT_CLASS,
            iokit_values.ENTRY_ID: number.value,
            iokit_values.CREATOR: opener,
        }

    def _read_opener(self, entry: int) -> Any:
        """Returns None while it is being opened too: the kernel adds the creator later."""
        if self._class(entry) != iokit_values.CLIENT_CLASS:
            return None
        return self._read_property(entry, iokit_values.CREATOR)

    def _read_statistics(self) -> Any:
        if self._entry is None:
            return None
        return self._read_property(self._entry, iokit_values.STATISTICS)

    def _read_property(self, entry: int, name: str) -> Any:
        """One property: reading all of them would add 40 kB of legend."""
        with self._foundation.owned(self._foundation.create_string(name)) as key:
            return self._property(entry, key)

    def _property(self, entry: int, key: int | None) -> Any:
        if not key:
            return None
        value = self._iokit.IORegistryEntryCreateCFProperty(entry, key, None, 0)
        with self._foundation.owned(value):
            return self._foundation.to_python(value)

    def _class(self, entry: int) -> str | None:
        buffer = ctypes.create_string_buffer(_CLASS_SIZE)
        if self._iokit.IOObjectGetClass(entry, buffer):
            return None
        return buffer.value.decode(errors="replace")

    def _each(self, iterator: int, keep: bool = False) -> Iterator[int]:
        """The entries of an iterator, each released afterwards unless `keep` is set."""
        try:
            while entry := self._iokit.IOIteratorNext(iterator) if iterator else 0:
                try:
                    yield entry
                finally:
                    if not keep:
                        self._iokit.IOObjectRelease(entry)
        finally:
            if iterator:
                self._iokit.IOObjectRelease(iterator)

    @staticmethod
    def _check(code: int) -> None:
        if code:
            raise OSError(f"IOKit says {code & 0xFFFFFFFF:#x}")


class Foundation:
    """CoreFoundation's objects as Python's."""

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
        """Releases at the end what a Create or Copy function returned, which may be nothing."""
        try:
            yield reference
        finally:
            if reference:
                self._cf.CFRelease(reference)

    def create_string(self, text: str) -> int | None:
        reference: int | None = self._cf.CFStringCreateWithCString(None, text.encode(), _UTF8)
        return reference

    def to_python(self, reference: int | None, depth: int = 0) -> Any:
        """Returns None for nothing, for what has no counterpart, and for what is too large."""
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

    def _number(self, reference: int, _: int) -> int | float | None:
        """The kernel has unsigned numbers, CoreFoundation none: 2^63 and more come out negative."""
        whole = ctypes.c_int64()
        if self._cf.CFNumberGetValue(reference, _SINT64, ctypes.byref(whole)):
            return whole.value
        if not self._cf.CFNumberIsFloatType(reference):  # of 128 bits
            return None
        fraction = ctypes.c_double()
        is_exact = self._cf.CFNumberGetValue(reference, _DOUBLE, ctypes.byref(fraction))
        return fraction.value if is_exact else None

    def _boolean(self, reference: int, _: int) -> bool:
        return bool(self._cf.CFBooleanGetValue(reference))

    def _data(self, reference: int, _: int) -> bytes | None:
        length = self._cf.CFDataGetLength(reference)
        if length > _LONGEST:
            return None
        return ctypes.string_at(self._cf.CFDataGetBytePtr(reference), length) if length else b""

    def _array(self, reference: int, depth: int) -> list[Any] | None:
        count = self._cf.CFArrayGetCount(reference)
        if count > _MAX_ITEMS:
            return None
        items = (self._cf.CFArrayGetValueAtIndex(reference, index) for index in range(count))
        return [self.to_python(item, depth + 1) for item in items]

    def _dictionary(self, reference: int, depth: int) -> dict[Any, Any] | None:
        count = self._cf.CFDictionaryGetCount(reference)
        if count > _MAX_ITEMS:
            return None
        keys, values = (ctypes.c_void_p * count)(), (ctypes.c_void_p * count)()
        self._cf.CFDictionaryGetKeysAndValues(reference, keys, values)
        names = (self.to_python(key, depth + 1) for key in keys)
        return {
            name: self.to_python(value, depth + 1)
            for name, value in zip(names, values, strict=True)
            if isinstance(name, str)
        }
