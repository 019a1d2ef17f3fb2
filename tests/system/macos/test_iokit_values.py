"""The accelerator and its clients: every key may be missing, every value may be wrong."""

import os

import pytest
from readings_kit import read_accelerators
from system.fakemac.double import Date, Unconvertible
from system.macos import checks

from mpsbar.core.gpu import Gpu
from mpsbar.system.macos import iokit_values
from mpsbar.system.macos.iokit import Registry
from mpsbar.system.platform import GpuClient

APPLE = {"IOObjectClass": "AGXAcceleratorG16G", "model": "Apple M4", "gpu-core-count": 10}
STATISTICS = "PerformanceStatistics"


def client(creator, usage=(), number=1, **properties):
    usage_property = {} if usage is None else {"AppUsage": list(usage)}
    return {
        "IOObjectClass": "AGXDeviceUserClient",
        "IORegistryEntryID": number,
        "IOUserClientCreator": creator,
        **usage_property,
        **properties,
    }


def with_clients(*children):
    return {**APPLE, "IORegistryEntryChildren": list(children)}


def test_the_gpu(mac, make_computer):
    checks.check_gpu(mac, make_computer)


def test_several_accelerators(mac, make_computer):
    checks.check_several_accelerators(mac, make_computer)


@pytest.mark.parametrize(
    ("statistics", "utilization", "memory"),
    [
        ({}, None, None),
        ({"Device Utilization %": 0, "In use system memory": 0}, 0.0, 0),
        ({"Device Utilization %": 250}, 100.0, None),
        ({"Device Utilization %": -1}, None, None),
        ({"Device Utilization %": "much"}, None, None),
        ({"Device Utilization % at cur p-state": 29}, None, None),
        ({"In use system memory (driver)": 7, "Alloc system memory": 9}, None, None),
        ({"In use system memory": 1 << 63}, None, None),
        ({"In use system memory": (1 << 63) - 1}, None, (1 << 63) - 1),
        ({"In use system memory": Date()}, None, None),
        ({"In use system memory": 1.5}, None, None),
        ({"In use system memory": True}, None, None),
        # AMD and Intel.
        ({"GPU Activity(%)": 42, "vramUsedBytes": 512 << 20}, 42.0, 512 << 20),
        ({"GPU Core Utilization": 330_000_000}, 33.0, None),
        ({"GPU Core Utilization": 0}, 0.0, None),
        ([], None, None),
        ("none", None, None),
    ],
)
def test_statistics(mac, computer, statistics, utilization, memory):
    mac.add_accelerator({**APPLE, STATISTICS: statistics})
    gpu = computer.read_machine().gpu
    assert gpu == Gpu("Apple M4", 10, utilization, memory)
    checks.check_nothing_held(mac)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"AMD Radeon Pro 560\0", "AMD Radeon Pro 560"),
        (b"", None),
        (b"x" * 5000, None),
        ("Apple M4", "Apple M4"),
        ("Äpple 🍎", "Äpple 🍎"),
        ("x" * 5000, None),
        (Unconvertible("x"), None),
        (7, None),
    ],
)
def test_names(mac, computer, name, text):
    mac.add_accelerator({"IOObjectClass": "AnyAccelerator", "model": name})
    assert computer.read_machine().gpu.name == text
    checks.check_nothing_held(mac)


def test_apples_own_comes_first(mac, computer):
    other = {"IOObjectClass": "AMDAccelerator", STATISTICS: {"Device Utilization %": 3}}
    mac.add_accelerator(other)
    mac.add_accelerator({**APPLE, STATISTICS: {"Device Utilization %": 4}})
    mac.add_accelerator({**APPLE, "model": "a second one", STATISTICS: {}})
    assert computer.read_machine().gpu == Gpu("Apple M4", 10, 4.0, None)
    checks.check_nothing_held(mac)


def test_the_one_that_tells_most_comes_first(mac, computer):
    mac.add_accelerator({"IOObjectClass": "IntelAccelerator"})
    statistics = {"GPU Activity(%)": 5, "vramUsedBytes": 9}
    mac.add_accelerator({"IOObjectClass": "AMDAccelerator", STATISTICS: statistics})
    mac.add_accelerator({"IOObjectClass": "IntelAccelerator", STATISTICS: {"GPU Activity(%)": 6}})
    assert computer.read_machine().gpu == Gpu(None, None, 5.0, 9)
    checks.check_nothing_held(mac)


def test_a_reading_costs_one_property(mac, computer):
    """All of an accelerator's would bring its legend of 40 kB along."""
    mac.add_accelerator(read_accelerators("macos27-m4.ioreg.txt")[0])
    computer.read_machine()
    before = mac.c.fake_property_reads()
    computer.read_machine()
    assert mac.c.fake_property_reads() == before + 1


