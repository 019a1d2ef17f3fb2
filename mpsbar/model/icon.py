"""What the app saw of its own icon, for `mpsbar doctor`: macOS itself says nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IconSight:
    time: float  # seconds since the epoch
    doubt: str | None  # a code; None: it is where it should be
    details: str  # one line of what macOS said
