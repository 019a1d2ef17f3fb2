"""What must hold of the macOS module: each used by its test, and by test_macos_faults with a fault.

Each fills a fake Mac, reads it, and fails on a wrong value, on a caller's mistake that the Mac has
noticed, and on anything that was not released.
"""

from collections.abc import Callable

from readings_kit import read_accelerators
from system.fakemac.double import FLAGS, READ, FakeMac

from mpsbar.core.gpu import Gpu
from mpsbar.system.macos import MacComputer
from mpsbar.system.platform import Details, Footprint, GpuClient

Make = Callable[..., MacComputer]

SITE = "/opt/homebrew/lib/python3.12/site-packages"
TORCH = f"{SITE}/torch/lib/libtorch_cpu.dylib"
MLX = f"{SITE}/mlx/lib/libmlx.dylib"
PYTHON = "/opt/homebrew/bin/python3.12"


def check_nothing_held(mac: FakeMac, ports: int = 1) -> None:
    """One port stays: the accelerator's."""
    assert mac.held == (0, ports)
    assert mac.faults == ""


def check_footprint(mac: FakeMac, make: Make) -> None:
    """The numbers of a footprint capture of macOS 27, see tests/readings/SOURCES.md."""
    mac.add_process(4242, footprint=20008894464, peak=21082685440)
    assert make().read_footprint(4242) == Footprint(20008894464, 21082685440, False)
    mac.set_process(4242, FLAGS, 0x4000 | 0x800000 | 0x1000000)  # as App Nap sets them
    assert make().read_footprint(4242).is_napping
    mac.set_process(4242, FLAGS, 0x1000000 | 0x400000)
    assert make().read_footprint(4242).is_napping is False
    assert mac.faults == ""


def check_size(mac: FakeMac, make: Make) -> None:
    mac.add_process(4242, virtual=421_000_000_000)
    assert make().read_size(4242) == 421_000_000_000
    assert mac.faults == ""


def check_processes(mac: FakeMac, make: Make) -> None:
    mac.add_process(501, start=(1_790_000_001, 7))
    mac.add_process(502, start=(1_790_000_002, 999_999))
    assert make().list_processes() == {501: (1_790_000_001, 7), 502: (1_790_000_002, 999_999)}
    assert mac.faults == ""


def check_ended(mac: FakeMac, make: Make) -> None:
    """A zombie, as SZOMB in its status says."""
    mac.add_process(501, status=5)
    assert make().list_processes() == {}
    assert mac.faults == ""


def check_libraries(mac: FakeMac, make: Make) -> None:
    """Everything lies above 4 GB, as it does in a 64-bit process; memory without a file between."""
    mac.add_process(4242)
    base = 0x1_0436_4000
    mac.add_region(4242, base, 0x4000, PYTHON)
    mac.add_region(4242, base + 0x4000, 0x1000000, "", protection=3)
    mac.add_region(4242, 0x1_3000_0000, 0x8000000, f"{SITE}/torch/lib/libshm.dylib")
    mac.add_region(4242, 0x2_0000_0000, 0x8000000, "/as/data/libtorch.dylib", protection=READ)
    mac.add_region(4242, 0x2_0800_0000, 0x8000000, TORCH)
    mac.add_region(4242, 0x7_0000_0000, 0x4000, MLX)
    assert make().read_libraries(4242) == {"torch": TORCH, "mlx": MLX}
    assert mac.c.fake_page_walks() == 0
    assert mac.faults == ""


def check_details(mac: FakeMac, make: Make) -> None:
    mac.add_process(4242, parent=777, start=(1_790_000_000, 250_000))
    variables = [b"HOME=/Users/ada", b"PYTORCH_ENABLE_MPS_FALLBACK=1", b"PATH=/opt/homebrew/bin"]
    command = [b"python3", b"train.py", b"--lr", b"1e-3"]
    mac.set_program(4242, command, variables, executable=PYTHON.encode())
    assert make().read_details(4242) == Details(
        started=1_790_000_000.25,
        parent=777,
        command=("python3", "train.py", "--lr", "1e-3"),
        executable=PYTHON,
        variables={"PYTORCH_ENABLE_MPS_FALLBACK": "1", "PATH": "/opt/homebrew/bin"},
    )
    assert mac.faults == ""


def check_swap(mac: FakeMac, make: Make) -> None:
    mac.c.fake_swap(9216 << 20, 1417 << 20, 7799 << 20)
    assert make().read_machine().swap_used == 7799 << 20


def check_gpu(mac: FakeMac, make: Make) -> None:
    mac.add_accelerator(read_accelerators("macos27-m4.ioreg.txt")[0])
    computer = make()
    for _ in range(3):
        assert computer.read_machine().gpu == Gpu("Apple M4", 10, 17.0, 430571520, recoveries=0)
        check_nothing_held(mac)
    assert mac.c.fake_searches() == 1
    assert mac.c.fake_is_high()


def check_fraction(mac: FakeMac, make: Make) -> None:
    """A statistic that is no whole number."""
    statistics = {"Device Utilization %": 12.5}
    mac.add_accelerator({"IOObjectClass": "AGXAny", "PerformanceStatistics": statistics})
    assert make().read_machine().gpu == Gpu(utilization=12.5)
    check_nothing_held(mac)


def check_clients(mac: FakeMac, make: Make) -> None:
    """The clients of a recorded Mac under the accelerator of another."""
    accelerator = read_accelerators("macos-m1-8gb.ioreg.txt")[0]
    clients = read_accelerators("macos-apple-clients.ioreg.txt")
    mac.add_accelerator({**accelerator, "IORegistryEntryChildren": clients})
    computer = make()
    for _ in range(3):
        assert computer.read_gpu_clients() == {
            0x100002DBC: GpuClient(444, 0, False),
            0x100002DBD: GpuClient(440, 38_738_170_958 + 76_336_458, True),
            0x100002DBE: GpuClient(440, 1_000_000_000, True),
            0x100002DBF: GpuClient(31299, 3_992_585_375, True),
        }
        check_nothing_held(mac)


def check_several_accelerators(mac: FakeMac, make: Make) -> None:
    for properties in read_accelerators("macos-intel-amd.ioreg.txt"):
        mac.add_accelerator(properties)
    assert make().read_machine().gpu.utilization == 11.0
    check_nothing_held(mac)
