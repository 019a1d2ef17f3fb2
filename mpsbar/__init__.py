"""mpsbar: who holds my GPU memory, and can I get it back? This file is all a training script needs.

Runs inside other people's processes: Python 3.9+, standard library only, cheap to import.
"""

from .agent import __version__

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


def attach() -> bool:
    """Show this process in mpsbar, and let it be asked to free its cache.

    Returns whether an agent is running. Never raises; says in one line on stderr why it could not
    start. ``MPSBAR_DISABLE=1`` turns it off.
    """
    try:
        from .agent.lifecycle import attach as start
    except Exception as error:  # noqa: BLE001 - an exotic interpreter must not lose its training run
        import sys

        if sys.stderr is not None:
            print(f"mpsbar: not attached: {error}", file=sys.stderr)  # noqa: T201 - the one line
        return False
    return start()


def get_device() -> str:
    """The device to compute on: "cuda", else "mps", else "cpu". Import torch first."""
    from .agent.device import get_device as choose

    return choose()


def safe_dtype(device: object = None, wanted: object = None) -> "Any":
    """The torch.dtype to use on `device` (none given: that of get_device()): `wanted` where it
    works there, else the nearest that does; float32 if none is wanted. Import torch first.
    What `mpsbar probe` measured in this Python counts, else what is known of torch's releases.
    """
    from .agent.device import safe_dtype as choose

    return choose(device, wanted)


def compare(model: "Any", *inputs: "Any", **options: "Any") -> "Any":
    """Run `model(*inputs)` on the CPU and on the device in several dtypes, and say what differs:
    the module at fault, what raised or fell back to the CPU, time and memory. Print the result.

    Options: dtypes, device, reference, copy, piecewise, timing; others are passed to the model.
    A function that takes the model and a batch and returns the loss is compared as a training
    step, with its gradients. The model is left as it was. Needs torch, and is imported only here.
    """
    from .dtypes.compare.comparison import compare as run

    return run(model, *inputs, **options)


def memory(prefix: str = "") -> "dict[str, int]":
    """The memory of this process in bytes, ready for wandb.log, MLflow or TensorBoard.

    The sums over the allocators in use: allocated, cached, other, reserved, driver, peak, held,
    budget, and resident where the system knows it. What is not known is left out. It takes
    microseconds, needs no agent, and touches no device that this process does not use.
    """
    from .agent.memory import read_memory

    return read_memory(prefix)


def snapshot() -> "Snapshot":
    """One reading of this computer, its PyTorch and MLX processes and what they hold.

    The typed objects behind `mpsbar status --json`. Needs Python 3.10 and the whole of mpsbar, not
    only the agent; takes some milliseconds, on a Mac 0.2 s for the shares of the GPU.
    """
    from .monitor import Monitor

    monitor = Monitor()
    try:
        return monitor.read_once()
    finally:
        monitor.close()


def load_ipython_extension(shell: object) -> None:
    """%load_ext mpsbar: show this kernel in mpsbar, and add the %mpsbar magic."""
    from .agent.notebook import load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """%unload_ext mpsbar: take the magic away; the agent stays."""
    from .agent.notebook import unload

    unload(shell)
