"""What is compared: a call of a model, or a training step that returns a loss."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .structures import list_tensors


class Task:
    """A model with its inputs, or a step with its arguments, among which the models are."""

    def __init__(self, subject: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.subject, self.args, self.kwargs = _unwrap(subject), args, kwargs
        self.is_training = not isinstance(self.subject, torch.nn.Module)
        if not callable(self.subject):
            raise TypeError("compare() needs a torch.nn.Module, or a function that returns a loss")
        self.roots = _find_roots(self.subject, args, kwargs)
        if not self.roots:
            raise ValueError("no model was found: pass it to the step, compare(step, model, batch)")

    @property
    def title(self) -> str:
        if self.is_training:
            return str(getattr(self.subject, "__name__", type(self.subject).__name__))
        return type(self.subject).__name__

    def run(self, args: Any, kwargs: Any) -> Any:
        """Returns the output; runs backward for a step, unless the step did that itself."""
        for parameter in self._list_parameters():
            parameter.grad = None  # of the run before this one
        output = self.subject(*args, **kwargs)
        if self.is_training:
            loss = find_loss(output)
            if loss is not None and loss.requires_grad and not self._has_gradients():
                loss.backward()  # type: ignore[no-untyped-call]
        return output

    def gradients(self) -> dict[str, torch.Tensor]:
        """Return the gradients of the parameters that the modules have at this moment."""
        gradients: dict[str, torch.Tensor] = {}
        for prefix, root in self.roots.items():
            for name, parameter in root.named_parameters():
                if parameter.grad is not None:
                    full = ".".join(part for part in (prefix, name) if part)
                    gradients[full] = parameter.grad.detach().cpu()
        return gradients

    def _has_gradients(self) -> bool:
        return any(parameter.grad is not None for parameter in self._list_parameters())

    def _list_parameters(self) -> list[torch.nn.Parameter]:
        return [p for root in self.roots.values() for p in root.parameters()]


def find_loss(output: Any) -> torch.Tensor | None:
    """Finds the loss that a step returned: `loss`, or the first single number with a gradient."""
    named = getattr(output, "loss", None)
    if isinstance(named, torch.Tensor):
        return named
    scalars = [t for t in list_tensors(output) if t.numel() == 1 and t.is_floating_point()]
    return next((t for t in scalars if t.requires_grad), scalars[0] if scalars else None)


def _unwrap(subject: Any) -> Any:
    """Returns the module in torch.compile or DataParallel: hooks see nothing in compiled code."""
    for name in ("_orig_mod", "module"):
        is_wrapper = type(subject).__name__ in ("OptimizedModule", "DataParallel")
        inner = getattr(subject, name, None) if is_wrapper else None
        if isinstance(inner, torch.nn.Module):
            return inner
    return subject


def _find_roots(subject: Any, args: Any, kwargs: Any) -> dict[str, torch.nn.Module]:
    if isinstance(subject, torch.nn.Module):
        return {"": subject}
    models: dict[str, torch.nn.Module] = {}
    candidates = {**_closure(subject), **{str(i): arg for i, arg in enumerate(args)}, **kwargs}
    for name, value in candidates.items():
        model = _unwrap(value)
        if isinstance(model, torch.nn.Module) and model not in models.values():
            models[name] = model
    return {"": next(iter(models.values()))} if len(models) == 1 else models


def _closure(function: Any) -> dict[str, Any]:
    """Return the objects that a function, a method or a partial refers to."""
    if isinstance(function, functools.partial):
        inner = dict(enumerate(function.args))
        return {
            **_closure(function.func),
            **{str(k): v for k, v in inner.items()},
            **function.keywords,
        }
    if hasattr(function, "__self__"):
        owner = function.__self__
        members = {"": owner} if isinstance(owner, torch.nn.Module) else dict(vars(owner))
        return (
            {**members, **_closure(function.__func__)} if hasattr(function, "__func__") else members
        )
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    cells = zip(code.co_freevars, function.__closure__ or ())
    named = {name: function.__globals__.get(name) for name in code.co_names}
    return {**named, **{name: cell.cell_contents for name, cell in cells}}
