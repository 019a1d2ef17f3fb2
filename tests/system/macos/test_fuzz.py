"""Whatever other processes and drivers say, the parse functions give a value of their kind."""

from hypothesis import given
from hypothesis import strategies as st

from mpsbar.system.macos import iokit_values
from mpsbar.system.macos.sysctl import parse_number, parse_swap_used, parse_text, parse_version

KEYS = st.sampled_from(
    [
        iokit_values.CLASS, iokit_values.ENTRY_ID, iokit_values.CHILDREN, iokit_values.STATISTICS, iokit_values.CREATOR,
        iokit_values.USAGE, iokit_values.MODEL, iokit_values.CORES, "accumulatedGPUTime", "Device Utilization %",
        "In use system memory", "GPU Activity(%)", "GPU Core Utilization", "vramUsedBytes",
    ]
)  # fmt: skip
WORDS = st.sampled_from(["AGXAcceleratorG13G", "AGXDeviceUserClient", "pid 7, x", "pid 0, ", ""])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=9) | WORDS
VALUES = st.recursive(
    PLAIN | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_properties_of_any_kind(properties):
    gpu = iokit_values.parse_gpu(properties)
    assert gpu.utilization is None or 0 <= gpu.utilization <= 100
    for count in (gpu.cores, gpu.memory_in_use):
        assert count is None or 0 <= count < 1 << 63
    assert gpu.name is None or gpu.name
    clients = iokit_values.parse_clients(properties, own_pid=8)
    for client in (clients or {}).values():
        assert 0 < client.pid < 1 << 31
        assert client.nanoseconds is None or client.nanoseconds >= 0
    assert iokit_values.choose_accelerator([{}, properties]) in ({}, properties)


@given(st.binary(max_size=40), st.text(max_size=9), st.text(max_size=9))
def test_values_of_any_kind(value, product, darwin):
    for parse in (parse_number, parse_swap_used):
        number = parse(value)
        assert number is None or number >= 0
    assert parse_text(value) != ""
    version = parse_version(product, darwin)
    assert version is None or version
