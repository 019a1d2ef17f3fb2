"""Imports the backends of all frameworks at once: the agent's thread imports nothing later."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import backends
from .frameworks import FRAMEWORKS

if TYPE_CHECKING:
    # Never run. PyInstaller and its like put into a frozen program what import statements name.
    from .backends import cpu, cuda, mlx, mps  # noqa: F401

_NAMES = [name for framework in FRAMEWORKS for name in framework.backends]
# The CPU last: every torch has it, and it counts nothing.
_NAMES.sort(key=lambda name: name == "cpu")
BACKENDS: "tuple[Any, ...]" = tuple(import_module(f"{backends.__name__}.{name}") for name in _NAMES)
