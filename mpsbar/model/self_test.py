"""One check of mpsbar by itself, and how it ended."""

from dataclasses import dataclass
from typing import Literal

# skip: it cannot be made here, and the detail says why; look: only a person can see it.
CheckState = Literal["pass", "fail", "skip", "look"]


@dataclass(frozen=True, slots=True)
class Check:
    key: str
    state: CheckState
    detail: str = ""  # a value, or a code for views
