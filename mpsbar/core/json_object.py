"""Parses JSON that somebody else wrote. Pure."""

import json
from typing import Any


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """Returns the one object that the text is, and None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
