"""Every recorded Mac through the fake one into the real module, with what it must say."""

import locale
from pathlib import Path

import pytest
from readings_kit import (
    FOLDER,
    parse_swap,
    parse_value,
    read_accelerators,
    read_sysctls,
    read_vm_stat,
)
from system.macos import checks

from mpsbar.core.gpu import Gpu
from mpsbar.system.platform import GpuClient


@pytest.mark.parametrize(
    ("reading", "gpu"),
    [
        ("macos-m1-8gb.ioreg.txt", Gpu("Apple M1", 8, 34.0, 200048640, recoveries=0)),
        ("macos-m1max-64gb.ioreg.txt", Gpu("Apple M1 Max", 32, 25.0, 745570304, recoveries=0)),
        ("macos-m2.ioreg.txt", Gpu("Apple M2", None, 4.0, 632307712, recoveries=0)),
        ("macos-m3-air.ioreg.txt", Gpu("Apple M3", 10, 34.0, 3898310656)),
        ("macos27-m4.ioreg.txt", Gpu("Apple M4", 10, 17.0, 430571520, recoveries=0)),
        ("macos-m4-recovered21.ioreg.txt", Gpu("Apple M4", None, 3.0, 550649856, recoveries=21)),
        ("macos-m4pro.ioreg.plist", Gpu("Apple M4 Pro", 16, 12.0, 1270726656)),
        ("macos-m5pro.ioreg.txt", Gpu("Apple M5 Pro", 16, 0.0, 925630464, recoveries=0)),
        ("macos-intel-amd.ioreg.txt", Gpu(None, None, 11.0, None)),
        ("macos-vm.ioreg.txt", Gpu()),
        ("macos-no-accelerator.ioreg.txt", Gpu()),
        ("macos-apple-clients-synthetic.ioreg.plist", Gpu(None, None, 97.0, None)),
    ],
)
def test_the_gpu_of_each_recorded_mac(mac, computer, reading, gpu):
    for properties in read_accelerators(reading):
        mac.add_accelerator(properties)
    for _ in range(2):
        assert computer.read_machine().gpu == gpu
    assert mac.held[0] == 0


def test_no_recording_is_left_out():
    """Each file under tests/readings that is a Mac's has a test here."""
    tests = "".join(Path(file).read_text(encoding="utf-8") for file in (__file__, checks.__file__))
    recorded = [path.name for path in FOLDER.iterdir() if path.name.startswith("macos")]
    assert [name for name in recorded if name not in tests] == []


def test_the_recorded_clients(mac, make_computer):
    checks.check_clients(mac, make_computer)


def test_the_synthetic_clients(mac, computer):
    """Beyond 2^63 the time is unknown; pid 0 opens nothing."""
    for properties in read_accelerators("macos-apple-clients-synthetic.ioreg.plist"):
        mac.add_accelerator(properties)
    assert computer.read_gpu_clients() == {99: GpuClient(123, None, True)}


@pytest.mark.parametrize(
    ("reading", "pressure", "swap_used", "wired_limit"),
    [
        ("macos27-no-iogpu.sysctl.txt", "normal", 327942144, None),
        ("macos27-pressure2.sysctl.txt", "warning", 3163815936, 42949672960),
        ("macos27-pressure4.sysctl.txt", "critical", 10288103424, 42949672960),
        ("macos-m1-8gb.sysctl.txt", None, 8177382850, None),
        ("macos26-m1-mini-8gb.sysctl.txt", None, None, 0),
    ],
)
def test_pressure_swap_and_limit(mac, computer, reading, pressure, swap_used, wired_limit):
    _fill(mac, read_sysctls(reading))
    machine = computer.read_machine()
    assert (machine.pressure, machine.swap_used) == (pressure, swap_used)
    assert machine.gpu.wired_limit == wired_limit


def test_the_recorded_mac_mini(mac, computer):
    _fill(mac, read_sysctls("macos26-m1-mini-8gb.sysctl.txt"))
    machine = computer.read_machine()
    assert (machine.model, machine.memory_total) == ("Macmini9,1", 8589934592)
    assert (machine.chip, machine.os, machine.pressure, machine.is_virtual) == (None,) * 4


def test_why_the_command_sysctl_is_not_asked(mac, computer):
    """In German it has a decimal comma; the kernel's own number has none."""
    text = read_sysctls("macos-m1-8gb-german.sysctl.txt")["vm.swapusage"]
    used = text.split()[5]
    assert used == "7742,00M"
    with pytest.raises(ValueError, match="could not convert"):
        float(used.rstrip("M"))
    _fill(mac, {"vm.swapusage": text})
    assert locale.localeconv()["decimal_point"] == "."
    assert computer.read_machine().swap_used == 7742 << 20


def test_memory_available_is_what_vm_stat_counts(mac, computer):
    """Free, file-backed and purgeable. The speculative pages are among the file-backed ones."""
    pages = read_vm_stat("macos-m1-8gb.vm_stat.txt")
    on_queues = ("Pages active", "Pages inactive", "Pages speculative", "Pages throttled")
    assert pages["File-backed pages"] + pages["Anonymous pages"] == sum(pages[q] for q in on_queues)
    mac.set_sysctl("vm.page_free_count", pages["Pages free"])
    mac.set_sysctl("vm.page_pageable_external_count", pages["File-backed pages"])
    mac.set_sysctl("vm.page_purgeable_count", pages["Pages purgeable"])
    mac.set_sysctl("vm.pagesize", pages["page size"])
    assert computer.read_machine().memory_available == 1351827456


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("34", 34),
        ('"gpu,t8103"', "gpu,t8103"),
        ("<6b100000>", b"\x6b\x10\0\0"),
        ("Yes", True),
        ("()", []),
        ('{"a"=1,"b"=({"c"=No},-2),"d"={}}', {"a": 1, "b": [{"c": False}, -2], "d": {}}),
    ],
)
def test_the_kit_understands_ioreg(text, value):
    assert parse_value(text) == value


def _fill(mac, values):
    swap = parse_swap(values.pop("vm.swapusage", ""))
    if swap:
        mac.c.fake_swap(swap["total"], swap["free"], swap["used"])
    for name, value in values.items():
        is_number = value.isdigit()
        size = 8 if name == "hw.memsize" else 4
        mac.set_sysctl(name, int(value) if is_number else value, size)
