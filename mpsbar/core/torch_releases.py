"""What is known of torch's releases on a Mac: which to use, for which Python and chip. Pure.

Which macOS and dtypes go with a release is in `agent/mps_support`, for a worker asks it too.

Read from the wheels and the sources; nothing here was measured on a Mac.
"""

import re
from dataclasses import dataclass

Release = tuple[int, int]  # (2, 13)

RECOMMENDED: Release = (2, 1)
CURRENT: Release = (2, 13)  # older than this, a newer one is worth an advice
# matmul with a reduction dimension above 32768 reads past it on M1 and M2 (pytorch #193487).
LONG_MATMUL: tuple[Release, Release] = ((2, 7), (2, 13))
LAST_FOR_INTEL = "2.2.2"


@dataclass(frozen=True, slots=True)
class _Newest:
    version: str
    macos: tuple[int, int]
    python: tuple[int, int]


_NEWEST = (_Newest("2.15.0", (15, 0), (3, 11)), _Newest("2.14.1", (14, 0), (3, 10)))


def parse_release(version: str | None) -> Release | None:
    """2.13.0+cpu, 2.10.0.dev20251008, 2.4.0a0+git1a2b -> their first two numbers."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", version or "")
    return (int(match[1]), int(match[2])) if match else None


def parse_numbers(version: str | None) -> tuple[int, ...] | None:
    """26.3.2 -> (26, 3, 2); None for anything else."""
    match = re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", version or "")
    return tuple(map(int, match[0].split("."))) if match else None


def newest_for(
    macos: tuple[int, ...] | None, python: tuple[int, ...] | None, architecture: str | None
) -> str | None:
    """The newest release known that installs here and has MPS; None: not known."""
    if macos is None or python is None or architecture != "arm64":
        return None
    fits = (n.version for n in _NEWEST if macos >= n.macos and python >= n.python)
    return next(fits, None)


def chip_generation(chip: str | None) -> int | None:
    """Apple M2 Pro -> 2; None for any other chip."""
    match = re.match(r"Apple M(\d{1,2})\b", chip or "")
    return int(match[1]) if match else None
