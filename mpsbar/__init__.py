"""mpsbar: who holds my GPU memory, and can I get it back? This file is all a training script needs.

Runs inside other people's processes: Python 3.9+, standard library only, cheap to import.
"""

from .agent import __version__
from .agent.public_api import (
    attach,
    get_device,
    load_ipython_extension,
    memory,
    safe_dtype,
    unload_ipython_extension,
)

TYPE_CHECKING = False  # typing itself would be imported by every training script
if TYPE_CHECKING:
    from typing import Any

    from mpsbar.core.snapshot import Snapshot

__all__ = [
    "__version__",
    "attach",
    "compare",
    "get_device",
    "load_ipython_extension",
    "memory",
    "safe_dtype",
    "snapshot",
    "unload_ipython_extension",
]


def compare(model: "Any", *inputs: "Any", **options: "Any") -> "Any":
    """Run `model(*inputs)` on the CPU and on the device in several dtypes, and say what differs:
    the module at fault, what raised or fell back to the CPU, time and memory. Print the result.

    Options: dtypes, device, reference, copy, piecewise, timing; others are passed to the model.
    A function that takes the model and a batch and returns the loss is compared as a training
    step, with its gradients. The model is left as it was. Needs torch, and is imported only here.
    """
    from .agent.language import _, measure, ngettext
    from .dtypes.compare.comparison import compare as run
    from .dtypes.compare.text import use_language

    use_language(_, ngettext, measure)
    return run(model, *inputs, **options)


def snapshot() -> "Snapshot":
    """One reading of this computer, its PyTorch and MLX processes and what they hold.

    The typed objects behind `mpsbar status --json`. Needs Python 3.10 and the whole of mpsbar, not
    only the agent; takes some milliseconds, on a Mac 0.2 s for the shares of the GPU.
    """
    from contextlib import closing

    from .monitor import Monitor

    with closing(Monitor()) as monitor:
        return monitor.read_once()
