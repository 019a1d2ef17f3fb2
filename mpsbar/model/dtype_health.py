"""What the last dtype probe means for what runs here, in short: all that a status needs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DtypeHealth:
    summary: dict[str, Any] | None = None  # as schema 1 has it; None: not probed, or no longer so
    surprise: str = ""  # the headline, if there is something to be told
    failed: Mapping[str, int] = field(default_factory=dict)  # in how many operations, by dtype


NOT_PROBED = DtypeHealth()
