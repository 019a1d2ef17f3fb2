"""Reads the list of operations that MPS has, once, when somebody asks for it.

A file of its own, because features may import only few of this folder (tests/import_map.py).
"""

from functools import cache

from mpsbar.core.torch_facts import NativeOperations, parse_native_operations
from mpsbar.system.paths import resource


@cache
def read_native_operations() -> NativeOperations:
    return parse_native_operations(resource("mps-operations.json").read_text(encoding="utf-8"))