def test_who_opened_a_client_is_read_once(mac, computer):
    mac.add_accelerator(with_clients(client("pid 7, a"), client("pid 8, b", number=2)))
    computer.read_gpu_clients()
    before = mac.c.fake_property_reads()
    assert len(computer.read_gpu_clients()) == 2
    assert mac.c.fake_property_reads() == before + 2


def test_an_accelerator_that_was_unplugged_is_looked_for_again(mac, computer, clock):
    first = mac.add_accelerator({**APPLE, STATISTICS: {"Device Utilization %": 4}})
    assert computer.read_machine().gpu.utilization == 4.0
    mac.c.fake_remove_entry(first)
    assert computer.read_machine().gpu == Gpu("Apple M4", 10, None, None)
    mac.add_accelerator({**APPLE, "model": "another", STATISTICS: {"Device Utilization %": 5}})
    clock.now += 31
    assert computer.read_machine().gpu == Gpu("another", 10, 5.0, None)
    checks.check_nothing_held(mac)


def test_one_without_statistics_is_not_searched_for_all_the_time(mac, computer, clock):
    mac.add_accelerator({"IOObjectClass": "AppleParavirtGPU"})
    for _ in range(5):
        assert computer.read_machine().gpu == Gpu()
    assert mac.c.fake_searches() == 1
    clock.now += 31
    computer.read_machine()
    assert mac.c.fake_searches() == 2
    checks.check_nothing_held(mac)


@pytest.mark.parametrize(
    ("usage", "nanoseconds"),
    [
        (None, None),
        ([], 0),
        ([{"accumulatedGPUTime": 5}, {"accumulatedGPUTime": 6, "API": "Metal"}], 11),
        ([{"accumulatedGPUTime": 5}, {"API": "Metal"}], None),
        ([{"accumulatedGPUTime": 5}, {"accumulatedGPUTime": -1}], None),
        ([{"accumulatedGPUTime": 1 << 63}], None),
        ([{"accumulatedGPUTime": (1 << 64) - 116}, {"accumulatedGPUTime": 100}], None),
        ([{"accumulatedGPUTime": (1 << 63) - 1}], (1 << 63) - 1),
        ([{"accumulatedGPUTime": "5"}], None),
        ([{"accumulatedGPUTime": 5.5}], None),
        ([{"accumulatedGPUTime": True}], None),
        (["what"], None),
        ([[{"accumulatedGPUTime": 5}]], None),
        ([Date()], None),
        ([{"accumulatedGPUTime": 1}] * 1001, None),
    ],
)
def test_what_a_client_used(mac, computer, usage, nanoseconds):
    mac.add_accelerator(with_clients(client("pid 7, python3.12", usage)))
    is_read = usage is not None and len(usage) <= 1000
    has_worked = bool(usage) if is_read else None
    assert computer.read_gpu_clients() == {1: GpuClient(7, nanoseconds, has_worked)}
    checks.check_nothing_held(mac)


def test_usage_that_is_no_list(mac, computer):
    mac.add_accelerator(with_clients(client("pid 7, x", None, AppUsage={"accumulatedGPUTime": 5})))
    assert computer.read_gpu_clients() == {1: GpuClient(7, None)}


@pytest.mark.parametrize(
    ("creator", "pid"),
    [
        ("pid 7, a, b, pid 8, c", 7),
        ("pid 7, two\nlines", 7),
        ("pid 7, ", 7),
        ("pid 7, 名前 🍎", 7),
        ("pid 2147483647, x", 2147483647),
        ("pid 2147483648, x", None),
        ("pid 0, invalid", None),
        ("pid -1, x", None),
        ("pid ７, x", None),
        ("pid 99999999999999, x", None),
        ("x\npid 7, y", None),
        ("pid 7", None),
        ("", None),
        (Unconvertible("pid 7, x"), None),
        (7, None),
    ],
)
def test_who_opened_a_client(mac, computer, creator, pid):
    mac.add_accelerator(with_clients(client(creator)))
    clients = computer.read_gpu_clients()
    assert clients == ({} if pid is None else {1: GpuClient(pid, 0, False)})
    checks.check_nothing_held(mac)


def test_a_client_without_a_name_yet_gets_one(mac, computer):
    """The kernel writes who opened it after it has hung it into the registry."""
    accelerator = mac.add_accelerator(APPLE)
    nameless = {"IOObjectClass": "AGXDeviceUserClient", "IORegistryEntryID": 5, "AppUsage": []}
    entry = mac.add_entry(nameless, accelerator)
    assert computer.read_gpu_clients() == {}
    mac.set_property(entry, "IOUserClientCreator", "pid 7, x")
    assert computer.read_gpu_clients() == {5: GpuClient(7, 0, False)}


