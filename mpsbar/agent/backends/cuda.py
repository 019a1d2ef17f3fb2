"""torch's device "cuda": it has a lazy check, and its allocator is thread-safe."""

from typing import Any, Callable, Optional

from . import IN_USE, NOT_INITIALISED, Stats, loaded

NAME = "cuda"
FRAMEWORK = "torch"
ANYWHERE = True
CENSUS_ALONE = False
CAN_LIMIT = False


def state(gpu_client: Optional[bool]) -> Optional[str]:  # noqa: ARG001 - torch itself knows here
    cuda = _cuda()
    if cuda is None or not cuda._is_compiled():
        return None
    return IN_USE if cuda.is_initialized() else NOT_INITIALISED


def stats() -> Stats:
    cuda = _cuda()
    total: Stats = {"allocated": 0, "reserved": 0, "peak": 0, "driver": None, "budget": 0}
    for index in range(cuda.device_count()):
        device = cuda.memory_stats(index)
        for name, key in (
            ("allocated", "allocated_bytes.all.current"),
            ("reserved", "reserved_bytes.all.current"),
            ("peak", "allocated_bytes.all.peak"),
        ):
            total[name] = (total[name] or 0) + device.get(key, 0)
        total["budget"] = (total["budget"] or 0) + cuda.get_device_properties(index).total_memory
    return total


def measure() -> int:
    cuda = _cuda()
    return int(sum(cuda.memory_reserved(index) for index in range(cuda.device_count())))


def release_call() -> "tuple[Callable[..., Any], tuple[Any, ...]]":
    # What torch.cuda.empty_cache() calls once CUDA is initialised; it lets the GIL go.
    return loaded("torch")._C._cuda_emptyCache, ()  # type: ignore[union-attr]


def _cuda() -> Any:
    torch = loaded("torch")
    return None if torch is None else getattr(torch, "cuda", None)
