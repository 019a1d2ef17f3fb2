"""What a person may ask of a worker, and how it ended: data; the words are made in views."""

from dataclasses import dataclass
from typing import Literal

FreeState = Literal["done", "busy", "gone", "silent", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Free:
    """Give the caches of one process back."""

    pid: int


@dataclass(frozen=True, slots=True)
class Freed:
    """How a Free ended. `freed` is measured, before minus after."""

    pid: int
    name: str
    state: FreeState
    freed: int | None = None
    seconds: float | None = None
    pinned: int | None = None  # still cached afterwards: live tensors share its heaps
    reason: str | None = None  # a code: thread_computing, main_computing, …
    where: str | None = None  # the place the reason is about
    error: str | None = None
