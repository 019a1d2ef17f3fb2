"""Imports the backends of all frameworks at once: the agent's thread imports nothing later."""

from importlib import import_module
from typing import Any

from . import backends
from .frameworks import ALLOCATORS

_NAMES = [allocator.name for allocator in ALLOCATORS]
# The CPU last: every torch has it, and it counts nothing.
_NAMES.sort(key=lambda name: name == "cpu")
BACKENDS: "tuple[Any, ...]" = tuple(import_module(f"{backends.__name__}.{name}") for name in _NAMES)
