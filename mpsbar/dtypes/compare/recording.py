"""Records one run of the model on the CPU: what each module was given and what it returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

from .structures import clone_tensor, list_tensors, map_tensors

Dtypes = list[torch.dtype]


@dataclass(eq=False)
class Call:
    """One call of one module in the reference run."""

    module: torch.nn.Module
    name: str
    number: int  # how many calls of this module came before
    random_before: torch.Tensor
    inputs: Any = None  # (args, kwargs); None: too large to keep
    output: Any = None
    random_after: torch.Tensor | None = None
    children: list[Call] = field(default_factory=list)
    grads: dict[int, torch.Tensor] = field(default_factory=dict)  # by number of the output tensor
    input_dtypes: Dtypes | None = None  # as the whole run on the device had them
    output_dtypes: Dtypes | None = None

    @property
    def is_kept(self) -> bool:
        return self.random_after is not None and self.inputs is not None


class CallRecorder:
    """Hooks on every module; `calls` are in the order in which they returned."""

    def __init__(
        self, names: dict[torch.nn.Module, str], most_bytes: int, wants_grads: bool
    ) -> None:
        self.calls: list[Call] = []
        self._names, self._left, self._wants_grads = names, most_bytes, wants_grads
        self._stack: list[Call] = []
        self._counts: dict[torch.nn.Module, int] = {}
        self._copies: dict[tuple[Any, ...], tuple[torch.Tensor, torch.Tensor]] = {}

    def before(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        number = self._counts.get(module, 0)
        self._counts[module] = number + 1
        call = Call(module, self._names[module], number, torch.get_rng_state())
        call.inputs = self._keep((args, kwargs))
        if self._stack:
            self._stack[-1].children.append(call)
        self._stack.append(call)

    def after(self, _module: Any, _args: Any, _kwargs: Any, output: Any) -> None:
        call = self._stack.pop()
        call.output, call.random_after = self._keep(output), torch.get_rng_state()
        if call.output is None:
            call.inputs = None
        if self._wants_grads:
            for number, tensor in enumerate(list_tensors(output)):
                if tensor.requires_grad and tensor.is_floating_point():
                    tensor.register_hook(_keep_grad(call, number))  # type: ignore[no-untyped-call]
        self.calls.append(call)

    def _keep(self, value: Any) -> Any:
        """Copies a value, as later modules may write into it; returns None if it is too large."""
        if self._left <= 0:
            return None
        return map_tensors(value, self._copy)

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copies a tensor once: the output of one module is most often the input of the next."""
        key = (tensor.data_ptr(), tensor._version, tensor.shape, tensor.stride(), tensor.dtype)
        kept = self._copies.get(key)
        if kept is None:
            copied = clone_tensor(tensor)
            self._left -= copied.numel() * copied.element_size()
            kept = self._copies[key] = (tensor.detach(), copied)  # kept: its address stays its own
        return kept[1]


def _keep_grad(call: Call, number: int) -> Callable[[torch.Tensor], None]:
    def keep(grad: torch.Tensor) -> None:
        call.grads[number] = clone_tensor(grad)

    return keep


class Hooks:
    """before() and after() around every call of every module, for the length of a `with`."""

    def __init__(self, modules: list[torch.nn.Module], before: Any, after: Any) -> None:
        self._modules, self._before, self._after = modules, before, after
        self._handles: list[Any] = []

    def __enter__(self) -> None:
        for module in self._modules:
            if isinstance(module, torch.jit.ScriptModule):
                continue  # takes no hooks of Python inside
            before = module.register_forward_pre_hook(self._before, with_kwargs=True)
            after = module.register_forward_hook(self._after, with_kwargs=True)
            self._handles += [before, after]

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def choose_calls(calls: list[Call], most: int) -> Iterator[Call]:
    """Chooses the first few calls of each module and its last: loops call a layer very often."""
    totals: dict[torch.nn.Module, int] = {}
    for call in calls:
        totals[call.module] = max(totals.get(call.module, 0), call.number + 1)
    for call in calls:
        if call.number < most - 1 or call.number == totals[call.module] - 1:
            yield call