def test_clients_come_and_go(mac, computer):
    accelerator = mac.add_accelerator(APPLE)
    first = mac.add_entry(client("pid 7, x", number=1), accelerator)
    assert computer.read_gpu_clients() == {1: GpuClient(7, 0, False)}
    mac.c.fake_remove_entry(first)
    mac.add_entry(client("pid 7, x", number=2), accelerator)
    assert computer.read_gpu_clients() == {2: GpuClient(7, 0, False)}
    checks.check_nothing_held(mac)


def test_other_children_and_ourselves_are_left_out(mac, computer):
    other = {**client("pid 7, x", number=2), "IOObjectClass": "AGXSharedUserClient"}
    ourselves = client(f"pid {os.getpid()}, python3", number=3)
    mac.add_accelerator(with_clients(other, ourselves))
    for _ in range(2):
        assert computer.read_gpu_clients() == {}


@pytest.mark.parametrize("reading", ["macos-vm.ioreg.txt", "macos-intel-amd.ioreg.txt"])
def test_without_apples_gpu_clients_are_unknown(mac, computer, reading):
    for properties in read_accelerators(reading):
        mac.add_accelerator(properties)
    assert computer.read_gpu_clients() is None


def test_without_an_accelerator_clients_are_unknown(mac, computer):
    assert computer.read_gpu_clients() is None
    assert mac.held == (0, 0)


def test_a_client_whose_number_or_class_cannot_be_read_is_left_out(mac, computer):
    mac.add_accelerator(with_clients(client("pid 7, x")))
    assert len(computer.read_gpu_clients()) == 1
    mac.c.fake_registry_errors(0, 0, 0, 1)
    assert computer.read_gpu_clients() == {}
    mac.c.fake_registry_errors(0, 0, 1, 0)
    assert computer.read_gpu_clients() == {}
    mac.c.fake_registry_errors(0, 0, 0, 0)
    assert len(computer.read_gpu_clients()) == 1
    checks.check_nothing_held(mac)


def test_depth_has_an_end(mac, computer):
    deep: object = 1
    for _ in range(50):
        deep = [deep]
    mac.add_accelerator({**APPLE, STATISTICS: {"Device Utilization %": deep, "x": {"y": deep}}})
    assert computer.read_machine().gpu.utilization is None
    checks.check_nothing_held(mac)


def test_a_dictionary_too_large_is_unknown(mac, computer):
    many = {str(number): number for number in range(1001)}
    mac.add_accelerator({**APPLE, STATISTICS: {**many, "Device Utilization %": 5}})
    assert computer.read_machine().gpu.utilization is None
    checks.check_nothing_held(mac)


def test_keys_that_are_no_text_are_left_out(mac, computer):
    mac.add_accelerator({**APPLE, STATISTICS: {7: 8, "Device Utilization %": 5}})
    assert computer.read_machine().gpu.utilization == 5.0


def test_parse_functions_take_any_dictionary():
    assert iokit_values.parse_gpu({}) == Gpu()
    assert iokit_values.choose_accelerator([]) is None
    assert iokit_values.parse_clients({}, 1) is None
    for children in ([1, {}], 1.5, "text", {}):
        assert iokit_values.parse_clients({"IORegistryEntryChildren": children}, 1) is None
    assert iokit_values.parse_clients({"IOObjectClass": "AGXAny"}, 1) == {}
    odd = {**client("pid 7, x"), "IORegistryEntryID": "one"}
    assert iokit_values.parse_clients({"IORegistryEntryChildren": [odd]}, 1) == {}
    for value in (float("nan"), float("inf"), 10**400):
        assert iokit_values.parse_gpu({STATISTICS: {"Device Utilization %": value}}) == Gpu()


def test_an_accelerator_is_known_by_what_its_driver_was_matched_to():
    """Where the registry does not say its class."""
    from mpsbar.system.macos.iokit_values import is_apple

    assert is_apple({"IOClass": "AGXAcceleratorG13G_B0"})
    assert is_apple({"IOObjectClass": None, "IOClass": "AGXAcceleratorG13G_B0"})
    assert not is_apple({"IOObjectClass": "AMDRadeonX6000", "IOClass": "AGX"})
    assert not is_apple({})


def test_each_kind_of_value_in_the_registry(mac, clock):
    values = {
        "yes": True,
        "no": False,
        "number": 7,
        "fraction": 47.5,
        "whole": 7.0,
        "tiny": 5e-324,
        "huge": 1e300,
        "text": "x",
        "data": b"\1\2",
        "list": [1, True],
    }
    mac.add_accelerator({**APPLE, STATISTICS: values})
    found = Registry(mac.path, mac.path, clock).read_accelerator()[STATISTICS]
    assert found == values
    assert found["yes"] is True
    assert found["no"] is False
