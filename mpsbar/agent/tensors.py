"""Counts the live tensors by device, dtype and shape. Metadata only, never their data."""

import gc
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import compress, starmap
from operator import itemgetter
from typing import Any, Optional

from . import host_frames
from .backends import IN_USE, NOT_INITIALISED, loaded
from .frameworks import FRAMEWORKS, Framework
from .gc_pause import CollectorPause
from .host_exceptions import raised_by_us
from .import_backends import BACKENDS
from .main_thread import MainThreadJob
from .protocol import JobAnswer

DEADLINE_SECONDS = 5.0
SCAN_SECONDS = 0.2
# Off main, counting must finish and drop its objects while the GIL is kept; it stops this many
# seconds before that ends.
SPARE_SECONDS = 0.05
MAX_GROUPS = 50

Key = tuple[str, str, str]


class TensorCensus:
    """One count of the live tensors; `step` until it answers.

    On main, or while no other thread can run: whoever lists all objects holds them for a moment,
    and one that ends meanwhile would run its finalizer on our thread. A backend with CENSUS_ALONE
    asks for the rule of Free too.
    """

    def __init__(self, gpu_client: Optional[bool], pause: Optional[CollectorPause] = None) -> None:
        states = {backend.NAME: backend.state(gpu_client) for backend in BACKENDS}
        self._used = [backend for backend in BACKENDS if states[backend.NAME] == IN_USE]
        self._report: Optional[JobAnswer] = None
        self.paused = 0.0  # seconds that this process could do nothing else
        alone = any(
            backend.CENSUS_ALONE and states[backend.NAME] not in (None, NOT_INITIALISED)
            for backend in BACKENDS
        )
        deadline = time.monotonic() + DEADLINE_SECONDS
        self._job = MainThreadJob(self._prepare, self._count, deadline, alone, pause)

    def step(self) -> Optional[JobAnswer]:
        job = self._job
        if not job.step():
            return None
        job.clean_up()
        if job.given_up and job.refused is not None:
            reason = {"code": job.refused.code, "where": job.refused.where}
            return {"state": "busy", "reason": reason}
        if job.failure is not None:
            return {"state": "failed", "error": job.failure}
        return self._report

    def _prepare(self, on_main: bool) -> None:
        """Does nothing: counting needs no preparation."""

    def _count(self) -> None:
        allocated = {backend.NAME: backend.stats().get("allocated") for backend in self._used}
        start = time.perf_counter()
        try:
            self._report = count(allocated, None if self._job.on_main else self._job.gil_until)
        finally:
            self.paused += time.perf_counter() - start


def count(allocated: "dict[str, Optional[int]]", gil_until: Optional[float] = None) -> JobAnswer:
    """Groups what gc can see; `allocated` is what each backend says is live.

    Off main the GIL is ours until `gil_until`, and nothing may be kept any longer.
    """
    start = time.monotonic()
    # In steps of `for` loops: between a list that took too long and its end no other thread runs.
    for objects in _all_of(_tensor_types()):
        break
    for now in iter(time.monotonic, None):
        break
    cut_short = gil_until is not None and now > gil_until - 2 * SPARE_SECONDS
    if cut_short:
        objects = []
    listed = now - start
    end = now + SCAN_SECONDS if gil_until is None else gil_until - SPARE_SECONDS
    groups: dict[Key, list[int]] = {}
    seen: set[tuple[str, int]] = set()
    describers: dict[int, Any] = {}  # by id of the type: a metaclass may hash with foreign code
    with _no_foreign_code():
        for number, thing in enumerate(objects):
            if not number % 1024 and time.monotonic() > end:
                cut_short = True
                break
            kind = type(thing)
            if id(kind) not in describers:
                describers[id(kind)] = _describer(kind)
            describe = describers[id(kind)]
            if describe is not None:
                _add(groups, seen, describe(thing))
    thing = kind = None  # type: ignore[assignment]
    if gil_until is not None and time.monotonic() > gil_until - SPARE_SECONDS / 2:
        host_frames.drop_references(objects)  # other threads may have run
    del objects
    return _report(groups, allocated, listed, time.monotonic() - start, cut_short)


def _all_of(types: "list[type]") -> "Iterator[list[Any]]":
    """Returns an iterator whose one step gives all objects of these types.

    While all objects are listed, each has one reference more. A tuple that another thread is just
    filling from a generator cannot grow then: that thread would get a SystemError. So listing,
    choosing and letting go are one step of C code, in which no other thread runs.
    """
    every: list[Any] = []  # its iterators look at it only when they are asked
    # By id: a metaclass may hash with foreign code.
    wanted = {id(kind) for kind in types}
    chosen = compress(every, map(wanted.__contains__, map(id, map(type, every))))
    steps = zip(
        map(every.extend, map(gc.get_objects, (None,))),
        map(list, (chosen,)),
        starmap(every.clear, ((),)),
    )
    return map(itemgetter(1), steps)


def _tensor_types() -> "list[type]":
    """Returns the tensor classes of all frameworks here, with every class made from them."""
    types = [kind for kind in map(_tensor_type, FRAMEWORKS) if kind is not None]
    for kind in types:  # grows meanwhile
        types.extend(type.__subclasses__(kind))
    return types


def _tensor_type(framework: Framework) -> "Optional[type]":
    module = loaded(framework.tensor_module)
    return None if module is None else getattr(module, framework.tensor)


def _describer(kind: type) -> Any:
    """Returns how to describe objects of this type, or None for those that hold no bytes of a
    tensor.

    Never isinstance: it asks the object for its __class__, which may be foreign code.
    """
    for framework in FRAMEWORKS:
        base = _tensor_type(framework)
        if base is None or not issubclass(kind, base):
            continue
        if framework.name != "torch":
            return lambda array: _describe_array(framework, array)
        own = kind.__mro__[: kind.__mro__.index(base)]
        # A wrapper (fake, distributed, functional) names bytes that it does not hold.
        wraps = any("__torch_dispatch__" in vars(base) for base in own)
        return None if wraps else _describe_torch
    return None


def _no_foreign_code() -> Any:
    """Keeps a subclass's __torch_function__ from being called for every attribute that is read."""
    torch = loaded("torch")
    return nullcontext() if torch is None else torch._C.DisableTorchFunctionSubclass()


def _describe_torch(tensor: Any) -> "Optional[tuple[Key, tuple[str, int], int]]":
    """Returns (group, identity of its storage, bytes of that storage), or None if it has none of
    its own.
    """
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


def _describe_array(framework: Framework, array: Any) -> "tuple[Key, tuple[str, int], int]":
    """Returns the same for a framework whose arrays share no storage that could be asked for."""
    device = framework.allocators[0].name
    shape = "x".join(map(str, array.shape)) or "scalar"
    dtype = str(array.dtype).replace(f"{framework.module}.", "")
    return (device, dtype, shape), (device, id(array)), array.nbytes


def _add(groups: "dict[Key, list[int]]", seen: "set[tuple[str, int]]", description: Any) -> None:
    if description is None:
        return
    key, identity, size = description
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
) -> JobAnswer:
    ranked = sorted(groups.items(), key=lambda item: -item[1][1])
    rest = [numbers for _, numbers in ranked[MAX_GROUPS:]]
    visible: dict[str, int] = {}
    for (device, _, _), (_, size) in ranked:
        visible[device] = visible.get(device, 0) + size
    return {
        "state": "done",
        "groups": [
            {"device": d, "dtype": t, "shape": s[:80], "count": n, "bytes": b}
            for (d, t, s), (n, b) in ranked[:MAX_GROUPS]
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
