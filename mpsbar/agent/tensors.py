"""Who the bytes are: live tensors by device, dtype and shape. Metadata only, never their data."""

import gc
import time
from contextlib import nullcontext
from typing import Any, Optional

from .backends import IN_USE, NOT_INITIALISED, every, loaded
from .interrupts import raised_by_us
from .turn import Turn

DEADLINE_SECONDS = 5.0
SCAN_SECONDS = 0.2
MOST_GROUPS = 50

Report = dict[str, Any]
Key = tuple[str, str, str]


class Census:
    """One count of the live tensors; `step` until it answers."""

    def __init__(self, gpu_client: Optional[bool]) -> None:
        states = {backend.NAME: backend.state(gpu_client) for backend in every()}
        self._used = [b for b in every() if states[b.NAME] == IN_USE]
        self._report: Optional[Report] = None
        self._turn: Optional[Turn] = None
        if states["mps"] in (None, NOT_INITIALISED):
            self._report = self._count()
        else:  # the rule of free: a tensor looked at in the middle of its op has crashed before
            self._turn = Turn(self._nothing, self._on_turn, time.monotonic() + DEADLINE_SECONDS)

    def step(self) -> Optional[Report]:
        turn = self._turn
        if turn is not None:
            if not turn.step():
                return None
            turn.clean_up()
            if turn.withdrawn and turn.refused is not None:
                reason = {"code": turn.refused.code, "where": turn.refused.where}
                return {"state": "busy", "reason": reason}
            if turn.failure is not None:
                return {"state": "failed", "error": turn.failure}
        return self._report

    def _nothing(self, on_main: bool) -> None:
        pass

    def _on_turn(self) -> None:
        self._report = self._count()

    def _count(self) -> Report:
        allocated = {b.NAME: b.stats().get("allocated") for b in self._used}
        return count(allocated)


def count(allocated: "dict[str, Optional[int]]") -> Report:
    """Group what gc can see; `allocated` is what each backend says is live."""
    start = time.perf_counter()
    objects = gc.get_objects()
    listed = time.perf_counter() - start
    groups: dict[Key, list[int]] = {}
    seen: set[tuple[str, int]] = set()
    cut_short = False
    describers: dict[int, Any] = {}  # by id of the type: a metaclass may hash with foreign code
    with _no_foreign_code():
        for number, thing in enumerate(objects):
            if not number % 1024 and time.perf_counter() - start > listed + SCAN_SECONDS:
                cut_short = True
                break
            kind = type(thing)
            if id(kind) not in describers:
                describers[id(kind)] = _describer(kind)
            describe = describers[id(kind)]
            if describe is not None:
                _add(groups, seen, describe(thing))
    del objects
    return _report(groups, allocated, listed, time.perf_counter() - start, cut_short)


def _describer(kind: type) -> Any:
    """How to describe objects of this type; None for those that hold no bytes of a tensor.

    Never isinstance: it asks the object for its __class__, which may be foreign code.
    """
    torch, mlx = loaded("torch"), loaded("mlx.core")
    if torch is not None and issubclass(kind, torch.Tensor):
        own = kind.__mro__[: kind.__mro__.index(torch.Tensor)]
        # A wrapper (fake, distributed, functional) names bytes that it does not hold.
        wraps = any("__torch_dispatch__" in vars(base) for base in own)
        return None if wraps else _describe_torch
    return _describe_mlx if mlx is not None and issubclass(kind, mlx.array) else None


def _no_foreign_code() -> Any:
    """Without it a subclass's __torch_function__ is called for every attribute that is read."""
    torch = loaded("torch")
    return nullcontext() if torch is None else torch._C.DisableTorchFunctionSubclass()


def _describe_torch(tensor: Any) -> "Optional[tuple[Key, tuple[str, int], int]]":
    """(group, identity of its storage, bytes of that storage); None if it has none of its own."""
    kind: Any = loaded("torch").Tensor  # type: ignore[union-attr]  # a subclass may override these
    try:
        device = kind.device.__get__(tensor).type
        if device == "meta":
            return None
        storage = kind.untyped_storage(tensor)
        shape = "x".join(map(str, kind.shape.__get__(tensor))) or "scalar"
        key = (device, str(kind.dtype.__get__(tensor)).replace("torch.", ""), shape)
        return key, (device, storage._cdata), storage.nbytes()
    except Exception as error:
        if raised_by_us(error):
            return None  # a sparse tensor has no storage
        raise


def _describe_mlx(array: Any) -> "tuple[Key, tuple[str, int], int]":
    shape = "x".join(map(str, array.shape)) or "scalar"
    return (
        ("mlx", str(array.dtype).replace("mlx.core.", ""), shape),
        ("mlx", id(array)),
        array.nbytes,
    )


def _add(groups: "dict[Key, list[int]]", seen: "set[tuple[str, int]]", found: Any) -> None:
    if found is None:
        return
    key, identity, size = found
    group = groups.setdefault(key, [0, 0])
    group[0] += 1
    if identity not in seen:  # views share their storage: its bytes count once
        seen.add(identity)
        group[1] += size


def _report(
    groups: "dict[Key, list[int]]",
    allocated: "dict[str, Optional[int]]",
    listed: float,
    total: float,
    cut_short: bool,
) -> Report:
    ranked = sorted(groups.items(), key=lambda item: -item[1][1])
    rest = [numbers for _, numbers in ranked[MOST_GROUPS:]]
    visible: dict[str, int] = {}
    for (device, _, _), (_, size) in ranked:
        visible[device] = visible.get(device, 0) + size
    return {
        "state": "done",
        "groups": [
            {"device": d, "dtype": t, "shape": s[:80], "count": n, "bytes": b}
            for (d, t, s), (n, b) in ranked[:MOST_GROUPS]
        ],
        "others": {"count": sum(n for n, _ in rest), "bytes": sum(b for _, b in rest)},
        # What C++ holds (autograd's saved tensors, kernels' buffers), and alignment.
        "not_visible": {
            name: max(0, live - visible.get(name, 0))
            for name, live in allocated.items()
            if live is not None
        },
        "list_seconds": listed,
        "seconds": total,
        "cut_short": cut_short,
    }
