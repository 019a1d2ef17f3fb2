"""This Mac: what the kernel says under a name (sysctl), and psutil about its cores and battery.

The command sysctl is no help: it prints swap as 9216,00M in some languages.
"""

import ctypes
import os
import re
import struct
import sys

import psutil

from mpsbar.core.machine import Machine, Pressure
from mpsbar.system.macos.native import system_error

# What every Mac has, by the field it fills: without one of these something is wrong.
NAMES: dict[str, tuple[str, ...]] = {
    "memory_total": ("hw.memsize",),
    "memory_available": (
        "vm.page_free_count",
        "vm.page_pageable_external_count",
        "vm.page_purgeable_count",
        "vm.pagesize",
    ),
    "swap_used": ("vm.swapusage",),
    "pressure": ("kern.memorystatus_vm_pressure_level",),
}
# The battery only slows the refresh down. psutil 7.2 keeps Python's lock while the power daemon
# answers, so it is asked seldom.
BATTERY_INTERVAL = 30.0
_LONGEST = 256
# struct xsw_usage: total, avail, used, then the page size and whether it is encrypted.
SWAP = struct.Struct("=16xQ8x")
BOOT = struct.Struct("=qi4x")
# NOTE_MEMORYSTATUS_PRESSURE_*: 2 stands for "urgent" too.
_PRESSURES: dict[int, Pressure] = {1: "normal", 2: "warning", 4: "critical"}
_MAX_KINDS_OF_CORES = 8
# What the kernel reports to older programs instead of 11 and later, and of 26 and later.
_COMPATIBLE = re.compile(r"(10\.16|16)(\.|$)")


def read_value(system: ctypes.CDLL, name: str) -> bytes:
    """Raises OSError: FileNotFoundError where the kernel does not know the name."""
    buffer = ctypes.create_string_buffer(_LONGEST)
    size = ctypes.c_size_t(_LONGEST)
    if system.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0):
        raise system_error(name)
    return buffer.raw[: size.value]


def explain(system: ctypes.CDLL, names: tuple[str, ...]) -> str:
    """Why a value that needs all of these names could not be read."""
    for name in names:
        try:
            read_value(system, name)
        except OSError as error:
            return f"{name}: {os.strerror(error.errno or 0)}"
    return f"{', '.join(names)}: not understood"


def read_number(system: ctypes.CDLL, name: str) -> int | None:
    try:
        return parse_number(read_value(system, name))
    except OSError:
        return None


def read_text(system: ctypes.CDLL, name: str) -> str | None:
    try:
        return parse_text(read_value(system, name))
    except OSError:
        return None


def read_fixed(system: ctypes.CDLL) -> Machine:
    """Reads what does not change until the computer is started again."""
    version = parse_version(
        read_text(system, "kern.osproductversion"), read_text(system, "kern.osrelease")
    )
    model = read_text(system, "hw.model")
    return Machine(
        os=f"macOS {'.'.join(map(str, version))}" if version else None,
        os_version=version,
        model=model,
        chip=read_text(system, "machdep.cpu.brand_string"),
        cores=psutil.cpu_count(),
        core_kinds=_read_core_kinds(system),
        memory_total=read_number(system, *NAMES["memory_total"]),
        is_virtual=parse_virtual(read_number(system, "kern.hv_vmm_present"), model),
    )


def read_memory_available(system: ctypes.CDLL) -> int | None:
    """Activity Monitor's total without "used": free, files in memory and purgeable.

    In vm_stat these are "Pages free" (without the speculative ones, which are files too),
    "File-backed pages" and "Pages purgeable". A few hundred pages in per-core queues are missing
    from the external count. vm.pagesize: hw.pagesize is the caller's, 4096 under Rosetta.

    psutil's "available" is another number: it takes every inactive page for free, also those that
    hold a program's data and would have to be compressed first.
    """
    *names, page = NAMES["memory_available"]
    pages = [read_number(system, name) for name in names]
    size = read_number(system, page)
    counted = [count for count in pages if count is not None]
    return sum(counted) * size if size is not None and len(counted) == len(pages) else None


def read_swap_used(system: ctypes.CDLL) -> int | None:
    """Returns the bytes of swap in use, None if unknown.

    psutil 7.2 fails on macOS 27: it reads the pages swapped in and out too (psutil #2853).
    """
    try:
        return parse_swap_used(read_value(system, *NAMES["swap_used"]))
    except OSError:
        return None


def read_pressure(system: ctypes.CDLL) -> Pressure | None:
    level = read_number(system, *NAMES["pressure"])
    return None if level is None else _PRESSURES.get(level)


def read_on_battery() -> bool:
    """Returns whether the Mac runs on its battery, or on a UPS.

    Raises RuntimeError where the sources of power cannot be read.
    """
    battery = psutil.sensors_battery()
    return battery is not None and not battery.power_plugged  # None: a Mac without a battery


def read_wired_limit(system: ctypes.CDLL) -> int | None:
    """Bytes; 0 is the system's default. macOS 13 has it under another name, in bytes."""
    megabytes = read_number(system, "iogpu.wired_limit_mb")
    if megabytes is not None:
        return megabytes << 20
    return read_number(system, "debug.iogpu.wired_limit")


def read_boot(system: ctypes.CDLL) -> float | None:
    """When this computer was started, in seconds since the epoch."""
    try:
        return parse_boot(read_value(system, "kern.boottime"))
    except OSError:
        return None


def parse_number(value: bytes) -> int | None:
    """A 32-bit or a 64-bit integer, by its size."""
    return int.from_bytes(value, sys.byteorder) if len(value) in (4, 8) else None


def parse_text(value: bytes) -> str | None:
    return value.split(b"\0")[0].decode(errors="replace").strip() or None


def parse_swap_used(value: bytes) -> int | None:
    return int(SWAP.unpack(value)[0]) if len(value) == SWAP.size else None


def parse_boot(value: bytes) -> float | None:
    """struct timeval: seconds in 64 bits, microseconds in 32, then 4 bytes of padding."""
    if len(value) != BOOT.size:
        return None
    seconds, microseconds = BOOT.unpack(value)
    return float(seconds + microseconds / 1e6) if 0 < seconds < 1 << 36 else None


def parse_version(product: str | None, darwin: str | None) -> tuple[int, ...] | None:
    """The version of macOS; only its first number where the kernel disguises it.

    A Python built with an SDK before 26 reads 16.0. Darwin is never disguised: 24 is macOS 15,
    25 is macOS 26.
    """
    if product is None or not re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", product, re.ASCII):
        return None
    if not _COMPATIBLE.match(product):
        return tuple(map(int, product.split(".")))
    match = re.match(r"(\d{2})\.", darwin or "", re.ASCII)
    if match is None:
        return None
    major = int(match[1])
    return (major + 1 if major >= 25 else major - 9,)


def parse_virtual(hypervisor: int | None, model: str | None) -> bool | None:
    if model is not None and model.startswith("VirtualMac"):
        return True
    return None if hypervisor is None else hypervisor != 0


def _read_core_kinds(system: ctypes.CDLL) -> tuple[tuple[str, int], ...]:
    """The kinds of cores, the fastest first; Intel's have none."""
    kinds = []
    for level in range(min(read_number(system, "hw.nperflevels") or 0, _MAX_KINDS_OF_CORES)):
        name = read_text(system, f"hw.perflevel{level}.name")
        count = read_number(system, f"hw.perflevel{level}.logicalcpu")
        if name is not None and count is not None:
            kinds.append((name, count))
    return tuple(kinds)
