"""Give torch the shape it had in an older version: names that came later are not to be found."""

import sys
from types import FrameType, ModuleType
from typing import Any

from softmps.settings import version_number

MEMORY = (
    "empty_cache", "max_memory_allocated", "max_memory_reserved", "memory", "memory_allocated",
    "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
)  # fmt: skip
C_MEMORY = (
    "_accelerator_emptyCache", "_accelerator_getDeviceStats", "_accelerator_isAllocatorInitialized",
    "_accelerator_resetAccumulatedStats", "_accelerator_resetPeakStats",
)  # fmt: skip

FIRST_ACCELERATOR = 206
# Where, which names, and the first version (213 = 2.13) that has them.
CAME_WITH: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("torch.mps", ("load_metallib", "_host_alias_storage"), 213),
    ("torch.accelerator", ("empty_host_cache",), 212),
    ("torch._C", ("_accelerator_emptyHostCache",), 212),
    ("torch.accelerator", ("get_device_capability", "get_memory_info"), 210),
    ("torch._C", ("_accelerator_getDeviceCapability", "_accelerator_getMemoryInfo"), 210),
    ("torch.accelerator", MEMORY, 209),
    ("torch._C", C_MEMORY, 209),
    ("torch.backends.mps", ("get_name", "get_core_count"), 209),
    ("torch._C", ("_mps_get_name", "_mps_get_core_count"), 209),
    ("torch.mps", ("compile_shader",), 207),
    ("torch.mps", ("recommended_max_memory", "is_available"), 205),
    ("torch._C", ("_mps_recommendedMaxMemory", "_mps_maxBufferLength"), 205),
    ("torch.mps", ("device_count",), 204),
    ("torch.backends.mps", ("is_macos_or_newer",), 203),
)


def become(torch: Any, version: str) -> None:
    """Make torch look like `version` (X.Y.Z) to the code that uses it."""
    number = version_number(version)
    hidden: dict[str, set[str]] = {}
    for where, names, since in CAME_WITH:
        if number < since:
            hidden.setdefault(where, set()).update(names)
    for where, gone in hidden.items():
        hide(sys.modules[where], frozenset(gone))
    if number < FIRST_ACCELERATOR:
        hide(torch, frozenset({"accelerator"}))
        sys.modules["torch.accelerator"] = None  # type: ignore[assignment]  # import then fails
    full = f"{version}+softmps"
    torch.version.__version__ = full
    torch.__version__ = torch.torch_version.__version__ = torch.torch_version.TorchVersion(full)


def hide(module: ModuleType, names: frozenset[str]) -> None:
    """Let only torch itself, whose newer code needs them, find these names in the module."""

    class Older(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            if name in names and not is_torch(sys._getframe(1)):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return super().__getattribute__(name)

        def __dir__(self) -> list[str]:
            return [name for name in super().__dir__() if name not in names]

    module.__class__ = Older
    if public := vars(module).get("__all__"):
        vars(module)["__all__"] = [name for name in public if name not in names]


def is_torch(frame: FrameType) -> bool:
    """Whether the code of this frame is part of torch."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"
