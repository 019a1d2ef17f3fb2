"""What the properties of an accelerator and of its clients mean. Pure; every key may be missing.

`Properties` are the registry's, under its own names, whether IOKit or ioreg read them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mpsbar.core.gpu import Gpu
from mpsbar.core.untrusted import is_whole
from mpsbar.system.platform import GpuClient

Properties = Mapping[str, Any]

CLASS = "IOObjectClass"
MATCHED_CLASS = "IOClass"  # what its driver was matched to; the same name, from another place
ENTRY_ID = "IORegistryEntryID"
CHILDREN = "IORegistryEntryChildren"
STATISTICS = "PerformanceStatistics"
CREATOR = "IOUserClientCreator"
USAGE = "AppUsage"
MODEL = "model"
CORES = "gpu-core-count"
CLIENT_CLASS = "AGXDeviceUserClient"
# Read once of an accelerator; its statistics at every scan.
FIXED = (MODEL, CORES, MATCHED_CLASS)

# The kernel writes it once, at the opening; behind the comma a name of any characters.
_CREATOR = re.compile(r"pid ([0-9]{1,10}), ")
_LARGEST = 1 << 63


def parse_gpu(properties: Properties) -> Gpu:
    statistics = properties.get(STATISTICS)
    statistics = statistics if isinstance(statistics, Mapping) else {}
    return Gpu(
        name=_text(properties.get(MODEL)),
        cores=_count(properties.get(CORES)),
        utilization=_utilization(statistics),
        memory_in_use=_memory_in_use(statistics),
        recoveries=_count(statistics.get("recoveryCount")),
    )


def choose_accelerator(accelerators: Iterable[Properties]) -> Properties | None:
    """Prefers Apple's own, then the one with the most values: Macs with Intel have several."""
    return max(accelerators, key=_rank, default=None)


def is_apple(properties: Properties) -> bool:
    """Returns whether its clients report their GPU time, by the beginning of its class."""
    name = properties.get(CLASS) or properties.get(MATCHED_CLASS)
    return str(name).startswith("AGX")


def parse_clients(accelerator: Properties, own_pid: int) -> dict[int, GpuClient] | None:
    """The clients by registry entry; None where there are none, as with other makers' GPUs.

    Whoever asks Metal for the budget becomes a client: our own pid is left out.
    """
    entries = accelerator.get(CHILDREN)
    children = [
        child
        for child in (entries if isinstance(entries, list) else ())
        if isinstance(child, Mapping) and child.get(CLASS) == CLIENT_CLASS
    ]
    if not children and not is_apple(accelerator):
        return None
    clients = ((child.get(ENTRY_ID), parse_client(child)) for child in children)
    return {
        number: client
        for number, client in clients
        if isinstance(number, int) and client is not None and client.pid != own_pid
    }


def parse_client(properties: Properties) -> GpuClient | None:
    """One client of the GPU; None if it has no owner."""
    match = _CREATOR.match(str(properties.get(CREATOR)))
    if match is None or not 0 < int(match[1]) < 1 << 31:
        return None
    usage = properties.get(USAGE)
    has_worked = bool(usage) if isinstance(usage, list) else None
    return GpuClient(int(match[1]), _nanoseconds(usage), has_worked)


def _nanoseconds(usage: Any) -> int | None:
    """The sum over what it has submitted; one number that cannot be right makes it unknown."""
    if not isinstance(usage, list):
        return None
    times = [
        _count(entry.get("accumulatedGPUTime")) if isinstance(entry, Mapping) else None
        for entry in usage
    ]
    return None if None in times else sum(time for time in times if time is not None)


def _rank(properties: Properties) -> tuple[bool, bool, bool]:
    gpu = parse_gpu(properties)
    return is_apple(properties), gpu.utilization is not None, gpu.memory_in_use is not None


def _utilization(statistics: Properties) -> float | None:
    """Returns percent, by Apple's and most others' key, by AMD's, or Intel's in ten-millionths."""
    keys = (("Device Utilization %", 1), ("GPU Activity(%)", 1), ("GPU Core Utilization", 10**7))
    for key, unit in keys:
        value = statistics.get(key)
        if isinstance(value, (int, float)) and 0 <= value < _LARGEST:
            return min(100.0, value / unit)
    return None


def _memory_in_use(statistics: Properties) -> int | None:
    """Reads the exact key: "In use system memory (driver)" is different, "Alloc…" is virtual."""
    values = (_count(statistics.get(key)) for key in ("In use system memory", "vramUsedBytes"))
    return next((value for value in values if value is not None), None)


def _count(value: Any) -> int | None:
    return value if is_whole(value, _LARGEST) else None


def _text(value: Any) -> str | None:
    """Cards of other makers have their name as bytes that end in zeros."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return text.strip("\0 ") or None if isinstance(text, str) else None
