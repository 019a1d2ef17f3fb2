"""Where and in which dtype a run computes, and how a value gets there."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch

from .structures import clone_tensor, map_tensors

_COMPLEX = {torch.float64: torch.complex128}


@dataclass(frozen=True)
class ComputeTarget:
    """A device and a dtype; `autocast` names the dtype that torch.autocast computes in.

    An `exact` one computes in its own dtype with numbers that were rounded as they would have
    been elsewhere: parameters to `rounded`, values to the dtype they had there.
    """

    device: str
    dtype: torch.dtype
    autocast: torch.dtype | None = None
    exact: bool = False
    rounded: torch.dtype | None = None

    @property
    def precision(self) -> torch.dtype:
        """The coarsest dtype that this target computes in."""
        return self.autocast or self.dtype

    def convert(self, tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Returns a new tensor here; whole numbers keep their dtype, `dtype` overrides ours."""
        source = tensor.detach()
        if source.is_complex():
            return clone_tensor(source, self.device, _COMPLEX.get(self.dtype, torch.complex64))
        if not source.is_floating_point():
            return clone_tensor(source, self.device)
        rounded = _round(source, dtype or self.rounded) if self.exact else source
        chosen = self.dtype if self.exact else (dtype or self.dtype)
        return clone_tensor(rounded, self.device, chosen)

    def convert_saturated(
        self, tensor: torch.Tensor, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """Converts, but a finite number stays finite: a mask of float32's lowest number must
        not become an infinity only because we carried it over."""
        wanted = dtype or self.rounded or self.dtype
        if tensor.is_floating_point() and torch.finfo(wanted).max < torch.finfo(tensor.dtype).max:
            most = torch.finfo(wanted).max
            low = tensor.detach().clamp(-most, most)
            tensor = torch.where(torch.isfinite(tensor), low, tensor)
        return self.convert(tensor, dtype)

    def convert_all(self, value: Any) -> Any:
        return map_tensors(value, self.convert)

    def computing(self) -> Any:
        """Returns the context to compute in: torch.autocast, or none."""
        if self.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=self.autocast)


def _round(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    return tensor if dtype is None else tensor.to(dtype).to(tensor.dtype)


def build_targets(names: Any, device: str) -> dict[str, ComputeTarget]:
    """Builds targets by name: float32, float16, bfloat16, autocast, autocast:bfloat16."""
    kind = torch.device(device).type
    targets = {}
    for name in names:
        word, _, chosen = str(name).replace("torch.", "").partition(":")
        if word == "autocast":
            usual = torch.bfloat16 if kind == "cpu" else torch.float16
            dtype = parse_dtype(chosen) if chosen else usual
            label = f"autocast {str(dtype).replace('torch.', '')}"
            targets[label] = ComputeTarget(device, torch.float32, autocast=dtype)
        else:
            targets[word] = ComputeTarget(device, parse_dtype(word))
    return targets


def parse_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"not a floating-point dtype of torch: {name!r}")
    return dtype


def find_device() -> str:
    """Returns the first that is available of cuda, mps and cpu."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def synchronize(device: str) -> None:
    kind = torch.device(device).type
    if kind != "cpu":
        getattr(torch, kind).synchronize()
