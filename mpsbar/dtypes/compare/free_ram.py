"""Reads how much memory this computer has left, in a Python that may have only torch."""

from __future__ import annotations

import ctypes
import os
from typing import Any

# Counts of pages, and the size of one.
_FREE_PAGES = (
    "vm.page_free_count",
    "vm.page_pageable_external_count",
    "vm.page_purgeable_count",
    "vm.pagesize",
)


def read_free_ram() -> int | None:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # macOS
        return read_free_pages(ctypes.CDLL(None))


def read_free_pages(system: Any) -> int | None:
    """Bytes that are free, files in memory or purgeable; as in system/macos/sysctl, which needs
    psutil and is not at hand in the user's Python."""
    values = []
    for name in _FREE_PAGES:
        value = ctypes.c_uint64()
        size = ctypes.c_size_t(ctypes.sizeof(value))
        address = (ctypes.byref(value), ctypes.byref(size))
        if system.sysctlbyname(name.encode(), *address, None, ctypes.c_size_t(0)):
            return None
        values.append(value.value)  # of 4 or 8 bytes: the lower ones, the rest stays 0
    *pages, page_size = values
    return sum(pages) * page_size
