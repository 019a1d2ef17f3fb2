"""Children with the device for the tests of softmps; skipped where the device cannot be had."""

from collections.abc import Iterator

import pytest
import softmps
from device_child import Child
from softmps.build import build


@pytest.fixture(scope="session")
def usable() -> None:
    """Build the device, or skip, with the reason, where there is no compiler to do it."""
    if reason := softmps.why_not():
        pytest.skip(reason)
    build()


@pytest.fixture(scope="session")
def shared_device(usable: None) -> Iterator[Child]:
    with Child() as child:
        yield child


@pytest.fixture
def device(shared_device: Child) -> Child:
    """A child with all switches at their defaults, nothing allocated and nothing counted."""
    shared_device.ask("torch.mps.empty_cache(); torch.mps.set_per_process_memory_fraction(1.7)")
    shared_device.ask("torch.accelerator.reset_peak_memory_stats(); ops.reset_counters()")
    return shared_device


@pytest.fixture(scope="module")
def queued(usable: None) -> Iterator[Child]:
    """A child whose work is queued."""
    with Child(SOFTMPS_QUEUE="1") as child:
        yield child
