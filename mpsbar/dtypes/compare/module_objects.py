"""Tensors and containers in a module's plain attributes: lists, dicts, tuples, caches, objects."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

CONTAINERS = (dict, list, set, deque)
_DEEPEST = 5
_MAX_OBJECTS = 5000  # of one module
_STANDARD = frozenset(
    getattr(sys, "stdlib_module_names", ("builtins", "threading", "logging", "queue"))
)
# Hooks and tables of torch's own: what is in them is restored by other means.
_TABLES = {"_parameters", "_buffers", "_modules"}


class ModuleObjects:
    """The tensors that a module refers to, by name, and its containers with a copy of each."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.contents: list[tuple[str, Any, Any]] = []
        self.is_complete = True
        self._seen: set[int] = set()
        for name, value in vars(module).items():
            if name in _TABLES:
                self.contents.append((name, value, value.copy()))
            else:
                self._add(name, value, 0)

    def _add(self, name: str, value: Any, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            self.tensors.setdefault(name, value)
            return
        if isinstance(value, torch.nn.Module) or id(value) in self._seen:
            return
        parts = _find_container(value)
        if parts is None:
            return
        if depth > _DEEPEST or len(self._seen) >= _MAX_OBJECTS:
            self.is_complete = False
            return
        self._seen.add(id(value))
        if isinstance(parts, CONTAINERS):
            self.contents.append((name, parts, parts.copy()))
        for part_name, part in _list_parts(name, parts, is_object=parts is not value):
            self._add(part_name, part, depth + 1)


def put_back_content(container: Any, content: Any) -> None:
    """Give a container its first objects again; nothing is done where it has them."""
    if _differs(container, content):
        container.clear()
        (container.extend if hasattr(container, "extend") else container.update)(content)


def _find_container(value: Any) -> Any:
    """Returns a container itself, or the attributes of an object that is not Python's own."""
    if isinstance(value, (*CONTAINERS, tuple)):
        return value
    if isinstance(value, type) or type(value).__module__.partition(".")[0] in _STANDARD:
        return None
    attributes = getattr(value, "__dict__", None)
    return attributes if isinstance(attributes, dict) else None


def _list_parts(name: str, parts: Any, *, is_object: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(parts, dict):
        for key, part in list(parts.items()):
            yield (f"{name}.{key}" if is_object else f"{name}[{str(key)[:40]!r}]"), part
    else:
        for number, part in enumerate(list(parts)):
            yield f"{name}[{number}]", part


def _differs(value: Any, content: Any) -> bool:
    """Returns whether a container has other objects than before; equal tensors may be others."""
    if len(value) != len(content):
        return True
    if isinstance(value, dict):
        return any(key not in content or value[key] is not content[key] for key in value)
    if isinstance(value, set):
        return {id(part) for part in value} != {id(part) for part in content}
    return any(a is not b for a, b in zip(value, content))
