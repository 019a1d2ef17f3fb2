"""Imports the modules of `backends` that the list of frameworks names, all at once.

All at once, because the agent's thread may import nothing later. And here, not in `backends`
itself: `mpsbar.get_device()` needs one function of that folder, and would wait for all of them.
"""

from importlib import import_module
from typing import Any

from . import backends
from .frameworks import ALLOCATORS

_NAMES = [allocator.name for allocator in ALLOCATORS]
# The CPU last: every torch has it, and it counts nothing.
_NAMES.sort(key=lambda name: name == "cpu")
BACKENDS: "tuple[Any, ...]" = tuple(import_module(f"{backends.__name__}.{name}") for name in _NAMES)
