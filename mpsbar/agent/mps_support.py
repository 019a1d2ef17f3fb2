"""What MPS can do, by torch release: on which macOS, with which dtypes. Pure; the only such table.

Read from torch's wheels and sources; nothing here was measured on a Mac.
"""

from typing import Optional

FIRST_RELEASE = (1, 12)  # with MPS at all
# From which release on MPS asks for which macOS. The texts of 2.5 and 2.9 still name an older one.
_LOWEST_MACOS = (
    ((2, 15), (15, 0)),
    ((2, 9), (14, 0)),
    ((2, 5), (13, 0)),
    (FIRST_RELEASE, (12, 3)),
)
# The first release that has a dtype on MPS. One that is not here is not known to work there.
DTYPE_SINCE = {
    "float32": FIRST_RELEASE,
    "float16": FIRST_RELEASE,
    "bool": FIRST_RELEASE,
    "uint8": FIRST_RELEASE,
    "int8": FIRST_RELEASE,
    "int16": FIRST_RELEASE,
    "int32": FIRST_RELEASE,
    "int64": FIRST_RELEASE,
    "complex64": FIRST_RELEASE,
    "bfloat16": (2, 3),
    "uint16": (2, 9),
    "uint32": (2, 9),
    "uint64": (2, 9),
    "complex32": (2, 12),
    "float8_e4m3fn": (2, 15),
}
_BFLOAT16_MACOS = (14, 0)


def lowest_macos(release: "tuple[int, int]") -> "Optional[tuple[int, int]]":
    """Returns None if this release has no MPS at all."""
    return next((macos for since, macos in _LOWEST_MACOS if release >= since), None)


def has_dtype(dtype: str, release: "tuple[int, int]") -> bool:
    """Returns whether this release has the dtype on MPS, given a macOS that is new enough."""
    since = DTYPE_SINCE.get(dtype)
    return since is not None and release >= since


def dtype_macos(dtype: str, release: "tuple[int, int]") -> "Optional[tuple[int, int]]":
    """Returns the macOS that the dtype needs where MPS itself works on an older one; None if it
    needs nothing more.
    """
    lowest = lowest_macos(release)
    is_newer = dtype == "bfloat16" and (lowest is None or lowest < _BFLOAT16_MACOS)
    return _BFLOAT16_MACOS if is_newer else None
