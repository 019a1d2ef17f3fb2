"""Thousands of readings leave nothing behind, neither in the system nor in Python."""

import gc
import sys

from readings_kit import read_accelerators
from system.macos import checks
from thorough import two_sizes

ROUNDS = two_sizes("rounds", small=[1_000], whole=[10_000])
# A few blocks of the interpreter's own come and go; one for each reading would be a thousand.
FEW = 100


@ROUNDS
def test_readings_leave_nothing_behind(mac, computer, rounds):
    accelerator = read_accelerators("macos-m1-8gb.ioreg.txt")[0]
    client = read_accelerators("macos-apple-clients.ioreg.txt")[1]
    mac.add_accelerator({**accelerator, "IORegistryEntryChildren": [client]})
    mac.add_process(4242)
    mac.add_region(4242, 0x2_0000_0000, 0x4000, checks.TORCH)
    mac.set_program(4242, [b"x"], [b"RANK=1"], executable=b"/bin/x")
    _read(computer, 100)
    before = _count()
    _read(computer, rounds)
    assert _count() - before < FEW
    checks.check_nothing_held(mac)
    assert mac.c.fake_made_objects() > rounds


@ROUNDS
def test_failed_readings_leave_nothing_behind(mac, computer, rounds):
    mac.c.fake_registry_errors(5, 0, 0, 0)
    _read_gpu(computer, 100)
    before = _count()
    _read_gpu(computer, rounds)
    assert _count() - before < FEW
    checks.check_nothing_held(mac, ports=0)


def _read(computer, rounds):
    for _ in range(rounds):
        computer.read_machine()
        computer.read_gpu_clients()
        computer.list_processes()
        computer.read_libraries(4242)
        computer.read_details(4242)
        computer.read_footprint(4242)


def _read_gpu(computer, rounds):
    for _ in range(rounds):
        computer.read_machine()
        computer.read_gpu_clients()


def _count():
    gc.collect()
    return sys.getallocatedblocks()
