"""Whether a value that somebody else wrote is a number within bounds. Pure."""

from typing import TypeGuard


def is_whole(value: object, below: float) -> TypeGuard[int]:
    """Returns whether it is a whole number from 0 on; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def is_number(value: object, below: float) -> TypeGuard[int | float]:
    """Returns whether it is a number from 0 on, whole or not; NaN and infinity are none."""
    return (isinstance(value, float) and 0 <= value < below) or is_whole(value, below)
