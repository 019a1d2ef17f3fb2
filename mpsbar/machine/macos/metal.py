"""The budget: how much memory Metal recommends the GPU should hold at most."""

import importlib

# It changes when an administrator sets iogpu.wired_limit_mb.
INTERVAL = 180.0


def read_budget() -> int | None:
    """Bytes; None without PyObjC's Metal or without a device, as in some virtual Macs.

    From here on this process has a GPU client of its own.
    """
    try:
        objc = importlib.import_module("objc")
        metal = importlib.import_module("Metal")
        with objc.autorelease_pool():
            device = metal.MTLCreateSystemDefaultDevice()
            budget = None if device is None else device.recommendedMaxWorkingSetSize()
    except Exception:  # noqa: BLE001 - a bridge into foreign code: whatever it is, we have no number
        return None
    return int(budget) if isinstance(budget, int) and budget > 0 else None
