"""Finds the tensors in whatever a model takes or returns: tuples, dicts, dataclasses, caches."""

from __future__ import annotations

import copy
import dataclasses
import types
from collections.abc import Mapping, MutableMapping
from typing import Any, Callable

import torch
from torch.nn.utils.rnn import PackedSequence

_DEEPEST = 8
# Objects that hold no tensors of the call, or must not be copied.
_OPAQUE = (
    str, bytes, int, float, complex, bool, type(None), type, torch.dtype, torch.device, torch.Size,
    torch.nn.Module, torch.Generator, types.ModuleType, types.FunctionType, types.MethodType,
)  # fmt: skip

Convert = Callable[[torch.Tensor], Any]


def map_tensors(value: Any, convert: Convert) -> Any:
    """Returns a copy with every tensor converted; a part without tensors is used as it is."""
    return _map(value, convert, {}, 0)


def list_tensors(value: Any) -> list[torch.Tensor]:
    """Lists every tensor in `value` in a fixed order; one that occurs twice is listed twice."""
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(value, note)
    return found


def _map(value: Any, convert: Convert, done: dict[int, Any], depth: int) -> Any:
    if isinstance(value, torch.Tensor):
        return convert(value)
    if isinstance(value, _OPAQUE) or depth > _DEEPEST:
        return value
    if id(value) in done:
        return done[id(value)]
    made = _map_container(value, lambda part: _map(part, convert, done, depth + 1))
    done[id(value)] = made
    return made


def _map_container(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, PackedSequence):  # its batch sizes stay on the CPU
        return PackedSequence(
            convert(value.data), value.batch_sizes, convert(value.sorted_indices),
            convert(value.unsorted_indices),
        )  # fmt: skip
    if isinstance(value, tuple):
        parts = [convert(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else _rebuild(value, parts)
    if isinstance(value, (list, set, frozenset)):
        return _rebuild(value, [convert(part) for part in value])
    if isinstance(value, MutableMapping):
        return _map_mapping(value, convert)
    if isinstance(value, Mapping):
        return {key: convert(part) for key, part in value.items()}
    return _map_object(value, convert)


def _rebuild(value: Any, parts: list[Any]) -> Any:
    """Build the same type again if it takes a list, as torch.return_types do."""
    try:
        return type(value)(parts)
    except TypeError:
        return tuple(parts) if isinstance(value, tuple) else parts


def _map_mapping(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Converts the items of a mapping; ModelOutput of transformers has them as attributes too."""
    made = copy.copy(value)
    for key in list(value):
        made[key] = convert(value[key])
    return made


def _map_object(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Maps a dataclass, a cache of keys and values, or any plain object with attributes."""
    fields = getattr(value, "__dict__", None)
    if dataclasses.is_dataclass(value) and fields is None:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if not fields:
        return value
    converted = {name: convert(part) for name, part in fields.items()}
    if all(converted[name] is part for name, part in fields.items()):
        return value
    made = copy.copy(value)
    for name, part in converted.items():
        object.__setattr__(made, name, part)
    return made


def clone_tensor(
    tensor: torch.Tensor, device: str | None = None, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Copies values and strides, so that a kernel does the same with the copy.

    The dtype is changed where the tensor is: a device without float64 cannot even receive it.
    """
    source = tensor.detach().to(dtype or tensor.dtype)
    if source.layout is not torch.strided or source.is_quantized or _overlaps(source):
        return source.clone() if device is None else source.to(device, copy=True)
    made = torch.empty_strided(
        source.size(), source.stride(), dtype=source.dtype, device=device or source.device
    )
    return made.copy_(source)


def _overlaps(tensor: torch.Tensor) -> bool:
    """Returns whether two elements share memory, as in an expanded tensor."""
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1 and stride < reach:
            return True
        reach += stride * max(0, size - 1)
    return False
