"""Replaces the parameters of the user's model by converted copies for a while, then restores all.

The model's own Parameter objects are never changed: modules get stand-ins, converted copies, and
afterwards their own back, so that values, gradients, hooks and devices are the very same objects.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from .module_objects import ModuleObjects, put_back_content
from .recording import Hooks
from .structures import clone_tensor
from .target import ComputeTarget

# Tensors that are no buffers are copied, up to this in all, in case forward() writes into them.
_MAX_COPIED = 256 << 20


# Name, tensor, its version and a copy of it; no copy: it is too large.
_Watched = tuple[str, torch.Tensor, int, Optional[torch.Tensor]]


class ModelState:
    """All modules under some roots: their original attributes, and the stand-ins they have now."""

    def __init__(self, roots: dict[str, torch.nn.Module]) -> None:
        self.names = _name_modules(roots)
        self.modules = list(self.names)
        self._attributes = {module: dict(vars(module)) for module in self.modules}
        self._objects = {module: ModuleObjects(module) for module in self.modules}
        self._lost: dict[str, None] = {}  # in words, in order
        self._running: list[torch.nn.Module] = []  # while substituted piecewise, the innermost last
        self._substituted_whole: set[torch.nn.Module] = (
            set()
        )  # piecewise, with all of their submodules
        self._values_to_restore: list[tuple[dict[str, Any], str, Any]] = []
        self._tensors = {id(t): t for module in self.modules for t in _own_tensors(module)}
        self._grads = [(t, t.grad) for t in self._tensors.values() if t.is_leaf]
        self._versions = self._watch_tensors()
        for tensor, _ in self._grads:
            tensor.grad = None  # an optimizer of the user's own then has nothing to do

    def count_parameters(self) -> int:
        return sum(t.numel() for t in self._tensors.values() if isinstance(t, torch.nn.Parameter))

    def count_bytes(self, target: ComputeTarget) -> int:
        """Returns how much memory the stand-ins of all parameters and buffers take."""
        size = torch.empty(0, dtype=target.dtype).element_size()
        return sum(
            t.numel() * (size if t.is_floating_point() else t.element_size())
            for t in self._tensors.values()
        )

    @contextlib.contextmanager
    def substitute(
        self, target: ComputeTarget, modules: Iterable[torch.nn.Module] | None = None
    ) -> Iterator[None]:
        """Give these modules (None: all) stand-ins on `target` for their tensors."""
        chosen = self.modules if modules is None else list(modules)
        try:
            self._substitute(target, chosen)
            yield
        finally:
            self.put_back(chosen)

    def _substitute(
        self, target: ComputeTarget, chosen: list[torch.nn.Module]
    ) -> dict[int, torch.Tensor]:
        tensors = {id(t): t for module in chosen for t in _own_tensors(module)}
        made = {key: _stand_in(tensor, target) for key, tensor in tensors.items()}
        for module in chosen:
            _replace(module, made)
        return {id(made[key]): tensor for key, tensor in tensors.items()}

    @contextlib.contextmanager
    def substitute_piecewise(self, target: ComputeTarget) -> Iterator[None]:
        """Gives each module stand-ins only while it runs, if two copies of the model do not fit."""
        stack: list[tuple[list[torch.nn.Module], dict[int, torch.Tensor]]] = []
        substituted: set[torch.nn.Module] = set()

        def before(module: torch.nn.Module, *_: Any) -> None:
            wanted = module.modules() if module in self._substituted_whole else [module]
            chosen = [m for m in wanted if m in self.names and m not in substituted]
            self._running.append(module)
            stack.append((chosen, self._substitute(target, chosen)))
            substituted.update(chosen)

        def after(*_: Any) -> None:
            self._running.pop()
            chosen, originals = stack.pop()
            for module in chosen:
                _replace(module, originals)
            substituted.difference_update(chosen)

        self._running.clear()
        try:
            with Hooks(self.modules, before, after):
                yield
        finally:
            self.put_back()

    def substitute_submodules_too(self) -> bool:
        """Gives the module that has failed the stand-ins of its submodules too, from now on: it may
        use the weight of one. Returns False if it had them, or has no submodules."""
        failed = self._running[-1] if self._running else None
        if failed is None or failed in self._substituted_whole or not any(failed.children()):
            return False
        self._substituted_whole.add(failed)
        return True

    def put_back(self, modules: Iterable[torch.nn.Module] | None = None) -> None:
        """Restore every attribute of these modules."""
        for module in self.modules if modules is None else modules:
            vars(module).clear()
            vars(module).update(self._attributes[module])
            for name, value, content in self._objects[module].contents:
                try:
                    put_back_content(value, content)
                except Exception:  # noqa: BLE001 - a class of the user's own that refuses
                    self._lost[f"{self._name(module, name)} was changed by the model"] = None

    def set_until_restored(self, module: torch.nn.Module, name: str, value: Any) -> None:
        """Set a plain attribute to another value until restore()."""
        attributes = self._attributes[module]
        self._values_to_restore.append((attributes, name, attributes[name]))
        attributes[name] = vars(module)[name] = value

    def restore(self) -> list[str]:
        """Restore everything; return what could not be restored, in words."""
        for attributes, name, value in reversed(self._values_to_restore):
            attributes[name] = value
        self.put_back()
        for tensor, grad in self._grads:
            tensor.grad = grad
        self._undo_writes()
        for module, objects in self._objects.items():
            if not objects.is_complete:
                name = self.names[module] or "the model"
                self._lost[f"{name} holds too many objects: not all were watched"] = None
        return list(self._lost)

    def _watch_tensors(self) -> list[_Watched]:
        """Lists name, version and, up to a size, a copy of each tensor that gets no stand-in."""
        watched: list[_Watched] = [
            ("a parameter or buffer", t, t._version, None) for t in self._tensors.values()
        ]
        seen, left = set(self._tensors), _MAX_COPIED
        for module, objects in self._objects.items():
            for name, tensor in objects.tensors.items():
                if id(tensor) in seen or tensor.is_inference():
                    continue
                seen.add(id(tensor))
                size = tensor.numel() * tensor.element_size()
                copied = clone_tensor(tensor) if size <= left else None
                left -= size if copied is not None else 0
                watched.append((self._name(module, name), tensor, tensor._version, copied))
        return watched

    def _undo_writes(self) -> None:
        """Undoes writes of forward() into tensors that got no stand-in."""
        for name, tensor, version, copied in self._versions:
            if tensor._version == version:
                continue
            if copied is None or copied.shape != tensor.shape:
                what = f"{name}, a tensor of shape {tuple(tensor.shape)}, was changed by the model"
                self._lost[what] = None
            else:
                with torch.no_grad():
                    tensor.copy_(copied)

    def _name(self, module: torch.nn.Module, name: str) -> str:
        return f"{self.names[module]}.{name}" if self.names[module] else name


def _name_modules(roots: dict[str, torch.nn.Module]) -> dict[torch.nn.Module, str]:
    names: dict[torch.nn.Module, str] = {}
    for prefix, root in roots.items():
        for name, module in root.named_modules():
            names.setdefault(module, ".".join(part for part in (prefix, name) if part))
    return names


def _own_tensors(module: torch.nn.Module) -> list[torch.Tensor]:
    both = [*module._parameters.values(), *module._buffers.values()]
    return [tensor for tensor in both if tensor is not None]


def _stand_in(tensor: torch.Tensor, target: ComputeTarget) -> torch.Tensor:
    if isinstance(tensor, UninitializedTensorMixin):
        raise ValueError("a lazy module has no parameters yet: run the model once, then compare")
    made = target.convert(tensor)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made


def _replace(module: torch.nn.Module, made: dict[int, torch.Tensor]) -> None:
    """Replaces tensors in the module's lists too: nn.LSTM keeps one of its parameters."""
    for value in list(vars(module).values()):
        if isinstance(value, dict):
            for key, part in value.items():
                if isinstance(part, torch.Tensor) and id(part) in made:
                    value[key] = made[id(part)]
        elif isinstance(value, list):
            for index, part in enumerate(value):
                if isinstance(part, torch.Tensor) and id(part) in made:
                    value[index] = made[id(part)]


