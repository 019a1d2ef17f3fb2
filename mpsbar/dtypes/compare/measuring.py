"""Time and memory of whole runs and of single modules: warmed up, synchronised, repeated."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable

import torch

from .free_ram import read_free_ram
from .recording import Hooks
from .target import synchronize

_ROUNDS = 7
_MODULE_RUNS = 3
_ROUND_SECONDS = 0.02  # shorter ones measure the clock and the queue, not the model


@dataclass(frozen=True)
class Timing:
    """Seconds for one run: the best of several rounds, and how far the usual one lies above it."""

    seconds: float
    spread: float  # the median's distance, as a share of the best
    runs: int


def measure_time(run: Callable[[], Any], device: str, budget: float) -> Timing:
    """Times three rounds, and more while `budget` seconds last, each synchronised once."""
    run()  # the first ones compile kernels and fill caches
    synchronize(device)
    once = min(_time_round(run, device, 1) for _ in range(3))
    inner = max(1, min(1000, int(_ROUND_SECONDS / max(once, 1e-7))))
    _time_round(run, device, inner)
    rounds: list[float] = []
    end = time.perf_counter() + budget
    while len(rounds) < 3 or (len(rounds) < _ROUNDS and time.perf_counter() < end):
        rounds.append(_time_round(run, device, inner))
    best = min(rounds)
    return Timing(best, statistics.median(rounds) / best - 1 if best else 0.0, len(rounds) * inner)


def _time_round(run: Callable[[], Any], device: str, inner: int) -> float:
    start = time.perf_counter()
    for _ in range(inner):
        run()
    synchronize(device)
    return (time.perf_counter() - start) / inner


def time_modules(
    run: Callable[[], Any], names: dict[torch.nn.Module, str], device: str
) -> dict[str, float]:
    """Times each module with all below it: the best of a few runs, synchronised each time."""
    totals: list[dict[str, float]] = []
    for _ in range(_MODULE_RUNS):
        seconds: dict[str, float] = {}
        starts: list[float] = []

        def before(*_: Any, starts: list[float] = starts) -> None:
            synchronize(device)
            starts.append(time.perf_counter())

        def after(
            module: torch.nn.Module, *_: Any,
            starts: list[float] = starts, seconds: dict[str, float] = seconds,
        ) -> None:  # fmt: skip
            synchronize(device)
            name = names[module]
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - starts.pop()

        with Hooks(list(names), before, after):
            run()
        totals.append(seconds)
    return {name: min(run.get(name, 0.0) for run in totals) for name in totals[0]}


@dataclass
class Peak:
    """The largest amount of memory in live tensors at once, without what was there before."""

    bytes: int | None = None
    is_sampled: bool = False  # read between modules: what lives only inside one is missing


@contextmanager
def measuring_peak(device: str, modules: list[torch.nn.Module]) -> Iterator[Peak]:
    """Yields a Peak that is filled at the end; unknown on the CPU, where torch does not count."""
    kind = torch.device(device).type
    memory = _memory_of(kind)
    if memory is None and kind != "mps":
        yield Peak()
        return
    gc.collect()  # cycles of an earlier run would count as the user's own
    # A cached block that is larger than asked for counts whole: an earlier dtype's would.
    getattr(torch, kind).empty_cache()
    measuring = _counted_by_torch(memory) if memory is not None else _sampling_mps(modules)
    with measuring as peak:
        yield peak
        synchronize(device)


@contextmanager
def _counted_by_torch(memory: Any) -> Iterator[Peak]:
    peak = Peak()
    before = int(memory.memory_allocated())
    memory.reset_peak_memory_stats()
    yield peak
    peak.bytes = int(memory.max_memory_allocated()) - before


@contextmanager
def _sampling_mps(modules: list[torch.nn.Module]) -> Iterator[Peak]:
    """Samples what is allocated: torch before 2.13 counts no peak on MPS."""
    before = largest = int(torch.mps.current_allocated_memory())
    peak = Peak(is_sampled=True)

    def read(*_: Any) -> None:
        nonlocal largest
        largest = max(largest, int(torch.mps.current_allocated_memory()))

    with Hooks(modules, read, read):
        yield peak
    read()
    peak.bytes = largest - before


def _memory_of(kind: str) -> Any:
    """Returns the module that counts peaks: torch.cuda or torch.accelerator (MPS: 2.13)."""
    if kind == "cuda":
        return torch.cuda
    memory: Any = getattr(torch, "accelerator", None)
    if kind == "cpu" or not hasattr(memory, "max_memory_allocated"):
        return None
    try:
        memory.max_memory_allocated()
    except RuntimeError:
        return None
    return memory


def read_free_memory(device: str) -> int | None:
    """Returns the bytes that tensors may still take there; None if it cannot be read."""
    kind = torch.device(device).type
    try:
        if kind == "cuda":
            return int(torch.cuda.mem_get_info()[0])
        if kind == "mps":
            taken = torch.mps.driver_allocated_memory()
            return int(torch.mps.recommended_max_memory()) - int(taken)
    except (AttributeError, RuntimeError):  # an older torch
        return None
    return read_free_ram()
