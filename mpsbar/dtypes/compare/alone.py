"""Runs one module alone with recorded inputs; its submodules return their recorded outputs."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from .model_state import ModelState
from .recording import Call, Dtypes
from .same_random import SameRandom
from .structures import list_tensors, map_tensors
from .target import ComputeTarget
from .text import mark

Result = list[tuple[str, torch.Tensor]]  # label and tensor: outputs, then gradients


class DivergedError(Exception):
    """The module did not call its submodules as it did in the reference run."""


def run_alone(
    call: Call, state: ModelState, target: ComputeTarget, *, with_grads: bool = False
) -> Result:
    """Return the outputs of the call on `target`, and its gradients if asked for.

    The module gets only its own parameters there; if that fails, those of its submodules too.
    """
    subtree = [module for module in call.module.modules() if module in state.names]
    try:
        with state.substitute(target, [call.module]):
            return _run(call, target, with_grads)
    except (RuntimeError, TypeError, ValueError):
        if len(subtree) == 1:
            raise
    with state.substitute(target, subtree):
        return _run(call, target, with_grads)


def _run(call: Call, target: ComputeTarget, with_grads: bool) -> Result:
    leaves: list[tuple[str, torch.Tensor]] = []
    passed: list[tuple[str, torch.Tensor]] = []  # what the module hands to its submodules
    noted = leaves if with_grads else None
    args, kwargs = _bring(call.inputs, call.input_dtypes, target, noted)
    torch.set_rng_state(call.random_before)
    stubs, grads = _stubs(call, target, noted, passed), torch.set_grad_enabled(with_grads)
    with grads, stubs, SameRandom(), target.computing():
        output = call.module(*args, **kwargs)
    tensors = list_tensors(output)
    result = [(_label("output", n, tensors), tensor) for n, tensor in enumerate(tensors)]
    results = [(label, tensor.detach()) for label, tensor in passed + result]
    if with_grads:
        results += _find_gradients(call, result + passed, leaves, target)
    return results


def _label(word: str, number: int, many: list[Any]) -> str:
    return word if len(many) == 1 else f"{word} {number}"


def _bring(
    value: Any, dtypes: Dtypes | None, target: ComputeTarget, leaves: Any, word: str = "input"
) -> Any:
    """Convert recorded values; add to `leaves` those that gradients are computed for."""
    wanted = iter(dtypes or [])

    def bring(tensor: torch.Tensor) -> torch.Tensor:
        dtype = next(wanted, None)
        floating = dtype is not None and dtype.is_floating_point
        made = target.convert_saturated(tensor, dtype if floating else None)
        if leaves is not None and made.is_floating_point():
            number = f" {len(leaves)}" if word == "input" else f", tensor {len(leaves)}"
            leaves.append((f"gradient of {word}{number}", made.requires_grad_()))
            # A module may write into its input, which autograd allows for no leaf or its view.
            return made.clone()
        return made

    return map_tensors(value, bring)


@contextlib.contextmanager
def _stubs(call: Call, target: ComputeTarget, leaves: Any, passed: Result) -> Iterator[None]:
    """Replaces each submodule's forward by a stub, which returns what the submodule returned in the
    reference run, draws as many random numbers, and adds to `passed` what it is given.
    """
    waiting: dict[torch.nn.Module, deque[Call]] = {}
    for child in call.children:
        waiting.setdefault(child.module, deque()).append(child)
    if call.module in waiting:
        raise DivergedError(mark("it calls itself"))
    for module, calls in waiting.items():
        vars(module)["forward"] = _answer_from(calls, target, leaves, passed)
    try:
        yield
    finally:
        for module in waiting:
            vars(module).pop("forward", None)


def _answer_from(calls: deque[Call], target: ComputeTarget, leaves: Any, passed: Result) -> Any:
    def forward(*args: Any, **kwargs: Any) -> Any:
        if not calls or not calls[0].is_kept:
            raise DivergedError(mark("a submodule was called more often than before"))
        child = calls.popleft()
        for number, tensor in enumerate(list_tensors((args, kwargs))):
            label = f"input {number} of {child.name}, call {child.number + 1}"
            # Connected to autograd, but safe from writes: the stub's own answer is another tensor.
            passed.append((label, tensor.clone()))
        assert child.random_after is not None
        torch.set_rng_state(child.random_after)
        word = f"the output of {child.name}"
        return _bring(child.output, child.output_dtypes, target, leaves, word)

    return forward


def _find_gradients(call: Call, results: Result, leaves: Result, target: ComputeTarget) -> Result:
    """Compute the gradients of inputs, submodules' outputs and own parameters.

    The outputs get the gradient they had in the reference run. What was passed to submodules has
    none there: it gets a random one, the same on every device.
    """
    pairs = []
    for number, (_, tensor) in enumerate(results):
        if tensor.requires_grad and tensor.is_floating_point():
            grad = call.grads.get(number)
            if grad is None or grad.shape != tensor.shape:
                grad = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(number))
            pairs.append((tensor, target.convert_saturated(grad, tensor.dtype).to(tensor.dtype)))
    own = [(f"gradient of {name}", p) for name, p in call.module._parameters.items()
           if p is not None and p.requires_grad]  # fmt: skip
    asked = [*leaves, *own]
    if not pairs or not asked:
        return []
    grads = torch.autograd.grad(
        [tensor for tensor, _ in pairs], [tensor for _, tensor in asked],
        [grad for _, grad in pairs], allow_unused=True,
    )  # fmt: skip
    return [(label, grad) for (label, _), grad in zip(asked, grads) if grad is not None]
