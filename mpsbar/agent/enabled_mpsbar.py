"""`import mpsbar` in an environment that `mpsbar enable` has connected: the agent's public API.

Only while mpsbar itself is not installed there: an installed one is always found first
(find_mpsbar in startup_hook.py).
"""

import sys

from mpsbar_agent import __version__
from mpsbar_agent.public_api import (
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
_ONLY_ENABLED = "is not part of what mpsbar enable brings: install mpsbar in this environment"


def compare(model: "Any", *inputs: "Any", **options: "Any") -> "Any":
    """Run `model(*inputs)` on the CPU and on the device in several dtypes, and say what differs:
    the module at fault, what raised or fell back to the CPU, time and memory. Print the result.

    Options: dtypes, device, reference, copy, piecewise, timing; others are passed to the model.
    A function that takes the model and a batch and returns the loss is compared as a training
    step, with its gradients. The model is left as it was. Needs torch, and is imported only here.
    """
    from mpsbar_agent.compare.comparison import compare as run
    from mpsbar_agent.compare.text import use_language
    from mpsbar_agent.language import _, measure, ngettext

    use_language(_, ngettext, measure)
    return run(model, *inputs, **options)


def snapshot() -> "Any":
    """Raises: it needs the whole of mpsbar, which is not here."""
    raise ImportError(f"mpsbar.snapshot() {_ONLY_ENABLED}", name="mpsbar")


if __name__ == "__main__":  # python -m mpsbar
    sys.exit(f"mpsbar: the command {_ONLY_ENABLED}, or run mpsbar itself")
