"""Planted faults: wrong offsets, flavors, types and forgotten releases must not pass the checks."""

import ctypes
import struct
from contextlib import contextmanager

import pytest
from system.macos import checks

from mpsbar.system.macos import iokit, native, processes, sysctl


@contextmanager
def _never_released(_, reference):
    yield reference


@contextmanager
def _released_twice(self, reference):
    try:
        yield reference
    finally:
        if reference:
            self._cf.CFRelease(reference)
            self._cf.CFRelease(reference)


def _never_released_entries(self, iterator, keep=False):
    while entry := self._iokit.IOIteratorNext(iterator) if iterator else 0:
        yield entry
    self._iokit.IOObjectRelease(iterator)


def _never_released_iterators(self, iterator, keep=False):
    while entry := self._iokit.IOIteratorNext(iterator) if iterator else 0:
        yield entry
        if not keep:
            self._iokit.IOObjectRelease(entry)


CUT = ctypes.c_int
WRONG_VALUES = [
    # resident_size for phys_footprint, logical_writes for the peak, an older version
    (processes, "RUSAGE", struct.Struct("=64xQ168xQ48x"), checks.check_footprint),
    (processes, "RUSAGE", struct.Struct("=72xQ152xQ56x"), checks.check_footprint),
    (processes, "RUSAGE_FLAVOR", 3, checks.check_footprint),
    (processes, "BSDINFO_FLAGS", struct.Struct("=4xI128x"), checks.check_footprint),
    (processes, "SUPPRESSED", 0x400000, checks.check_footprint),
    # xstatus for status, 4 and 8 bytes off; task info
    (processes, "BSDINFO", struct.Struct("=8xI108xQQ"), checks.check_ended),
    (processes, "BSDINFO", struct.Struct("=4xI108xQQ4x"), checks.check_processes),
    (processes, "BSDINFO", struct.Struct("=4xI104xQQ8x"), checks.check_details),
    (processes, "BSDINFO_FLAVOR", 4, checks.check_processes),
    # resident for virtual size; who it is instead
    (processes, "TASKINFO", struct.Struct("=8xQ80x"), checks.check_size),
    (processes, "TASKINFO_FLAVOR", 3, checks.check_size),
    (processes, "UID_ONLY", 5, checks.check_processes),
    # with the page walk; by path only; max_protection; address, size and path off
    (processes, "REGION_FLAVOR", 8, checks.check_libraries),
    (processes, "REGION_FLAVOR", 31, checks.check_libraries),
    (processes, "REGION", struct.Struct("=4xI72xQQ152x1024s"), checks.check_libraries),
    (processes, "REGION", struct.Struct("=I72xQQ156x1024s"), checks.check_libraries),
    (processes, "REGION", struct.Struct("=I76xQQ144x1024s8x"), checks.check_libraries),
    (processes, "REGION", struct.Struct("=I76xQQ152x512s"), checks.check_libraries),
    (sysctl, "SWAP", struct.Struct("=8xQ16x"), checks.check_swap),
    (iokit, "_UTF8", 0x0600, checks.check_gpu),
    (iokit, "_SINT64", 3, checks.check_gpu),
    (iokit, "_DOUBLE", 12, checks.check_fraction),
    (iokit, "_DOUBLE", 4, checks.check_fraction),
    (iokit.Foundation, "owned", _never_released, checks.check_gpu),
    (iokit.Foundation, "owned", _never_released, checks.check_clients),
    (iokit.Foundation, "owned", _released_twice, checks.check_gpu),
    (iokit.Foundation, "owned", _released_twice, checks.check_clients),
    (iokit.Registry, "_each", _never_released_entries, checks.check_clients),
    (iokit.Registry, "_each", _never_released_iterators, checks.check_clients),
    (iokit.Registry, "_each", _never_released_iterators, checks.check_gpu),
]
WRONG_TYPES = [
    # The address cut to 32 bits.
    (native.SYSTEM, "proc_pidinfo", 3, ctypes.c_uint32, checks.check_libraries),
    (native.CORE_FOUNDATION, "CFRelease", 1, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFGetTypeID", 1, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFNumberGetValue", 1, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFNumberIsFloatType", 1, CUT, checks.check_fraction),
    (native.CORE_FOUNDATION, "CFStringGetLength", 1, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFStringGetCString", 1, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFStringCreateWithCString", 0, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFDictionaryGetCount", 1, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFDictionaryGetKeysAndValues", 1, CUT, checks.check_gpu),
    (native.CORE_FOUNDATION, "CFArrayGetCount", 1, CUT, checks.check_clients),
    (native.CORE_FOUNDATION, "CFArrayGetValueAtIndex", 0, CUT, checks.check_clients),
    (native.CORE_FOUNDATION, "CFArrayGetValueAtIndex", 1, CUT, checks.check_clients),
    (native.IOKIT, "IOServiceMatching", 0, CUT, checks.check_gpu),
    (native.IOKIT, "IOServiceGetMatchingServices", 2, CUT, checks.check_gpu),
    (native.IOKIT, "IORegistryEntryCreateCFProperty", 0, CUT, checks.check_gpu),
    (native.IOKIT, "IORegistryEntryCreateCFProperty", 2, CUT, checks.check_gpu),
    (native.IOKIT, "IORegistryEntryGetRegistryEntryID", 1, ctypes.c_uint16, checks.check_clients),
    (native.IOKIT, "IOIteratorNext", 0, ctypes.c_uint16, checks.check_gpu),
    (native.IOKIT, "IOObjectRelease", 1, ctypes.c_uint16, checks.check_clients),
]


def _name(part):
    return part.format if isinstance(part, struct.Struct) else getattr(part, "__name__", str(part))


@pytest.mark.parametrize("fault", WRONG_VALUES, ids=lambda row: "-".join(map(_name, row)))
def test_a_wrong_value_is_caught(careless_mac, make_computer, monkeypatch, fault):
    owner, name, value, check = fault
    monkeypatch.setattr(owner, name, value)
    with pytest.raises((AssertionError, OSError)):
        check(careless_mac, make_computer)


@pytest.mark.parametrize("fault", WRONG_TYPES, ids=lambda row: f"{row[1]}-{row[2]}")
def test_a_wrong_type_is_caught(careless_mac, make_computer, monkeypatch, fault):
    table, name, place, kind, check = fault
    prototype = list(table[name])
    prototype[place] = kind
    monkeypatch.setitem(table, name, tuple(prototype))
    with pytest.raises((AssertionError, OSError, ctypes.ArgumentError)):
        check(careless_mac, make_computer)


@pytest.mark.parametrize(
    "check", sorted({row[3] for row in WRONG_VALUES}, key=lambda c: c.__name__)
)
def test_without_a_fault_the_same_checks_pass(mac, make_computer, check):
    check(mac, make_computer)


def test_a_missing_function_is_an_error_of_the_system(library):
    with pytest.raises(OSError, match="has no CFNothing"):
        native.load(str(library), {"CFNothing": (None,)})


def test_a_missing_library_is_an_error_of_the_system(make_computer):
    with pytest.raises(OSError, match="libSystem"):
        make_computer(libraries=native.Libraries())
