"""Load the compiled device into this process's torch, and fill the gaps of a Linux build."""

import importlib
import os
import sys
from typing import Any

from softmps.build import build
from softmps.old import become
from softmps.settings import Settings, read_settings, version_number


def load_device() -> None:
    """Make `device="mps"` usable; a second call does nothing."""
    torch: Any = importlib.import_module("torch")
    if torch._C._has_mps:
        return
    settings = read_settings(os.environ)
    torch.ops.load_library(build(lambda line: print(line, file=sys.stderr)))
    configure(torch, settings)
    fill_gaps(torch)
    if settings.torch:
        become(torch, settings.torch)


def configure(torch: Any, settings: Settings) -> None:
    """Hand the switches to the C++ side, which registers the allocator by them."""
    torch.ops.softmps.configure(
        settings.strict,
        version_number(settings.torch or torch.__version__),
        settings.memory,
        settings.heaps,
        settings.graph_bytes,
        settings.queue,
        settings.float64,
        [word for fault in settings.faults for word in fault],
    )


def fill_gaps(torch: Any) -> None:
    """What torch compiles in only where it is built with MPS."""
    torch._C._has_mps = True
    torch._C._mps_get_name = lambda: "Apple M0 (softmps)"
    torch._C._mps_get_core_count = lambda: 1
    torch.UntypedStorage.mps = storage_to_mps
    for function in vars(torch.backends.mps).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


def storage_to_mps(storage: Any) -> Any:
    """UntypedStorage.mps without the constructor that a Linux build lacks; torch.load needs it."""
    torch: Any = importlib.import_module("torch")
    data = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return data.to("mps").untyped_storage()
