"""Measures how far rounding may move a result: each operation is given small random errors.

An operation in a dtype with unit roundoff eps may err by eps of its inputs and its result, and
one that sums n numbers by about eps * sqrt(n) of their usual size. A module is run again on the
CPU with random errors of STEPS times that size in each operation: what it differs by is explained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

STEPS = 4.0  # roundings allowed in each operation
_SUM_SHARE = 0.25  # a sum's own error, in units of eps * sqrt(n) * usual size
_MARGIN = 2.0  # the largest of a few random runs is not the largest there could be
RUNS = 6
# Errors below this are not examined further: two roundings of the result itself.
_PLAIN = 2.0

_PRODUCTS = {"mm": 0, "addmm": 1, "bmm": 0, "baddbmm": 1, "linear": 0, "_addmm_activation": 1}
# Operations that only move, choose or compare numbers make no error of their own.
_EXACT = (
    "index", "gather", "embedding", "cat", "stack", "clone", "copy", "slice", "select", "where",
    "masked", "max_pool", "relu", "threshold", "clamp", "max", "min", "amax", "amin", "topk",
    "sort", "empty", "zeros", "ones", "full", "arange", "scalar_tensor", "fill", "zero", "neg",
    "abs", "sign", "roll", "flip", "pad", "repeat", "constant", "eye", "tril", "triu", "lift",
    "detach", "alias", "new_", "_to_copy", "scatter", "pixel_", "upsample_nearest", "rand",
    "bernoulli",
)  # fmt: skip
_JUMPS = {
    "argmax", "argmin", "topk", "sort", "round", "floor", "ceil", "trunc", "sign", "gt", "lt",
    "ge", "le", "eq", "ne", "max", "min", "bucketize", "searchsorted", "multinomial", "remainder",
    "fmod", "floor_divide", "argsort", "unique", "_unique2", "nonzero", "heaviside",
}  # fmt: skip


class Noise(TorchDispatchMode):  # type: ignore[no-untyped-call,unused-ignore]
    """Adds random errors to every operation; notes the largest sum and whether results jump."""

    def __init__(self, dtype: torch.dtype, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.eps = torch.finfo(dtype).eps * STEPS
        self.lowest = torch.finfo(dtype).tiny * torch.finfo(dtype).eps * STEPS
        self.generator = torch.Generator().manual_seed(seed)
        self.longest_sum, self.jumps = 1, False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.partition("::")[2]
        self.jumps = self.jumps or name.rstrip("_") in _JUMPS
        if name.startswith(_EXACT) or func.is_view:
            return func(*args, **(kwargs or {}))
        if not func._schema.is_mutable:
            args = [self._disturb_input(part) for part in args]
        result = func(*args, **(kwargs or {}))
        length = count_summed(name, args, result)
        self.longest_sum = max(self.longest_sum, length)
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                self._disturb(tensor, length)
        return result

    def _disturb_input(self, value: Any) -> Any:
        """Add errors to an input too: kernels differ in how they treat numbers that cancel out."""
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            return [self._disturb_input(part) for part in value]
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        made = value.clone()
        self._disturb(made, 1)
        return made

    def _disturb(self, tensor: torch.Tensor, length: int) -> None:
        if tensor.numel() == 0 or tensor.device.type != "cpu":
            return
        usual = tensor.detach().square().mean().sqrt() if length > 1 else 0.0
        reach = tensor.detach().abs() + _SUM_SHARE * math.sqrt(length) * usual
        drawn = torch.rand(tensor.shape, generator=self.generator, dtype=tensor.dtype) * 2 - 1
        tensor.detach().add_(torch.nan_to_num(drawn * (reach * self.eps + self.lowest), 0, 0, 0))


def count_summed(name: str, args: Any, result: Any) -> int:
    """Counts the numbers that each number of the result is a sum of."""
    tensors = [part for part in args if isinstance(part, torch.Tensor)]
    if not tensors:
        return 1
    if name in _PRODUCTS:
        return max(1, int(tensors[_PRODUCTS[name]].shape[-1]))
    if name.startswith(
        ("convolution", "mkldnn_convolution", "thnn_conv", "slow_conv", "_slow_conv")
    ):
        weight = tensors[1] if len(tensors) > 1 else tensors[0]
        return int(max(1, weight[0].numel(), weight.shape[0] * weight[0, 0].numel()))
    if name.startswith(("_softmax", "_log_softmax", "cumsum", "logcumsumexp", "cumprod")):
        return int(max(1, *tensors[0].shape, 1))
    if any(word in name for word in ("norm", "attention", "backward", "rnn", "lstm", "gru")):
        return max(
            1, *(tensor.shape[-1] if tensor.dim() else 1 for tensor in tensors), _batch(tensors)
        )
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    if isinstance(first, torch.Tensor) and first.numel():
        return max(1, max(tensor.numel() for tensor in tensors) // first.numel())
    return 1


def _batch(tensors: Sequence[torch.Tensor]) -> int:
    largest = max(tensors, key=lambda tensor: tensor.numel())
    return largest.numel() // max(1, largest.shape[-1] if largest.dim() else 1)


@dataclass(frozen=True)
class Difference:
    """How far one result is from what it should be. Errors are in units of its usual size."""

    label: str  # "output", "gradient of weight"
    largest: float
    typical: float
    tolerance: float | None  # the largest error that rounding explains; None: plainly within it
    share: float  # of its numbers, those beyond that
    is_explained: bool
    nonfinite: str | None = None  # "NaN" or "Inf", where there should be a number
    longest_sum: int = 1


def measure(label: str, got: torch.Tensor, right: torch.Tensor, dtype: torch.dtype) -> Difference:
    """Compare without noise; explained only if the error is clearly within rounding."""
    got, right = got.detach().cpu(), right.detach().cpu()
    if got.shape != right.shape:
        return Difference(label, math.inf, math.inf, None, 1.0, is_explained=False)
    if not right.is_floating_point() and not right.is_complex():
        share = float((got != right).double().mean()) if right.numel() else 0.0
        return Difference(label, share, share, None, share, is_explained=share == 0)
    error, usual, missing = find_errors(got, right)
    if missing:
        return Difference(label, math.inf, math.inf, None, 1.0, False, missing)
    if error.numel() == 0:
        return Difference(label, 0.0, 0.0, None, 0.0, is_explained=True)
    size = torch.nan_to_num(_wide(right).abs(), 0, 0, 0)
    plain = bool((error <= _PLAIN * torch.finfo(dtype).eps * (size + usual)).all())
    largest, typical = float(error.max()) / usual, float(error.median()) / usual
    return Difference(label, largest, typical, None, 0.0 if plain else 1.0, is_explained=plain)


def find_errors(got: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, float, str | None]:
    """Returns all errors, their usual size, and "NaN" or "Inf" where a number should be."""
    got, right = _wide(got), _wide(right)
    missing = torch.isfinite(right) & ~torch.isfinite(got)
    if bool(missing.any()):
        return right.abs(), 1.0, "NaN" if bool(torch.isnan(got[missing]).any()) else "Inf"
    # An infinity or NaN that should be there counts as right, wherever the sign agrees.
    same = (got == right) | (torch.isnan(got) & torch.isnan(right)) | ~torch.isfinite(right)
    error = torch.where(same, torch.zeros_like(right.abs()), (got - right).abs())
    size = torch.nan_to_num(right.abs(), 0, 0, 0)
    usual = float(size.square().mean().sqrt()) if size.numel() else 0.0
    return torch.nan_to_num(error), max(usual, 1e-30), None


def judge(
    label: str,
    got: torch.Tensor,
    right: torch.Tensor,
    disturbed: Sequence[torch.Tensor],
    noise: Noise,
    *,
    jumps: bool | None = None,
) -> Difference:
    """Returns how far a result is off, and whether rounding explains that: the runs that were given
    random errors moved as far. Where results jump, any number may move as far as the farthest.
    """
    got, right = got.detach().cpu(), right.detach().cpu()
    if not right.is_floating_point() and not right.is_complex():
        return _judge_whole(label, got, right, disturbed, noise)
    error, usual, missing = find_errors(got, right)
    if missing or error.numel() == 0:
        return measure(label, got, right, torch.float32)
    moved = torch.zeros_like(error)
    for run in disturbed:
        off, _, is_missing = find_errors(run.detach(), right)
        moved = torch.full_like(moved, math.inf) if is_missing else torch.maximum(moved, off)
    floor = (
        moved.max() if (noise.jumps if jumps is None else jumps) else moved.square().mean().sqrt()
    )
    allowed = _MARGIN * torch.maximum(moved, floor) + noise.lowest
    beyond = error > allowed
    worst = int((error - allowed).argmax())
    return Difference(
        label, float(error.max()) / usual, float(error.median()) / usual,
        float(allowed.flatten()[worst]) / usual, float(beyond.double().mean()),
        not bool(beyond.any()), longest_sum=noise.longest_sum,
    )  # fmt: skip


def _judge_whole(
    label: str,
    got: torch.Tensor,
    right: torch.Tensor,
    disturbed: Sequence[torch.Tensor],
    noise: Noise,
) -> Difference:
    """Compare integers and bools: wrong where every disturbed run agrees with the right value."""
    unsure = torch.zeros_like(right, dtype=torch.bool)
    for run in disturbed:
        unsure |= run != right if run.shape == right.shape else True
    wrong = (got != right) & ~unsure
    share = float(wrong.double().mean()) if right.numel() else 0.0
    return Difference(
        label, share, share, 0.0, share, not bool(wrong.any()), longest_sum=noise.longest_sum
    )


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
