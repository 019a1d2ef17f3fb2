"""torch's device "mps", made real on CPU-only Linux for tests."""

import os


def autoload() -> None:
    """Called by `import torch` in every process; without SOFTMPS=1 it does nothing."""
    if os.environ.get("SOFTMPS", "") in ("", "0"):
        return
    load()


def load() -> None:
    """Make the device usable in this process, before anything asks torch for an accelerator."""
    from softmps.device import load_device

    load_device()


def why_not() -> str | None:
    """One sentence why the device cannot be used here, or None when it can."""
    from softmps.build import why_no_build

    return why_no_build()
