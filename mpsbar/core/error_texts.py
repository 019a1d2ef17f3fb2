"""What the texts of errors say: out of memory and at which sizes, or an error of Metal. Pure."""

import re
from typing import Literal

from mpsbar.core.endings import RaisedError

MetalError = Literal[
    "metal_timeout", "interactivity", "submissions_ignored", "gpu_fault", "gpu_reset"
]

_SIZE = r"([\d.]{1,12}) ?([kKMGT]?i?)B\b"
_MPS_MEMORY = re.compile(
    rf"MPS backend out of memory \(MPS allocated: {_SIZE}, other allocations: {_SIZE}, "
    rf"max allowed: {_SIZE}\)"
)
_TRIED = re.compile(
    rf"(?i:(?:tried|trying) to allocate|invalid buffer size:|unable to allocate"
    rf"|out of memory allocating) {_SIZE}"
)
_BYTES = re.compile(
    r"(?i:(?:attempting|unable|tried|trying) to allocate|out of memory allocating)"
    r" (\d{1,18}) bytes"
)
_MAX_BYTES = re.compile(r"maximum allowed buffer size of (\d{1,18}) bytes")
_MEMORY_TEXTS = re.compile(
    r"(?i:out of memory)|Invalid buffer size|ErrorOutOfMemory|\(00000008:|not enough memory"
    r"|can't allocate memory"
    r"|\[(?:metal::)?malloc(?:_or_wait)?\] (?:Unable|Attempting|Resource limit)"
    r"|Unable to allocate [\d.]+ [kMGT]iB"
)
_MEMORY_TYPES = ("MemoryError", "OutOfMemoryError", "ArrayMemoryError")
# kIOGPUCommandBufferCallbackError… (kIOAccel… on Intel Macs): what Metal says of a command buffer.
_METAL_TEXTS: tuple[tuple[str, MetalError], ...] = (
    ("ErrorImpactingInteractivity", "interactivity"),
    ("Impacting Interactivity", "interactivity"),
    ("ErrorTimeout", "metal_timeout"),
    ("ErrorHang", "metal_timeout"),
    ("Caused GPU Timeout", "metal_timeout"),
    ("Caused GPU Hang", "metal_timeout"),
    ("ErrorSubmissionsIgnored", "submissions_ignored"),
    ("ErrorInnocentVictim", "gpu_reset"),
    ("Discarded (victim of GPU error/recovery)", "gpu_reset"),
    ("ErrorInvalidResource", "gpu_fault"),
    ("ErrorPageFault", "gpu_fault"),
    ("GPU Address Fault", "gpu_fault"),
)
_UNITS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def is_memory_error(error: RaisedError) -> bool:
    name = error.type.rpartition(".")[2].lstrip("_")
    return name in _MEMORY_TYPES or _MEMORY_TEXTS.search(error.text) is not None


def read_sizes(text: str) -> dict[str, int | None]:
    """Returns the bytes that the text names: allocated, other, limit, tried; `at`: those in use."""
    sizes: dict[str, int | None] = {}
    match = _MPS_MEMORY.search(text)
    if match is not None:
        allocated, other, limit = (_bytes(*match.group(n, n + 1)) for n in (1, 3, 5))
        sizes = {"allocated": allocated, "other": other, "limit": limit}
        if allocated is not None and other is not None:
            sizes["at"] = allocated + other
    elif most := _MAX_BYTES.search(text):
        sizes["limit"] = int(most[1])
    if exact := _BYTES.search(text):
        sizes["tried"] = int(exact[1])
    elif tried := _TRIED.search(text):
        sizes["tried"] = _bytes(*tried.groups())
    return sizes


def _bytes(number: str, unit: str) -> int | None:
    """Returns the bytes of 32.00 MiB; before 2.9 torch wrote MB and meant the same."""
    try:
        return int(float(number) * 1024 ** _UNITS[unit.rstrip("i")])
    except (ValueError, KeyError):
        return None


def find_metal_error(text: str) -> MetalError | None:
    return next((code for part, code in _METAL_TEXTS if part in text), None)
