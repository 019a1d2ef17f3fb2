"""Checks values that somebody else wrote: another program, a system report, another host. Pure."""

import json
from typing import Any, TypeGuard

from mpsbar.agent.secrets import mask
from mpsbar.core.naming import printable


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """Returns the one JSON object that the text is, and None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def clean_text(value: Any, most: int = 300, *, masked: bool = True) -> str:
    """Returns the text on one line, cut, with passwords and keys masked; "" for anything else.

    `masked=False` is for what can hold none and is long, as the names of libraries: it takes 25 µs.
    """
    if not isinstance(value, str):
        return ""
    text = printable(value, most)
    return mask(text) if masked else text


def is_whole(value: object, below: float) -> TypeGuard[int]:
    """Returns whether it is a whole number from 0 on; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def is_number(value: object, below: float) -> TypeGuard[int | float]:
    """Returns whether it is a number from 0 on, whole or not; NaN and infinity are none."""
    return (isinstance(value, float) and 0 <= value < below) or is_whole(value, below)
