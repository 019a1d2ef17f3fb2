"""What a script or a notebook calls: `import mpsbar` gives these, installed or only enabled.

Cheap to import: each function imports its part of the agent when it is called.
"""

TYPE_CHECKING = False  # typing itself would be imported by every training script
if TYPE_CHECKING:
    from typing import Any


def attach() -> bool:
    """Show this process in mpsbar, and let it be asked to free its cache.

    Returns whether an agent is running. Never raises; says in one line on stderr why it could not
    start. ``MPSBAR_DISABLE=1`` turns it off.
    """
    try:
        from .lifecycle import attach as start
    except Exception as error:  # noqa: BLE001 - an exotic interpreter must not lose its training run
        import sys

        if sys.stderr is not None:
            print(f"mpsbar: not attached: {error}", file=sys.stderr)  # noqa: T201 - the one line
        return False
    return start()


def get_device() -> str:
    """The device to compute on: "cuda", else "mps", else "cpu". Import torch first."""
    from .device import get_device as choose

    return choose()


def safe_dtype(device: object = None, wanted: object = None) -> "Any":
    """The torch.dtype to use on `device` (none given: that of get_device()): `wanted` where it
    works there, else the nearest that does; float32 if none is wanted. Import torch first.
    What `mpsbar probe` measured in this Python counts, else what is known of torch's releases.
    """
    from .device import safe_dtype as choose

    return choose(device, wanted)


def memory(prefix: str = "") -> "dict[str, int]":
    """The memory of this process in bytes, ready for wandb.log, MLflow or TensorBoard.

    The sums over the allocators in use: allocated, cached, other, reserved, driver, peak, held,
    budget, limit (the highest, no sum), and resident where the system knows it. What is not known
    is left out. It takes microseconds, needs no agent, and touches no device that this process does
    not use.
    """
    from .memory import read_memory

    return read_memory(prefix)


def load_ipython_extension(shell: object) -> None:
    """%load_ext mpsbar: show this kernel in mpsbar, and add the %mpsbar magic."""
    from .notebook import load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """%unload_ext mpsbar: take the magic away; the agent stays."""
    from .notebook import unload

    unload(shell)
