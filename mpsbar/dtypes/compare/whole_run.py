"""Runs the whole model on the device once: what raised, what fell back, where NaN began."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from .recording import Call
from .structures import list_tensors
from .tolerance import find_errors

_FALLBACK = re.compile(r"fall(ing|s)? ?back.*CPU", re.IGNORECASE | re.DOTALL)
_OPERATOR = re.compile(r"aten::(\w+)")
_LONGEST_TEXT = 600


@dataclass
class WholeRun:
    """What one run on the device showed."""

    raised: tuple[str, str] | None = None  # module and torch's sentence
    not_run: tuple[str, str] | None = None  # the same, where our own stand-ins were the cause
    nonfinite: tuple[str, str] | None = None  # module and NaN or Inf
    fallbacks: dict[tuple[str, str], int] = field(default_factory=dict)  # by module and operation
    errors: dict[str, float] = field(default_factory=dict)  # by module, the largest of its calls
    output: Any = None
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    is_out_of_memory: bool = False


class RunHooks:
    """Hooks for the run on the device: compares each call with that of the reference run."""

    def __init__(self, names: dict[torch.nn.Module, str], calls: list[Call]) -> None:
        self.seen = WholeRun()
        self.path: list[str] = []
        self._names = names
        self._calls = {(call.module, call.number): call for call in calls}
        self._counts: dict[torch.nn.Module, int] = {}
        self._open: list[Call | None] = []

    def before(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        number = self._counts.get(module, 0)
        self._counts[module] = number + 1
        call = self._calls.get((module, number))
        if call is not None:
            call.input_dtypes = [tensor.dtype for tensor in list_tensors((args, kwargs))]
        self._open.append(call)
        self.path.append(self._names[module])

    def after(self, _module: Any, _args: Any, _kwargs: Any, output: Any) -> None:
        self.path.pop()
        call = self._open.pop()
        if call is None or not call.is_kept:
            return
        tensors = list_tensors(output)
        call.output_dtypes = [tensor.dtype for tensor in tensors]
        for got, right in zip(tensors, list_tensors(call.output)):
            self._compare(call.name, got.detach(), right)

    def _compare(self, name: str, got: torch.Tensor, right: torch.Tensor) -> None:
        if got.shape != right.shape or not right.is_floating_point() or not right.numel():
            return
        error, usual, missing = find_errors(got.cpu(), right)
        if missing and self.seen.nonfinite is None:
            self.seen.nonfinite = (name, missing)
        if not missing:
            largest = float(error.max()) / usual
            self.seen.errors[name] = max(largest, self.seen.errors.get(name, 0.0))

    def note_warning(self, text: str) -> None:
        if _FALLBACK.search(text):
            match = _OPERATOR.search(text)
            key = (self.path[-1] if self.path else "", match[1] if match else shorten(text))
            self.seen.fallbacks[key] = self.seen.fallbacks.get(key, 0) + 1


@contextlib.contextmanager
def catching_fallbacks(run_hooks: RunHooks) -> Iterator[None]:
    """Catch every warning of a CPU fallback with its module; torch itself shows only the first."""
    was_always = torch.is_warn_always_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: run_hooks.note_warning(str(message))
        torch.set_warn_always(True)
        try:
            yield
        finally:
            torch.set_warn_always(was_always)


def describe(error: BaseException) -> str:
    """Returns torch's own message, without the place in its source."""
    text = str(error).partition(" (Triggered internally")[0].partition("\nException raised")[0]
    return shorten(f"{type(error).__name__}: {text}")


def shorten(text: str) -> str:
    return text[:_LONGEST_TEXT]


def is_out_of_memory(error: BaseException) -> bool:
    words = r"out of memory|not enough memory|can't allocate"
    return re.search(words, str(error), re.IGNORECASE) is not None


def is_elsewhere(error: BaseException) -> bool:
    """Returns whether tensors of two devices or dtypes met: a module had no stand-ins, then."""
    words = r"all tensors to be on the same device|to have the same dtype|same dtype, but got"
    return re.search(words, str(error)) is not None
