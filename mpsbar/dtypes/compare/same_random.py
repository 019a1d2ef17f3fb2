"""The same random numbers on every device: drawn on the CPU, then carried over.

Without this a dropout or a noise layer would differ on the device although nothing is wrong.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - everybody's name for it
from torch.overrides import TorchFunctionMode

_DRAWN_ON_CPU = {
    torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.bernoulli,
    torch.multinomial, torch.poisson,
}  # fmt: skip
_LIKE = {torch.rand_like: torch.rand, torch.randn_like: torch.randn}
_IN_PLACE = {
    torch.Tensor.uniform_, torch.Tensor.normal_, torch.Tensor.bernoulli_, torch.Tensor.random_,
    torch.Tensor.exponential_, torch.Tensor.cauchy_, torch.Tensor.log_normal_,
    torch.Tensor.geometric_,
}  # fmt: skip
_ON_TENSORS = {torch.Tensor.bernoulli, torch.Tensor.multinomial}
_DROPOUTS = {F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, torch.dropout}


class SameRandom(TorchFunctionMode):  # type: ignore[misc,unused-ignore]
    """While active, random functions draw float32 numbers on the CPU's generator."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in _DROPOUTS:
            return _drop(func, *args, **kwargs)
        if func is F.scaled_dot_product_attention:
            return func(*args[:4], **_without_dropout(args, kwargs))
        if func in _LIKE:
            return _draw_like(_LIKE[func], args[0], kwargs)
        if func in _IN_PLACE:
            return _fill(func, args[0], args[1:], kwargs)
        if func in _DRAWN_ON_CPU or func in _ON_TENSORS:
            return _draw(func, args, kwargs)
        return func(*args, **kwargs)


def _drop(
    func: Any,
    input: torch.Tensor,  # noqa: A002 - torch's own name
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> torch.Tensor:
    """Drops single numbers for plain dropout, and whole channels for the other kinds."""
    if not training or p == 0:
        return input
    shape = input.shape
    if func not in (F.dropout, torch.dropout, F.alpha_dropout):
        shape = torch.Size([*shape[:2], *(1 for _ in shape[2:])])
    kept = (torch.rand(shape) >= p).to(input.device, input.dtype)
    result = input * kept / (1 - p) if p < 1 else input * 0
    return input.copy_(result) if inplace else result


def _without_dropout(args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Turn off attention's own dropout: its kernels draw random numbers that can't be replaced."""
    names = ("dropout_p", "is_causal")
    return {**dict(zip(names, args[4:])), **kwargs, "dropout_p": 0.0}


def _draw_like(func: Any, like: torch.Tensor, kwargs: dict[str, Any]) -> torch.Tensor:
    drawn = func(like.shape)
    device, dtype = kwargs.get("device") or like.device, kwargs.get("dtype") or like.dtype
    target: torch.Tensor = drawn.to(device, dtype)
    return target.requires_grad_(kwargs.get("requires_grad", False))


def _fill(func: Any, tensor: torch.Tensor, rest: Any, kwargs: dict[str, Any]) -> torch.Tensor:
    wide = torch.float32 if tensor.is_floating_point() else tensor.dtype
    drawn = torch.empty(tensor.shape, dtype=wide)
    func(drawn, *_to_cpu(rest), **dict(_on_cpu(kwargs), generator=None))
    with torch.no_grad():
        return tensor.copy_(drawn)


def _draw(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    tensors = [part for part in args if isinstance(part, torch.Tensor)]
    if device is None and tensors:
        device = tensors[0].device
    if dtype is None and tensors and tensors[0].is_floating_point() and func not in _INDICES:
        dtype = tensors[0].dtype
    if func in (torch.randint, torch.randperm) and dtype is not None:
        kwargs["dtype"] = dtype
    kwargs.pop("generator", None)
    drawn = func(*_to_cpu(args), **_on_cpu(kwargs))
    return drawn.to(device or torch.get_default_device(), dtype or drawn.dtype)


_INDICES = {torch.multinomial, torch.Tensor.multinomial}


def _to_cpu(args: Any) -> list[Any]:
    return [_float_on_cpu(part) if isinstance(part, torch.Tensor) else part for part in args]


def _on_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(kwargs, _to_cpu(kwargs.values())))


def _float_on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    moved = tensor.detach().cpu()
    return moved.float() if moved.is_floating_point() else moved