class RandomState:
    """The states of all random generators that a model may draw from."""

    def __init__(self, device: str) -> None:
        self._kind = torch.device(device).type
        self._python, self._cpu = random.getstate(), torch.get_rng_state()
        numpy = sys.modules.get("numpy")
        self._numpy = None if numpy is None else numpy.random.get_state()
        self._device: Any = None
        if self._kind == "cuda":
            self._device = torch.cuda.get_rng_state_all()
        elif self._kind == "mps":
            with contextlib.suppress(Exception):  # torch before 2.0, and builds without one
                self._device = torch.mps.get_rng_state()

    def restore(self) -> None:
        random.setstate(self._python)
        torch.set_rng_state(self._cpu)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        if self._device is not None and self._kind == "cuda":
            torch.cuda.set_rng_state_all(self._device)
        elif self._device is not None:
            torch.mps.set_rng_state(self._device)


def run_then_restore(run: Callable[[], Any], restore: Callable[[], Any]) -> Any:
    """Call run(), then restore() whatever happened; a Ctrl-C during restore() waits."""
    guard = _InterruptGuard()
    try:
        guard.install()
        return run()
    finally:
        try:
            guard.holds = True
        finally:
            try:
                restore()
            finally:
                guard.remove()


class _InterruptGuard:
    """A SIGINT handler that calls the user's own; nothing is installed off the main thread."""

    def __init__(self) -> None:
        self.holds = False
        self._waiting = False
        self._before: Any = None

    def install(self) -> None:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # None: installed by C code; SIG_IGN and SIG_DFL are no functions
                self._before = before
                signal.signal(signal.SIGINT, self._handle)

    def remove(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._waiting:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: Any) -> None:
        if self.holds:
            self._waiting = True
        else:
            self._before(number, frame)
