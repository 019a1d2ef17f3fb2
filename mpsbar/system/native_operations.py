"""Reads the list of operations that MPS has, once, when somebody asks for it."""

from functools import cache

from mpsbar.core.torch_facts import NativeOperations, parse_native_operations
from mpsbar.system.paths import resource


@cache
def read_native_operations() -> NativeOperations:
    return parse_native_operations(resource("mps-operations.json").read_text(encoding="utf-8"))
