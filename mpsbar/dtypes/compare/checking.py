"""Checks each module alone: with the same rounded inputs on the device and, exactly, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from .alone import DivergedError, Result, run_alone
from .model_state import ModelState
from .recording import Call
from .target import ComputeTarget
from .text import mark
from .tolerance import RUNS, Difference, Noise, judge, measure
from .whole_run import describe, is_elsewhere


@dataclass(frozen=True)
class ModuleVerdict:
    """The result of checking one call of one module alone."""

    name: str
    type: str
    kind: str  # right, differs, NaN, Inf, raised, parameter, unchecked
    call: int = 0
    difference: Difference | None = None
    text: str | None = None
    largest_right: float | None = None  # the largest number it should have returned


class Checker:
    """Runs calls alone on one target."""

    def __init__(
        self, state: ModelState, target: ComputeTarget, reference: ComputeTarget, with_grads: bool
    ) -> None:
        self._state, self._target, self._with_grads = state, target, with_grads
        # The weights of autocast are float32: only what it computes with them is rounded.
        rounded = None if target.autocast else target.dtype
        self._exact = replace(reference, exact=True, rounded=rounded)

    def check_parameters(self) -> Iterator[ModuleVerdict]:
        """Find parameters with numbers too large for this dtype."""
        for module, name in self._state.names.items():
            for own, parameter in module._parameters.items():
                if parameter is None or not parameter.is_floating_point():
                    continue
                most = float(parameter.detach().abs().max()) if parameter.numel() else 0.0
                if torch.finfo(self._target.dtype).max < most < float("inf"):
                    full = f"{name}.{own}" if name else own
                    kind = type(module).__name__
                    yield ModuleVerdict(full, kind, "parameter", largest_right=most)

    def check(self, call: Call) -> ModuleVerdict:
        verdict = ModuleVerdict(call.name, type(call.module).__name__, "right", call.number)
        if not call.is_kept:
            return replace(verdict, kind="unchecked", text=mark("its inputs are too large to keep"))
        try:
            expected = self._run(call, self._exact)
        except Exception as error:  # noqa: BLE001 - it cannot be run alone, not even on the CPU
            return replace(verdict, kind="unchecked", text=describe(error))
        try:
            actual = self._run(call, self._target)
        except DivergedError as error:
            return replace(verdict, kind="unchecked", text=str(error))
        except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
            # If it worked in the whole run, the failure comes from running it alone; so it does
            # if it uses the weight of a module that has no stand-in now.
            is_ours = call.output_dtypes is not None or is_elsewhere(error)
            kind = "unchecked" if is_ours else "raised"
            return replace(verdict, kind=kind, text=describe(error))
        return self._judge(call, verdict, actual, expected)

    def _judge(
        self, call: Call, verdict: ModuleVerdict, actual: Result, expected: Result
    ) -> ModuleVerdict:
        """Return the first result that rounding does not explain, or `verdict` if there is none."""
        dtype = self._target.precision
        wanted = dict(expected)
        candidates = [
            (label, tensor)
            for label, tensor in actual
            if label in wanted and not measure(label, tensor, wanted[label], dtype).is_explained
        ]
        if not candidates:
            return verdict
        disturbed, noise = self._disturb(call)
        for label, tensor in candidates:
            runs = [run[label] for run in disturbed if label in run]
            difference = judge(label, tensor, wanted[label], runs, noise)
            if not difference.is_explained:
                kind = difference.nonfinite or "differs"
                most = (
                    float(wanted[label].abs().max()) if wanted[label].is_floating_point() else None
                )
                return replace(verdict, kind=kind, difference=difference, largest_right=most)
        return verdict

    def _disturb(self, call: Call) -> tuple[list[dict[str, torch.Tensor]], Noise]:
        """Repeat the exact run a few times with random errors in each operation."""
        runs = []
        for seed in range(RUNS):
            noise = Noise(self._target.precision, seed)
            with noise:
                runs.append(dict(self._run(call, self._exact)))
        return runs, noise

    def _run(self, call: Call, target: ComputeTarget) -> Result:
        return run_alone(call, self._state, target, with_grads=self._with_grads)
