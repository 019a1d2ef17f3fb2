"""A Mac made of C: built by the system's compiler, filled by a test, read by the real macOS module."""

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64
from pathlib import Path
from typing import Any

from system.fakemac.psutil_double import FakePsutil, Program

from mpsbar.system.macos.native import Libraries

FOLDER = Path(__file__).parent
NOWHERE = -2
READ, READ_EXECUTE = 1, 5
STATUS, FOOTPRINT, PEAK, LIVES_FOR, IS_NEW_AFTER, STALLS, HIDDEN, VIRTUAL = range(8)
NAMESPACE, CODE = 8, 9  # of the exit reason
FLAGS = 10
_STRING, _NUMBER, _BOOLEAN, _DATA, _ARRAY, _DICTIONARY, _REAL, _DATE = range(8)
_PROTOTYPES = {
    "fake_process": (c_int, c_int, c_uint32, c_uint64, c_uint64),
    "fake_process_value": (c_int, c_int, c_int64),
    "fake_region": (c_int, c_uint64, c_uint64, c_uint32, c_char_p),
    "fake_sysctl": (c_char_p, c_char_p, c_size_t),
    "fake_swap": (c_uint64, c_uint64, c_uint64),
    "fake_template": (c_int, c_int64, c_char_p, c_size_t),
    "fake_append": (c_int, c_int),
    "fake_languages": (c_int,),
    "fake_entry": (c_uint64, c_int, c_char_p, c_char_p),
    "fake_property": (c_int, c_char_p, c_int),
}


def build(folder: Path) -> Path | None:
    """None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    target = folder / "fakemac.so"
    options = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
    ]
    sources = sorted(map(str, FOLDER.glob("*.c")))
    subprocess.run([compiler, *options, "-o", str(target), *sources], check=True)
    return target


class Unconvertible(str):
    """A string that CoreFoundation cannot turn into UTF-8."""

    __slots__ = ()


class Date:
    """A type of CoreFoundation that has no place in a registry."""


class FakeMac:
    def __init__(self, library: Path) -> None:
        self.path = str(library)
        self.c = ctypes.CDLL(self.path)
        for name, arguments in _PROTOTYPES.items():
            getattr(self.c, name).argtypes = arguments
        self.c.fake_first_fault.restype = c_char_p
        self.c.fake_reset()
        self.psutil = FakePsutil(self.c)

    @property
    def libraries(self) -> Libraries:
        return Libraries(self.path, self.path, self.path, ioreg="/nowhere/ioreg")

    @property
    def faults(self) -> str:
        """The first thing a caller did wrong."""
        return self.c.fake_first_fault().decode()

    @property
    def held(self) -> tuple[int, int]:
        """CoreFoundation objects and Mach ports that someone has yet to release."""
        return self.c.fake_live_objects(), self.c.fake_open_ports()

    def add_process(
        self,
        pid: int,
        parent: int = 1,
        start: tuple[int, int] = (1_790_000_000, 250_000),
        uid: int | None = None,
        **values: int,
    ) -> None:
        self.c.fake_process(pid, parent, os.geteuid() if uid is None else uid, *start)
        for name, value in values.items():
            self.c.fake_process_value(pid, globals()[name.upper()], value)

    def set_process(self, pid: int, what: int, value: int) -> None:
        self.c.fake_process_value(pid, what, value)

    def set_program(
        self, pid: int, command: Any = (), variables: Any = (), executable: Any = b""
    ) -> None:
        """How psutil says that it was started, in bytes; an exception is raised instead."""
        self.psutil.programs[pid] = Program(command, variables, executable)

    def add_region(
        self, pid: int, address: int, size: int, path: str | bytes, protection: int = READ_EXECUTE
    ) -> None:
        name = path.encode() if isinstance(path, str) else path
        self.c.fake_region(pid, address, size, protection, name)

    def set_sysctl(self, name: str, value: int | str | bytes, size: int = 4) -> None:
        if isinstance(value, int):
            value = struct.pack("=I" if size == 4 else "=Q", value)
        elif isinstance(value, str):
            value = value.encode() + b"\0"
        self.c.fake_sysctl(name.encode(), value, len(value))

    def set_memory(self) -> None:
        """What every Mac says of its memory."""
        self.set_sysctl("hw.memsize", 8 << 30, size=8)
        for name in ("page_free_count", "page_pageable_external_count", "page_purgeable_count"):
            self.set_sysctl(f"vm.{name}", 1000)
        self.set_sysctl("vm.pagesize", 16384)
        self.set_sysctl("kern.memorystatus_vm_pressure_level", 1)
        self.c.fake_swap(1 << 30, 1 << 29, 1 << 29)

    def add_entry(
        self, properties: Mapping[str, Any], parent: int = NOWHERE, service: str = ""
    ) -> int:
        """A registry entry from its properties, children included, as ioreg would print them."""
        properties = dict(properties)
        children = properties.pop("IORegistryEntryChildren", [])
        number = self.c.fake_entry(
            properties.pop("IORegistryEntryID", 0x100000626),
            parent,
            properties.pop("IOObjectClass").encode(),
            service.encode(),
        )
        for key, value in properties.items():
            self.set_property(number, key, value)
        for child in children:
            self.add_entry(child, number)
        return number

    def add_accelerator(self, properties: Mapping[str, Any]) -> int:
        return self.add_entry(properties, service="IOAccelerator")

    def set_languages(self, languages: list[str]) -> None:
        """Those of System Settings."""
        self.c.fake_languages(self._template(languages))

    def set_property(self, entry: int, key: str, value: Any) -> None:
        self.c.fake_property(entry, key.encode(), self._template(value))

    def _template(self, value: Any) -> int:
        kind, number, content = _describe(value)
        template = self.c.fake_template(kind, number, content, len(content))
        items = [part for pair in value.items() for part in pair] if kind == _DICTIONARY else value
        for item in items if kind in (_ARRAY, _DICTIONARY) else ():
            self.c.fake_append(template, self._template(item))
        return template


def _describe(value: Any) -> tuple[int, int, bytes]:
    if isinstance(value, str):
        return _STRING, isinstance(value, Unconvertible), value.encode()
    if isinstance(value, bytes):
        return _DATA, 0, value
    if isinstance(value, bool):
        return _BOOLEAN, value, b""
    if isinstance(value, int):
        return _NUMBER, _signed(value), b""
    if isinstance(value, float):
        return _REAL, struct.unpack("=q", struct.pack("=d", value))[0], b""
    kinds = {dict: _DICTIONARY, list: _ARRAY, Date: _DATE}
    return kinds[type(value)], 0, b""


def _signed(value: int) -> int:
    """The kernel's numbers are unsigned; CoreFoundation takes their 64 bits for signed."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
