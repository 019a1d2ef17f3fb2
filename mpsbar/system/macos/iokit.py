"""The accelerator in IOKit's registry: found once and kept, its statistics, who opened it."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from mpsbar.system.macos import accelerator
from mpsbar.system.macos.accelerator import Properties
from mpsbar.system.macos.core_foundation import Foundation
from mpsbar.system.macos.native import IOKIT, handle, load

# A virtual Mac's never has any statistics, an external one can be unplugged.
SEARCH_AGAIN = 30.0
_CLASS_SIZE = 128  # io_name_t


class Registry:
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
        """None where there is none. Raises OSError while IOKit fails."""
        statistics = self._read_statistics()
        if statistics is None:
            self._search()
            statistics = self._read_statistics()
        if self._entry is None:
            return None
        return {**self._fixed, accelerator.STATISTICS: statistics}

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
        with self._foundation.owned(self._foundation.create_string(accelerator.USAGE)) as usage:
            children = [
                {**client, accelerator.USAGE: self._property(entry, usage)}
                for entry in self._each(iterator.value)
                if (client := self._identify(entry, openers)) is not None
            ]
        return {**self._fixed, accelerator.CHILDREN: children}

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
        """Keep the best accelerator, let go of the others and of the one before."""
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
        found = [(entry, self._describe(entry)) for entry in entries]
        best = accelerator.choose([properties for _, properties in found])
        for entry, properties in found:
            if properties is best:
                self._entry, self._fixed = entry, properties
            else:
                self._iokit.IOObjectRelease(entry)

    def _describe(self, entry: int) -> Properties:
        keys = (*accelerator.FIXED, accelerator.STATISTICS)
        properties = {key: self._read_property(entry, key) for key in keys}
        return {accelerator.CLASS: self._class(entry), **properties}

    def _identify(self, entry: int, openers: dict[int, Any]) -> Properties | None:
        """Its number and who opened it, read once: neither ever changes. None for other classes."""
        number = ctypes.c_uint64()
        if self._iokit.IORegistryEntryGetRegistryEntryID(entry, ctypes.byref(number)):
            return None
        opener = openers.get(number.value) or self._read_opener(entry)
        if opener is None:
            return None
        self._openers[number.value] = opener
        return {
            accelerator.CLASS: accelerator.CLIENT_CLASS,
            accelerator.ENTRY_ID: number.value,
            accelerator.CREATOR: opener,
        }

    def _read_opener(self, entry: int) -> Any:
        """None also while it is being opened: the kernel hangs it in first, then writes by whom."""
        if self._class(entry) != accelerator.CLIENT_CLASS:
            return None
        return self._read_property(entry, accelerator.CREATOR)

    def _read_statistics(self) -> Any:
        if self._entry is None:
            return None
        return self._read_property(self._entry, accelerator.STATISTICS)

    def _read_property(self, entry: int, name: str) -> Any:
        """One property: all of them would bring 40 kB of legend along."""
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
        """What an iterator gives, each released after its turn, unless it is to be kept."""
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
