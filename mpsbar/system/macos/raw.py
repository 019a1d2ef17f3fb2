"""Reads, for bug reports, what macOS answers before we parse it: sysctl, and sizes of structs.

A Mac on which our layouts are wrong is recognised by this.
"""

import ctypes
import os
from typing import Any

from mpsbar.system.macos import processes, sysctl
from mpsbar.system.macos.native import SYSTEM, Libraries, load

_MORE_NAMES = (
    "hw.model", "hw.nperflevels", "hw.pagesize", "hw.perflevel0.name", "hw.perflevel0.logicalcpu",
    "hw.perflevel1.name", "hw.perflevel1.logicalcpu", "machdep.cpu.brand_string",
    "kern.osproductversion", "kern.osrelease", "kern.hv_vmm_present", "iogpu.wired_limit_mb",
    "debug.iogpu.wired_limit",
)  # fmt: skip
# What we read of a process, with the size that we expect of the kernel.
_FLAVORS = {
    "bsdinfo": (processes.BSDINFO_FLAVOR, processes.BSDINFO.size),
    "taskinfo": (processes.TASKINFO_FLAVOR, processes.TASKINFO.size),
    "region": (processes.REGION_FLAVOR, processes.REGION.size),
}
_ROOM = 4096  # more than any of these structs has


def read_raw(libraries: Libraries | None = None) -> dict[str, Any]:
    system = load((libraries or Libraries()).system, SYSTEM)
    names = [name for names in sysctl.NAMES.values() for name in names]
    return {
        "sysctl": {name: _read_sysctl(system, name) for name in (*names, *_MORE_NAMES)},
        "sizes": {
            name: {"expected": expected, "kernel": _measure(system, flavor)}
            for name, (flavor, expected) in _FLAVORS.items()
        },
    }


def _read_sysctl(system: ctypes.CDLL, name: str) -> str:
    """The bytes as hexadecimal digits, or the error."""
    try:
        return sysctl.read_value(system, name).hex()
    except OSError as error:
        return f"errno {error.errno}"


def _measure(system: ctypes.CDLL, flavor: int) -> int:
    """How many bytes the kernel writes about this process where there is room for more."""
    buffer = ctypes.create_string_buffer(_ROOM)
    return int(system.proc_pidinfo(os.getpid(), flavor, 0, buffer, _ROOM))
