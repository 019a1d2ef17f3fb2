"""The budget: how much memory Metal recommends the GPU should hold at most."""

import importlib

# It changes when an administrator sets iogpu.wired_limit_mb.
INTERVAL = 180.0


def read_budget() -> int:
    """Bytes. Raises whatever the bridge into foreign code does, and OSError for no number.

    From here on this process has a GPU client of its own.
    """
    objc = importlib.import_module("objc")
    metal = importlib.import_module("Metal")
    with objc.autorelease_pool():
        device = metal.MTLCreateSystemDefaultDevice()
        if device is None:
            raise OSError("Metal has no device here")  # as in some virtual Macs
        budget = device.recommendedMaxWorkingSetSize()
    if not isinstance(budget, int) or budget <= 0:
        raise OSError(f"Metal says {str(budget)[:40]}")
    return budget
