"""The values of the GPU, and the words of those that its line shows. None: could not be read.

A new value is a field here, which system/macos/iokit_values.py fills; with `shown` it is in the
line of the GPU in the menu, status and report (a new unit: ui/text/machine.py).
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from mpsbar.language import mark


def shown(text: str, unit: Literal["percent", "bytes", "number"]) -> Any:
    """Declares a value of the GPU that menu, status and report show too, in these words."""
    return field(default=None, metadata={"text": text, "unit": unit})


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str | None = None
    cores: int | None = None
    utilization: float | None = shown(mark("GPU {value}"), "percent")  # percent, 0 to 100
    memory_in_use: int | None = shown(mark("{value} in use"), "bytes")  # bytes, by all processes
    memory_budget: int | None = None  # Metal's recommended working set, bytes
    wired_limit: int | None = None  # bytes, set by an administrator; 0: the system's default
    recoveries: int | None = None  # probable number of resets since the computer started
