"""What the kernel says by name, and what it does not say."""

import pytest

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine
from mpsbar.dtypes.compare import free_ram
from mpsbar.system.macos.sysctl import parse_number, parse_swap_used, parse_version, parse_virtual


def test_everything_by_name(mac, make_computer):
    for name, value in {
        "hw.model": "Mac16,8",
        "machdep.cpu.brand_string": "Apple M4 Pro",
        "kern.osproductversion": "26.3.2",
        "kern.osrelease": "25.3.0",
        "hw.perflevel0.name": "Performance",
        "hw.perflevel1.name": "Efficiency",
        "hw.logicalcpu": 12,
        "hw.nperflevels": 2,
        "hw.perflevel0.logicalcpu": 8,
        "hw.perflevel1.logicalcpu": 4,
        "kern.hv_vmm_present": 0,
        "kern.memorystatus_vm_pressure_level": 1,
        "iogpu.wired_limit_mb": 40960,
    }.items():
        mac.set_sysctl(name, value)
    mac.set_sysctl("hw.memsize", 24 << 30, size=8)
    assert make_computer(read_budget=lambda: 18 << 30).read_machine() == Machine(
        os="macOS 26.3.2",
        os_version=(26, 3, 2),
        model="Mac16,8",
        chip="Apple M4 Pro",
        cores=12,
        core_kinds=(("Performance", 8), ("Efficiency", 4)),
        memory_total=24 << 30,
        pressure="normal",
        on_battery=False,
        is_virtual=False,
        gpu=Gpu(memory_budget=18 << 30, wired_limit=40960 << 20),
    )


def test_nothing_known_is_unknown(mac, computer):
    mac.psutil.battery = RuntimeError("IOPSCopyPowerSourcesInfo() syscall failed")
    assert computer.read_machine() == Machine()


def test_what_is_unknown_is_reported_with_its_reason(mac, computer):
    computer.read_machine()
    assert {p.reader: p.text for p in computer.problems} == {
        "memory_total": "hw.memsize: No such file or directory",
        "memory_available": "vm.page_free_count: No such file or directory",
        "swap_used": "vm.swapusage: No such file or directory",
        "pressure": "kern.memorystatus_vm_pressure_level: No such file or directory",
    }
    mac.set_memory()
    mac.set_sysctl("kern.memorystatus_vm_pressure_level", 3)
    mac.set_sysctl("vm.page_purgeable_count", b"x")
    computer.read_machine()
    assert {p.reader: p.text for p in computer.problems} == {
        "memory_available": "vm.page_free_count, vm.page_pageable_external_count,"
        " vm.page_purgeable_count, vm.pagesize: not understood",
        "pressure": "kern.memorystatus_vm_pressure_level: not understood",
    }


def test_what_never_changes_is_read_once(mac, computer):
    mac.set_memory()
    mac.set_sysctl("hw.model", "Mac16,8")
    computer.read_machine()
    mac.set_sysctl("hw.model", "Mac99,9")
    mac.set_sysctl("kern.memorystatus_vm_pressure_level", 4)
    machine = computer.read_machine()
    assert (machine.model, machine.pressure) == ("Mac16,8", "critical")


def test_the_limit_of_macos_13_is_in_bytes(mac, computer):
    mac.set_sysctl("debug.iogpu.wired_limit", 20 << 30, size=8)
    assert computer.read_machine().gpu.wired_limit == 20 << 30


def test_one_missing_count_makes_the_memory_unknown(mac, computer):
    for name in ("vm.page_free_count", "vm.page_purgeable_count", "vm.pagesize"):
        mac.set_sysctl(name, 1)
    assert computer.read_machine().memory_available is None


def test_a_level_nobody_knows_is_unknown(mac, computer):
    mac.set_sysctl("kern.memorystatus_vm_pressure_level", 3)
    assert computer.read_machine().pressure is None


def test_half_a_kind_of_cores_is_none(mac, computer):
    mac.set_sysctl("hw.nperflevels", 1 << 31)
    mac.set_sysctl("hw.perflevel0.name", "Super")
    mac.set_sysctl("hw.perflevel1.name", "Performance")
    mac.set_sysctl("hw.perflevel1.logicalcpu", 10)
    assert computer.read_machine().core_kinds == (("Performance", 10),)


@pytest.mark.parametrize(
    ("product", "darwin", "version"),
    [
        ("15.5", "24.5.0", (15, 5)),
        ("13.0", "22.1.0", (13, 0)),
        ("26.3.2", None, (26, 3, 2)),
        # What a Python built with an SDK before 26, or before 11, is told.
        ("16.0", "25.3.0", (26,)),
        ("16.2", "26.1.0", (27,)),
        ("10.16", "23.1.0", (14,)),
        ("16.0", None, None),
        ("16.0", "what", None),
        (None, "25.3.0", None),
        ("", "25.3.0", None),
        ("26.x", "25.3.0", None),
        ("²6", "25.3.0", None),
        ("9" * 5000, "25.3.0", None),
    ],
)
def test_versions(product, darwin, version):
    assert parse_version(product, darwin) == version


def test_numbers_by_their_size():
    assert parse_number(b"\1\0\0\0") == 1
    assert parse_number(b"\1\0\0\0\1\0\0\0") == (1 << 32) + 1
    assert parse_number(b"") is None
    assert parse_number(b"\1") is None


def test_swap_of_another_shape_is_unknown():
    assert parse_swap_used(b"\0" * 31) is None


@pytest.mark.parametrize(
    ("hypervisor", "model", "is_virtual"),
    [
        (1, "Mac14,12", True),
        (None, "VirtualMac2,1", True),
        (0, "Mac14,12", False),
        (None, None, None),
    ],
)
def test_virtual_macs(hypervisor, model, is_virtual):
    assert parse_virtual(hypervisor, model) is is_virtual


def test_compare_reads_the_same_free_memory_in_a_python_without_psutil(mac, computer, monkeypatch):
    def sysconf(name):
        raise ValueError("unrecognized configuration name")  # as on macOS

    monkeypatch.setattr(free_ram.os, "sysconf", sysconf)
    monkeypatch.setattr(free_ram.ctypes, "CDLL", lambda _: mac.c)
    assert free_ram.read_free_ram() is None
    mac.set_memory()
    mac.set_sysctl("vm.page_free_count", 70_000)
    assert free_ram.read_free_ram() == computer.read_machine().memory_available > 70_000 << 14
