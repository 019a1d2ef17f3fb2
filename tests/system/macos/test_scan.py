"""The whole way: a fake Mac, the real module, and the scanner that every front end looks through."""

from readings_kit import read_accelerators
from system.macos import checks

from mpsbar.system.scan import Scanner

# On a busy machine the reading thread may have to wait for its turn.
PATIENT = 60.0


def test_a_torch_process_with_its_share_of_the_gpu(mac, computer, clock):
    mac.set_memory()
    checks.check_details(mac, lambda: computer)
    mac.add_region(4242, 0x2_0000_0000, 0x4000, checks.TORCH)
    mac.add_process(4243)  # without torch
    client = {
        "IOObjectClass": "AGXDeviceUserClient",
        "IORegistryEntryID": 9,
        "IOUserClientCreator": "pid 4242, python3.12",
    }
    accelerator = mac.add_accelerator(read_accelerators("macos27-m4.ioreg.txt")[0])
    entry = mac.add_entry(client, accelerator)
    scanner = Scanner(computer, clock)
    for nanoseconds in (1_000_000_000, 1_500_000_000):
        mac.set_property(entry, "AppUsage", [{"accumulatedGPUTime": nanoseconds}])
        scan = scanner.scan(PATIENT)
        clock.now += 2.0
    scanner.close()
    (process,) = scan.processes
    assert (process.pid, process.name, process.frameworks) == (4242, "train.py", ("torch",))
    assert process.settings == {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}
    assert (process.gpu_client, process.gpu_percent) == (True, 25.0)
    assert process.footprint_kind == "footprint"
    assert scan.gpu_clients == {4242: True, 4243: False}
    assert scan.problems == ()
    assert scan.machine.gpu.name == "Apple M4"
    checks.check_nothing_held(mac)
